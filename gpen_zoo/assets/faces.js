// The face strip. What was chosen is read from it when the server is asked (see READ_STRIP in page_restore.py).
const tell = () => trigger('input');
element.addEventListener('input', event => {
  const item = event.target.closest('li');
  if (event.target.type === 'range') {
    item.classList.add('personal');
    item.querySelector('.value').textContent = (+event.target.value).toFixed(2);
  }
  tell();
});
element.addEventListener('click', event => {
  const thumb = event.target.closest('.thumb');
  if (thumb) thumb.setAttribute('aria-pressed', thumb.getAttribute('aria-pressed') !== 'true');
  const reset = event.target.closest('.reset');
  if (reset) { reset.closest('li').classList.remove('personal'); tell(); }
});
// Gradio would set a changed `value` at once, under the hand that drags the slider; and an answer to an earlier step
// may arrive after the last one: then the slider in use is ahead, and tells again.
watch('value', () => {
  for (const input of element.querySelectorAll('input')) {
    if (input.type === 'checkbox') input.checked = input.hasAttribute('checked');
    else if (input !== document.activeElement) input.value = input.dataset.at;
    else if (+input.value !== +input.dataset.at) {
      input.closest('li').classList.add('personal');
      input.closest('li').querySelector('.value').textContent = (+input.value).toFixed(2);
      tell();
    }
  }
});
