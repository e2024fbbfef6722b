// The face strip. What was chosen for a photo is kept here, because an answer of the server may be older than the last
// touch.
let photo = '';
let own = {};
let ticks = {};
const each = work => { for (const item of element.querySelectorAll('li')) work(item, item.querySelector('[type=checkbox]'), item.querySelector('[type=range]')); };
// Not box.checked: for a moment after the server has drawn the strip anew, the boxes show what an older answer knew.
const isTicked = box => ticks[box.dataset.face] ?? box.hasAttribute('checked');
const tell = () => {
  const ticked = [];
  each((item, box) => { if (isTicked(box)) ticked.push(+box.dataset.face); });
  document.querySelector('#live').live.tell('faces', {ticked, own});
};
const show = (item, range) => { item.querySelector('.value').textContent = (+range.value).toFixed(2); };
element.addEventListener('input', event => {
  const face = event.target.dataset.face;
  if (event.target.type === 'checkbox') ticks[face] = event.target.checked;
  else {
    own[face] = +event.target.value;
    event.target.closest('li').classList.add('personal');
    show(event.target.closest('li'), event.target);
  }
  tell();
});
element.addEventListener('click', event => {
  const thumb = event.target.closest('.thumb');
  if (thumb) thumb.setAttribute('aria-pressed', thumb.getAttribute('aria-pressed') !== 'true');
  const erase = event.target.closest('[data-erase]');
  if (erase) {
    document.querySelector('#live').live.begin('draw');
    trigger('erase', {number: +erase.dataset.erase});
  }
  const reset = event.target.closest('.reset');
  if (reset) {
    delete own[reset.closest('li').querySelector('[type=range]').dataset.face];
    reset.closest('li').classList.remove('personal');
    tell();
  }
});
watch('value', () => {
  const now = element.querySelector('ul')?.dataset.photo ?? '';
  if (now !== photo) [photo, own, ticks] = [now, {}, {}];
  each((item, box, range) => {
    box.checked = isTicked(box);
    if (!range) return;
    const mine = range.dataset.face in own;
    item.classList.toggle('personal', mine);
    range.value = mine ? own[range.dataset.face] : range.dataset.at;
    show(item, range);
  });
});
