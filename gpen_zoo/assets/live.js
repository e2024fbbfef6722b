// Small changes of a result, told to the server in turn. Gradio's client may post an event just as it closes the stream
// of the one before, and then waits for its answer for ever (seen in five of six runs of 29 touches, 150 ms apart). So a
// run of quick touches is told once, and only while no other answer of this tab is awaited.
const PAUSE = 200; // ms without a touch, soon after an answer
const AT_REST = 40; // ms, where nothing was answered lately: a single touch is told at once
const LATELY = 1000; // ms
let answered = 0;
let wanted = {}; // the newest of each kind
let timer = 0;
const awaited = new Set();
const hold = () => {
  document.querySelector('#download').disabled = true; // what it holds is older than the touch
};
const soon = () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (awaited.size || !Object.keys(wanted).length) return;
    awaited.add('live');
    trigger('input');
  }, performance.now() - answered < LATELY ? PAUSE : AT_REST);
};
element.closest('#live').live = {
  tell(kind, value) {
    wanted[kind] = value;
    hold();
    soon();
  },
  // What the event just triggered is about.
  take() {
    const told = wanted;
    wanted = {};
    return told;
  },
  begin(name) { awaited.add(name); },
  done(name) {
    awaited.delete(name);
    answered = performance.now();
    if (!Object.keys(wanted).length) return;
    trigger('hold'); // the answer has given the download back
    soon();
  },
};
