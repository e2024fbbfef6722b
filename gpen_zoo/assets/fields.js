// Gradio's own fields, where they say the wrong thing.
// The browser's sign for a picture it cannot show says nothing; the status says why.
for (const [kind, broken] of [['error', true], ['load', false]]) {
  document.addEventListener(kind, event => {
    if (event.target.closest?.('.photo-field')) event.target.classList.toggle('broken', broken);
  }, true);
}
// Its empty upload fields are called something else than what is written in them, in one language only.
const nameless = () => {
  for (const button of document.querySelectorAll('.upload-container[aria-label]')) {
    if (button.textContent.trim()) button.removeAttribute('aria-label');
  }
};
new MutationObserver(nameless).observe(document.body, {childList: true, subtree: true, attributeFilter: ['aria-label']});
nameless();
