// An example is tried by its place in the row.
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-place]');
  if (button) trigger('try_one', {place: +button.dataset.place});
});
