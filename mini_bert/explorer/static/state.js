// The address holds what is shown: #/view?text=…&mask=…; every change is an address that can be kept.

export const VIEWS = [
  ["forward", "Forward"],
  ["attention", "Attention"],
  ["backward", "Backward"],
  ["step", "Step"],
  ["layers", "Layers"],
  ["training", "Training"],
];
const KEYS = [
  "text",
  "mask",
  "target",
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
];

// what belongs to one sentence, and means nothing in another
const OF_SENTENCE = ["mask", "target", "step", "cell", "grad", "entry", "open", "query", "key", "position"];

/** The view and its parameters, as the address has them now, or as another one has them. */
export function read(hash = location.hash) {
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
  if (next === location.hash) return;
  if (silent || replace) {
    if (silent) follow(next);
    history.replaceState(null, "", next);
    if (!silent) dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}

/** Another sentence. */
export function goToText(text) {
  go({ ...Object.fromEntries(OF_SENTENCE.map((key) => [key, ""])), text });
}

/** What of an address names the card that is open in its view. */
export function spot(hash = location.hash) {
  const { view, step, grad } = read(hash);
  return `${view} ${view === "backward" ? grad : step}`;
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
  drawn = location.hash;
  delete document.body.dataset.shown;
}

export function endDrawing() {
  document.body.dataset.shown = drawn;
}

/** A small move is shown by whoever makes it. */
function follow(next) {
  if (drawn !== location.hash) return;
  drawn = next;
  if (document.body.dataset.shown) document.body.dataset.shown = next;
}

// ---------------------------------------------------------------- the sentence

/** The parameters that say which sentence is meant. */
export function query(state = read()) {
  return Object.fromEntries(["text", "mask", "target"].filter((key) => state[key]).map((key) => [key, state[key]]));
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
