// The page: reads the address, shows the sentence and one view, and listens to keys.

import { ask, isOffline, Refused } from "./api.js";
import { show as attention } from "./views/attention.js";
import { show as backward } from "./views/backward.js";
import { show as change } from "./views/change.js";
import { show as compare } from "./views/compare.js";
import { h, put } from "./dom.js";
import { show as forward } from "./views/forward.js";
import { show as layers } from "./views/layers.js";
import { arrive, keepingFocus, letGo } from "./place.js";
import { drawSentence } from "./sentence.js";
import { address, beginDrawing, endDrawing, go, query, read, rename, spot, VIEWS } from "./state.js";
import { beginTour } from "./tour.js";
import { show as step } from "./views/step.js";
import { show as training } from "./views/training.js";

const SHOW = { forward, attention, backward, step, change, compare, layers, training };
const element = (id) => document.getElementById(id);
let info = null,
  turn = 0,
  leave = null,
  shown = "",
  sentence = null;

/** Draw what the address says; with `arriving`, go to the card that it names. */
async function render({ arriving = false } = {}) {
  const state = read();
  if (!state.text) {
    rename(address({ ...state, ...info.example }));
    return render({ arriving });
  }
  const mine = (turn += 1);
  leave?.();
  leave = null;
  letGo();
  beginDrawing();
  drawViews(state);
  document.body.classList.add("busy");
  let key = "";
  try {
    Object.assign(info, await ask("info")); // another window may have changed the model
    if (mine !== turn) return undefined;
    drawModel();
    key = JSON.stringify([query(state), info.state]);
    let refusal = null;
    if (key !== shown) {
      try {
        sentence = await ask("sentence", query(state));
      } catch (error) {
        // the model may be what is wrong with it, and in Step that can be undone
        if (!(error instanceof Refused) || state.view !== "step") throw error;
        sentence = null;
        refusal = error.message;
      }
      if (mine !== turn) return undefined;
      drawSentence(element("sentence"), { state, sentence, info, error: refusal });
      shown = refusal === null ? key : "";
    }
    const scratch = document.createDocumentFragment(),
      holder = h("div", { class: `view view-${state.view}` });
    scratch.append(holder);
    const given = { state, sentence, refusal, info, embedded: info.embedded, changed, again: render };
    const done = await SHOW[state.view](holder, given);
    if (mine !== turn) return done?.();
    leave = done ?? null;
    keepingFocus(element("view"), () => put(element("view"), holder));
    const named = arriving && holder.querySelector(".card.named"),
      part = arriving && holder.querySelector(".group");
    if (named) arrive(named);
    else if (part && part.getBoundingClientRect().top < 0) arrive(part);
  } catch (error) {
    if (mine !== turn) return undefined;
    if (!(error instanceof Refused)) console.error(error);
    if (key !== shown) {
      drawSentence(element("sentence"), { state, sentence, info, error: error.message });
      shown = "";
    }
    put(element("view"), h("p", { class: "refused" }, error.message));
  } finally {
    if (mine === turn) {
      document.body.classList.remove("busy");
      endDrawing();
    }
  }
  return undefined;
}

/** The model was changed by a step: what is known of it is old. */
async function changed(found) {
  Object.assign(info, found);
  drawModel();
  shown = "";
  const state = read(),
    mine = turn;
  let error = null;
  try {
    const now = await ask("sentence", query(state));
    if (mine !== turn) return;
    sentence = now;
    shown = JSON.stringify([query(state), info.state]);
  } catch (refused) {
    if (mine !== turn) return;
    error = refused.message;
  }
  drawSentence(element("sentence"), { state, sentence, info, error });
}

function drawModel() {
  const { config } = info;
  put(
    element("model"),
    h("b", { title: `${config.num_layers} layers, ${config.num_heads} heads, width ${config.hidden_size}` }, info.name),
    info.steps
      ? h(
          "a",
          { class: "changed", href: address({ ...read(), view: "step" }) },
          `changed by ${info.steps} ${info.steps === 1 ? "step" : "steps"}`,
        )
      : ` ${info.parameters.toLocaleString("en")} parameters`,
  );
}

/** The links to the views; they stay, and only where they lead to is changed, so that one keeps the focus. */
function drawViews(state) {
  const nav = element("views");
  if (!nav.children.length)
    put(
      nav,
      VIEWS.map(([, title], i) =>
        h("a", { title: `${title} (${i + 1})` }, h("kbd", { "aria-hidden": "true" }, String(i + 1)), title),
      ),
    );
  VIEWS.forEach(([name], i) => {
    nav.children[i].href = address({ ...state, view: name });
    if (name === state.view) nav.children[i].setAttribute("aria-current", "page");
    else nav.children[i].removeAttribute("aria-current");
  });
  document.title = `${VIEWS.find(([name]) => name === state.view)[1]}: ${state.text.slice(0, 60)} – Mini-BERT explorer`;
}

// ---------------------------------------------------------------- looks and keys

const LOOKS = ["system", "light", "dark"];

function setLook(look) {
  if (look === "system") delete document.documentElement.dataset.look;
  else document.documentElement.dataset.look = look;
  element("theme").textContent = `Look: ${look}`;
  try {
    localStorage.setItem("look", look);
  } catch {
    /* a file may have no storage; the look then lasts as long as the page */
  }
}

function storedLook() {
  try {
    return LOOKS.includes(localStorage.getItem("look")) ? localStorage.getItem("look") : "system";
  } catch {
    return "system";
  }
}

function nextLook() {
  const now = document.documentElement.dataset.look ?? "system";
  setLook(LOOKS[(LOOKS.indexOf(now) + 1) % LOOKS.length]);
  if (info) render(); // pictures are drawn in the colours of the look
}

const KEYS = [
  ["1 – 8", "the eight views"],
  ["/", "type a sentence"],
  ["j, k", "the next step, the one before; behind the last one of a block, the next block"],
  ["m", "the words, to mask one"],
  ["arrow keys", "in a heat map: from cell to cell; with Shift by eight"],
  ["Enter", "in a heat map: choose the cell"],
  ["t", "light, dark, or as the system has it"],
  ["?", "these keys"],
];

function help() {
  const box = element("help");
  put(
    box,
    h("h2", { id: "help-title" }, "Keys"),
    h(
      "dl",
      {},
      KEYS.map(([key, meaning]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning)]),
    ),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  box.showModal();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || element("help").open) return;
  if (event.target.matches?.("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const view = VIEWS[Number(event.key) - 1]?.[0];
  if (view) go({ view });
  else if (event.key === "/") element("text")?.focus();
  else if (event.key === "m")
    (document.querySelector(".token.masked") ?? document.querySelector(".token:enabled"))?.focus();
  else if (event.key === "t") nextLook();
  else if (event.key === "?") help();
  else if (event.key === "j" || event.key === "k") nextCard(event.key === "j" ? 1 : -1);
  else return;
  event.preventDefault();
}

function nextCard(way) {
  const cards = [...document.querySelectorAll(".card")],
    here = cards.indexOf(document.activeElement?.closest(".card"));
  const beyond = document.getElementById(way > 0 ? "next-block" : "block-before");
  if (here >= 0 && !cards[here + way] && beyond) return beyond.click();
  const next = cards[Math.max(0, Math.min(cards.length - 1, here + way))];
  if (next) arrive(next, next);
  return undefined;
}

setLook(storedLook());
element("theme").addEventListener("click", nextLook);
element("help-button").addEventListener("click", help);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  element("view").focus();
});
addEventListener("keydown", onKey);
element("tour-button").addEventListener("click", () => beginTour(element("tour"), info));
addEventListener("moved", ({ detail }) => {
  if (info) render({ arriving: spot(detail.old) !== spot() });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => info && render());

ask("info")
  .then((found) => {
    info = found;
    document.body.classList.toggle("offline", isOffline);
    drawModel();
    return render({ arriving: true });
  })
  .catch((error) => put(element("view"), h("p", { class: "refused" }, error.message)));
