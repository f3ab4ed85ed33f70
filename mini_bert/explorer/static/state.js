// The address holds what is shown: #/view?text=…&mask=…; every change is an address that can be kept.

export const VIEWS = [
  ["forward", "Forward"],
  ["attention", "Attention"],
  ["backward", "Backward"],
  ["step", "Step"],
  ["change", "Change"],
  ["compare", "Compare"],
  ["layers", "Layers"],
  ["training", "Training"],
];
const KEYS = [
  "text",
  "pair",
  "mask",
  "target",
  "part",
  "step",
  "cell",
  "grad",
  "entry",
  "open",
  "parameters",
  "layer",
  "head",
  "query",
  "key",
  "position",
  "rate",
  "optimiser",
  "checkpoint",
  "off",
  "edit",
  "other",
  "otherpair",
  "othermask",
];

// what belongs to one sentence, and means nothing in another
const OF_SENTENCE = ["pair", "mask", "target", "step", "cell", "grad", "entry", "open", "query", "key", "position"];

// Inside a cell of a notebook the page has no address of its own to change: there it is kept here.
let kept = location.protocol === "about:" ? "" : null;

/** The address of what is shown, from its # on. */
export function here() {
  return kept ?? location.hash;
}

/** Another address in the place of this one; nothing is drawn. */
export function rename(next) {
  if (kept === null) history.replaceState(null, "", next);
  else kept = next;
}

function announce(old) {
  dispatchEvent(new CustomEvent("moved", { detail: { old } }));
}

if (kept === null) {
  // a move within the page has no old address; from another one, what it names is looked for
  addEventListener("hashchange", (event) => announce(event.oldURL ? new URL(event.oldURL).hash : location.hash));
} else {
  // a link would lead the notebook elsewhere
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#/']");
    if (!link || event.defaultPrevented) return;
    event.preventDefault();
    move(link.getAttribute("href"));
  });
}

function move(next) {
  if (kept === null) location.hash = next;
  else {
    const old = kept;
    kept = next;
    announce(old);
  }
}

/** The view and its parameters, as the address has them now, or as another one has them. */
export function read(hash = here()) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const view = VIEWS.some(([name]) => name === path) ? path : "forward";
  const given = new URLSearchParams(query);
  return { view, ...Object.fromEntries(KEYS.filter((key) => given.has(key)).map((key) => [key, given.get(key)])) };
}

/** The address of a state. */
export function address(state) {
  const given = new URLSearchParams();
  for (const key of KEYS) {
    if (state[key] !== undefined && state[key] !== null && state[key] !== "") given.set(key, state[key]);
  }
  return `#/${state.view}?${given}`;
}

/** Go to a state; small moves, such as from cell to cell, replace the entry in the browser's history. */
export function go(patch, { replace = false, silent = false } = {}) {
  const next = address({ ...read(), ...patch });
  if (next === here()) return;
  if (silent || replace) {
    if (silent) follow(next);
    rename(next);
    if (!silent) announce(next);
  } else move(next);
}

/** Another sentence, or another pair. */
export function goToText(text, pair = "") {
  go({ ...Object.fromEntries(OF_SENTENCE.map((key) => [key, ""])), text, pair });
}

/** What of an address names the part and the card that are open in its view. */
export function spot(hash = here()) {
  const { view, part, step, grad } = read(hash);
  return `${view} ${part} ${view === "backward" ? grad : step}`;
}

/** The names of the cards whose maps are open, of both passes. */
export function opened(state = read()) {
  return (state.open ?? "").split(",").filter(Boolean);
}

/** A whole number from an address, kept to the places that there are; null for none. */
export function placeIn(text, size) {
  if (text === undefined || text === "") return null;
  return Math.max(0, Math.min(size - 1, Math.trunc(Number(text)) || 0));
}

// ---------------------------------------------------------------- what is shown

// The page says in `data-shown` of its body which address it shows; while it draws another one it says none.
let drawn = null;

export function beginDrawing() {
  drawn = here();
  delete document.body.dataset.shown;
}

export function endDrawing() {
  document.body.dataset.shown = drawn;
}

/** A small move is shown by whoever makes it. */
function follow(next) {
  if (drawn !== here()) return;
  drawn = next;
  if (document.body.dataset.shown) document.body.dataset.shown = next;
}

// ---------------------------------------------------------------- the sentence

/** The parameters that say which sentence is meant. */
export function query(state = read()) {
  return Object.fromEntries(["text", "pair", "mask", "target"].filter((key) => state[key]).map((key) => [key, state[key]]));
}

export function masks(state = read()) {
  return (state.mask ?? "").split(",").filter(Boolean).map(Number);
}

export function targets(state = read()) {
  return new Map(
    (state.target ?? "")
      .split("\n")
      .filter(Boolean)
      .map((line) => {
        const colon = line.indexOf(":");
        return [Number(line.slice(0, colon)), line.slice(colon + 1)];
      }),
  );
}

export function joinTargets(found) {
  return [...found]
    .sort((a, b) => a[0] - b[0])
    .map(([position, word]) => `${position}:${word}`)
    .join("\n");
}
