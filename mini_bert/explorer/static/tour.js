// A guided tour of about a minute: it leads through the views and says what to look at.

import { h, put } from "./dom.js";
import { go } from "./state.js";

const SECONDS = 8; // at each stop, unless the reader goes on
const CLEAR = { step: "", cell: "", grad: "", entry: "", part: "", open: "" };

// what the address gets, what is framed, what is said, and whether the model must predict words for it
const STOPS = [
  {
    at: { view: "forward", ...CLEAR },
    frame: "#sentence",
    text: "A sentence, cut into tokens. The masked word is hidden from the model; beside it is what the model expects there. Click any word to mask it instead.",
  },
  {
    at: { view: "forward", ...CLEAR },
    frame: "#map",
    text: "The model as blocks, in the order of the computation. The lines at the side go past a block: what it computes is added to what came in. A click opens a block.",
  },
  {
    at: { view: "forward", ...CLEAR, step: "attention_weights_0" },
    frame: "#forward-attention_weights_0",
    text: "Each card is one step: why it is there, its formula, and its numbers. Here a row is a word, and strong colour shows which words it attends to. Click a cell for the sum behind it.",
  },
  {
    at: { view: "attention" },
    frame: "#heads",
    text: "All attention heads at a glance. A stripe beside the diagonal is a head that looks at the word before, or the word after.",
  },
  {
    at: { view: "backward", ...CLEAR, grad: "dlogits" },
    frame: "#backward-dlogits",
    predicts: true,
    text: "The way back. The gradient says how the loss changes with each number. Click one, and it is checked against a finite difference on the spot.",
  },
  {
    at: { view: "step" },
    frame: ".step-form",
    predicts: true,
    text: "Take one step of training on this sentence: the prediction changes, and Undo brings the model back, bit for bit.",
  },
  {
    at: { view: "change" },
    frame: "#switches",
    predicts: true,
    text: "Switch a head off and watch the prediction move: that is what the head was good for.",
  },
  {
    at: { view: "layers" },
    frame: "#lens",
    predicts: true,
    text: "What the model would say if it stopped after each layer. The answer forms from the bottom to the top. That is the tour; everything can be clicked.",
  },
];

let leave = () => {};

export function beginTour(root, info) {
  leave();
  const stops = STOPS.filter((stop) => !stop.predicts || info.predicts);
  const moving = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  let at = 0,
    timer = null,
    playing = moving,
    framed = null;

  function frame() {
    const element = document.querySelector(stops[at].frame);
    if (element === framed) return;
    framed?.classList.remove("toured");
    framed = element;
    element?.classList.add("toured");
    element?.scrollIntoView({ block: "nearest", behavior: "instant" });
  }
  const drawn = new MutationObserver(frame);

  function draw() {
    clearTimeout(timer);
    const last = at === stops.length - 1;
    put(
      root,
      h("p", { "aria-live": "polite" }, stops[at].text),
      h(
        "p",
        { class: "buttons" },
        h("span", { class: "quiet" }, `${at + 1} of ${stops.length}`),
        h("button", { type: "button", id: "tour-back", disabled: at === 0, onclick: () => move(-1) }, "Back"),
        last
          ? null
          : h(
              "button",
              {
                type: "button",
                id: "tour-play",
                onclick: () => {
                  playing = !playing;
                  draw();
                },
              },
              playing ? "Pause" : "Play",
            ),
        last
          ? null
          : h("button", { type: "button", class: "main", id: "tour-next", onclick: () => move(1) }, "Next"),
        h("button", { type: "button", id: "tour-end", onclick: () => leave() }, "End"),
      ),
    );
    if (playing && !last) timer = setTimeout(() => move(1), SECONDS * 1000);
  }

  function move(way) {
    at = Math.max(0, Math.min(stops.length - 1, at + way));
    go(stops[at].at);
    draw();
    frame();
    (document.getElementById("tour-next") ?? document.getElementById("tour-end")).focus({ preventScroll: true });
  }

  leave = () => {
    clearTimeout(timer);
    drawn.disconnect();
    framed?.classList.remove("toured");
    root.hidden = true;
    leave = () => {};
  };
  root.hidden = false;
  drawn.observe(document.body, { childList: true, subtree: true });
  move(0);
}
