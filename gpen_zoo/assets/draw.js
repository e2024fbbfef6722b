// A box drawn over the photo with mouse, pen or finger, or typed in; told in photo pixels when Add is pressed.
const stage = () => element.querySelector('.canvas');
const field = name => element.querySelector(`[data-side=${name}]`);
const sides = () => ['x', 'y', 'w', 'h'].map(name => +field(name).value);
let from = null;
let photo = '';
let draft = [0, 0, 0, 0]; // kept, because the server draws this anew while somebody is still at it
const show = () => {
  const [x, y, w, h] = sides();
  const {width, height} = stage().dataset;
  const box = element.querySelector('.draft');
  draft = [x, y, w, h];
  box.hidden = !(w > 0 && h > 0);
  box.style.cssText = `left:${100 * x / width}%;top:${100 * y / height}%;width:${100 * w / width}%;height:${100 * h / height}%`;
  element.querySelector('[data-do=add]').disabled = box.hidden;
};
const at = event => {
  const area = stage().getBoundingClientRect();
  const within = (value, size) => Math.max(0, Math.min(1, value / size));
  return [
    Math.round(within(event.clientX - area.left, area.width) * stage().dataset.width),
    Math.round(within(event.clientY - area.top, area.height) * stage().dataset.height),
  ];
};
element.addEventListener('pointerdown', event => {
  if (!event.target.closest('.canvas') || event.button) return;
  event.preventDefault();
  stage().setPointerCapture(event.pointerId);
  from = at(event);
});
element.addEventListener('pointermove', event => {
  if (!from) return;
  const to = at(event);
  [['x', 0], ['y', 1]].forEach(([name, axis]) => { field(name).value = Math.min(from[axis], to[axis]); });
  [['w', 0], ['h', 1]].forEach(([name, axis]) => { field(name).value = Math.abs(from[axis] - to[axis]); });
  show();
});
for (const end of ['pointerup', 'pointercancel']) element.addEventListener(end, () => { from = null; });
element.addEventListener('input', show);
const add = () => {
  if (element.querySelector('[data-do=add]').disabled) return;
  document.querySelector('#live').live.begin('draw');
  trigger('drawn', {box: sides()});
  photo = ''; // the draft has served
};
watch('value', () => {
  const now = element.querySelector('.draw')?.dataset.photo ?? '';
  if (now !== photo) [photo, draft] = [now, [0, 0, 0, 0]];
  if (!now) return;
  ['x', 'y', 'w', 'h'].forEach((name, place) => { field(name).value = draft[place]; });
  show();
});
element.addEventListener('click', event => { if (event.target.closest('[data-do=add]')) add(); });
element.addEventListener('keydown', event => { if (event.key === 'Enter' && event.target.dataset.side) add(); });
