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

/** The view and its parameters, as the address has them now. */
export function read() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
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
    history.replaceState(null, "", next);
    if (!silent) dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = next;
}

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
