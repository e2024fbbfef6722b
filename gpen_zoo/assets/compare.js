// Before and after under one divider: pointer, touch and keyboard through one range input.
const box = () => element.querySelector('.compare');
const show = () => {
  const range = element.querySelector('input[type=range]');
  if (!range) return;
  if (element.dataset.at) range.value = element.dataset.at;
  box().style.setProperty('--at', range.value + '%');
  box().classList.toggle('actual', element.dataset.actual === '1');
  for (const img of element.querySelectorAll('img')) {
    // Both as wide as the larger, which is the result where it was enlarged.
    const fit = () => {
      const widest = Math.max(...[...element.querySelectorAll('img')].map(one => one.naturalWidth));
      for (const one of element.querySelectorAll('img')) one.style.width = element.dataset.actual === '1' ? widest / devicePixelRatio + 'px' : '';
    };
    img.complete ? fit() : img.addEventListener('load', fit, {once: true});
  }
};
element.addEventListener('input', event => {
  if (event.target.type !== 'range') return;
  element.dataset.at = event.target.value;
  box().style.setProperty('--at', event.target.value + '%');
});
element.addEventListener('click', event => {
  const button = event.target.closest('button[data-do]');
  if (!button) return;
  if (button.dataset.do === 'screen') {
    document.fullscreenElement ? document.exitFullscreen() : box().requestFullscreen();
    return;
  }
  element.dataset.actual = element.dataset.actual === '1' ? '' : '1';
  if (element.dataset.actual === '1' && !box().hasAttribute('data-full')) trigger('full_size');
  show();
});
watch('value', show);
show();
