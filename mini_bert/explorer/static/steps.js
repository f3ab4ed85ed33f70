// What the forward and the backward view share: the steps of a block, and a card for each.

import { ask, has, isOffline, unpack } from "./api.js";
import { h, math, number, put, shape, unique, whenSeen } from "./dom.js";
import { matrixView, mapHeight } from "./matrix.js";
import { go, opened, query, read } from "./state.js";

/** The cards of one block, under its name. */
export function group(id, title, lead, cards) {
  return h(
    "section",
    { class: "group", id: `group-${id}` },
    h("h2", { tabindex: "-1" }, title),
    lead,
    h("div", { class: "cards" }, cards),
  );
}

/** Why the step is there, and where it is derived. */
export function reason({ why, derivation }) {
  return why
    ? h(
        "p",
        { class: "why" },
        why,
        derivation
          ? [
              " ",
              isOffline
                ? h("span", { class: "quiet" }, `(derivation: docs/math/${derivation}.md)`)
                : h("a", { href: `/derivation/${derivation}`, target: "_blank", rel: "noopener" }, "Derivation"),
            ]
          : null,
      )
    : null;
}

/**
 * A step as a card. `of` is the pass; `facts` stand under the formula; `inspect(index)` makes what is shown
 * when a cell is chosen; `place` are the two keys of the address that hold the step and its cell; which maps are open
 * is a key of its own.
 */
export function card({ step, of, heading, facts, inspect, place, state, marked = [] }) {
  const id = `${of}-${step.name}`,
    numbers = h("div", { class: "numbers" }),
    isMap = step.shape.length > 1 || of === "backward",
    inspector = h("div", { class: "inspector", "aria-live": "polite" });
  const here = state[place[0]] === step.name;
  let chosen = here && state[place[1]] ? state[place[1]].split(",").map(Number) : null;
  let open = opened(state).includes(step.name);
  let matrix = null;
  const openButton = h(
    "button",
    { type: "button", "aria-expanded": String(open), onclick: () => setOpen(!open) },
    open ? "Close" : "Open",
  );
  const element = h(
    "article",
    { class: `card${here ? " named" : ""}`, id, tabindex: "-1", "data-name": step.name },
    h("header", {}, h("h3", {}, heading), h("span", { class: "shape", title: "shape" }, shape(step.shape)), openButton),
    reason(step),
    math(step.formula),
    facts,
    numbers,
    inspector,
  );

  /** Room for the map before it is there, so that nothing moves when it comes. */
  function reserve() {
    if (isMap) numbers.style.minHeight = `${mapHeight(step.shape, open)}px`;
  }

  function draw() {
    put(numbers, matrixView(matrix, { name: heading, open, marked, chosen, onSelect: select }));
  }

  async function load() {
    try {
      matrix ??= unpack(await ask("matrix", { ...query(state), of, name: step.name }));
      draw();
    } catch (error) {
      put(numbers, h("p", { class: "quiet" }, error.message));
    }
  }

  function setOpen(now) {
    open = now;
    element.classList.toggle("wide", open);
    openButton.textContent = open ? "Close" : "Open";
    openButton.setAttribute("aria-expanded", String(open));
    reserve();
    const others = opened().filter((name) => name !== step.name);
    const patch = { open: (open ? [...others, step.name] : others).join(",") };
    if (open || chosen) Object.assign(patch, { [place[0]]: step.name, [place[1]]: chosen?.join(",") });
    else if (read()[place[0]] === step.name) Object.assign(patch, { [place[0]]: "", [place[1]]: "" });
    go(patch, { silent: true });
    if (matrix) draw();
  }

  function select(index) {
    go({ [place[0]]: step.name, [place[1]]: index.join(",") }, { silent: true });
    look(index);
  }

  async function look(index) {
    chosen = index;
    put(inspector, h("p", { class: "quiet" }, "…"));
    let found;
    try {
      found = await inspect(index);
    } catch (error) {
      found = h("p", { class: "refused" }, error.message);
    }
    if (chosen === index) put(inspector, found); // not if another cell was chosen meanwhile
  }

  element.classList.toggle("wide", open);
  reserve();
  if (isMap) whenSeen(numbers, load);
  else openButton.remove();
  if (chosen) look(chosen);
  return element;
}

/** Names of arrays with their shapes; parameters can be opened. */
export function sources(step, state) {
  const place = h("div", { class: "numbers" });
  let shown = null;
  const parts = Object.entries(step.input_shapes).map(([name, sizes]) => {
    if (!step.parameters.includes(name) || !has("matrix", { ...query(state), of: "parameter", name }))
      return h("span", { class: "source" }, `${name} `, h("small", {}, shape(sizes)));
    const button = h(
      "button",
      {
        type: "button",
        class: "source",
        "aria-expanded": "false",
        title: `Show the parameter ${name}`,
        onclick: async () => {
          shown = shown === name ? null : name;
          for (const other of button.parentElement.querySelectorAll("button"))
            other.setAttribute("aria-expanded", String(other === button && shown !== null));
          if (shown === null) return put(place);
          try {
            const matrix = unpack(await ask("matrix", { ...query(state), of: "parameter", name }));
            if (shown === name) put(place, h("h4", {}, name), matrixView(matrix, { name }));
          } catch (error) {
            put(place, h("p", { class: "refused" }, error.message));
          }
          return undefined;
        },
      },
      `${name} `,
      h("small", {}, shape(sizes)),
    );
    return button;
  });
  return parts.length ? h("div", { class: "sources" }, h("p", {}, "from ", parts), place) : null;
}

/** Why a number is exactly zero, where it is. */
export function zero(found) {
  return found.zero ? h("p", { class: "zero" }, h("b", {}, "Why is this zero? "), found.zero) : null;
}

/** The sum behind a cell: what it is, its largest terms or all, and the total beside the model's number. */
export function explanation(cell) {
  const order = cell.terms
    .map((_, i) => i)
    .sort((a, b) => Math.abs(cell.terms[b].value) - Math.abs(cell.terms[a].value));
  const reach = Math.max(...cell.terms.map((term) => Math.abs(term.value))) || 1,
    few = 12;
  const place = h("div", {}),
    id = unique("terms");
  let all = cell.terms.length <= few;
  const draw = () => {
    const shown = all ? cell.terms.map((_, i) => i) : order.slice(0, few);
    const rest = all
      ? 0
      : cell.terms.reduce((sum, term) => sum + term.value, 0) - shown.reduce((sum, i) => sum + cell.terms[i].value, 0);
    put(
      place,
      h(
        "table",
        { class: "terms", id },
        h(
          "tbody",
          {},
          shown.map((i) =>
            h(
              "tr",
              {},
              h(
                "td",
                {},
                cell.terms[i].factors.map((factor, n) => [
                  n ? h("span", { class: "times" }, "×") : null,
                  h("span", { class: "factor" }, h("code", {}, factor.name), h("b", {}, number(factor.value))),
                ]),
              ),
              h("td", { class: "number" }, number(cell.terms[i].value)),
              h(
                "td",
                { class: "track" },
                h("span", {
                  class: cell.terms[i].value < 0 ? "minus" : "plus",
                  style: { width: `${(50 * Math.abs(cell.terms[i].value)) / reach}%` },
                }),
              ),
            ),
          ),
          all
            ? null
            : h(
                "tr",
                { class: "rest" },
                h("td", {}, `the other ${cell.terms.length - few} terms together`),
                h("td", { class: "number" }, number(rest)),
                h("td", {}),
              ),
        ),
      ),
    );
  };
  draw();
  const toggle =
    cell.terms.length <= few
      ? null
      : h(
          "button",
          {
            type: "button",
            "aria-controls": id,
            onclick: (event) => {
              all = !all;
              event.target.textContent = all ? `The ${few} largest terms` : `All ${cell.terms.length} terms in order`;
              draw();
            },
          },
          `All ${cell.terms.length} terms in order`,
        );
  return h(
    "div",
    { class: "explanation" },
    zero(cell),
    h("p", {}, h("code", { class: "expression" }, `${cell.step}[${cell.index.join(",")}] = ${cell.expression}`)),
    Object.keys(cell.quantities).length
      ? h(
          "p",
          { class: "quantities" },
          Object.entries(cell.quantities).map(([name, value]) =>
            h("span", {}, h("code", {}, name), ` = ${number(value, 6)}`),
          ),
        )
      : null,
    place,
    h(
      "p",
      { class: "total" },
      h(
        "span",
        {},
        `the sum of ${cell.terms.length === 1 ? "one term" : `${cell.terms.length} terms`}, as the formula says: `,
        h("b", { "data-total": cell.total }, number(cell.total, 7)),
      ),
      h("span", {}, " the model has ", h("b", { "data-value": cell.value }, number(cell.value, 7))),
    ),
    toggle,
  );
}
