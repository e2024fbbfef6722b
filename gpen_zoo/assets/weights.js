// A name in the table chooses its weight.
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-name]');
  if (button) trigger('choose', {name: button.dataset.name});
});
