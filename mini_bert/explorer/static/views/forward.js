// Forward: tokens, embeddings, each block, predictions; every step with its formula, its shapes and its numbers.

import { ask, isOffline } from "../api.js";
import { h, number, put } from "../dom.js";
import { around, blockName, blockOf, modelMap } from "../map.js";
import { query } from "../state.js";
import { card, explanation, group, reason, sources } from "../steps.js";

const CLEAR = ["step", "cell"];

export async function show(root, { state, sentence, embedded }) {
  const { steps, blocks } = await ask("forward", query(state)),
    chosen = blockOf(blocks, { part: state.part, name: state.step }),
    block = blocks[chosen],
    inside = steps.filter((step) => block.steps.includes(step.name));
  put(
    root,
    h(
      "div",
      { class: "mapped" },
      modelMap(blocks, chosen, {
        clear: CLEAR,
        cards: inside.map((step) => [`forward-${step.name}`, step.symbol, step.title]),
      }),
      h(
        "div",
        {},
        group(
          block.id,
          blockName(block),
          h(
            "p",
            { class: "lead quiet" },
            "One card per step: its formula, what goes in, and its numbers, a row for each token. ",
            isOffline ? "Click a framed cell for the sum that made it." : "Click a cell for the exact sum that made it.",
          ),
          inside.map((step) =>
            step.name === "tokens" ? tokensCard(step, sentence) : stepCard(step, state, embedded),
          ),
        ),
        around(blocks, chosen, { clear: CLEAR }),
      ),
    ),
  );
}

function stepCard(step, state, embedded) {
  return card({
    step,
    of: "forward",
    heading: step.title,
    place: CLEAR,
    state,
    marked: embedded?.cells?.[step.name] ?? [],
    facts: [
      sources(step, state),
      h("p", { class: "facts" }, `from ${number(step.min)} to ${number(step.max)}, mean ${number(step.mean)}`),
    ],
    inspect: async (index) =>
      explanation(await ask("cell", { ...query(state), name: step.name, index: index.join(",") })),
  });
}

function tokensCard(step, sentence) {
  return h(
    "article",
    { class: "card", id: "forward-tokens", tabindex: "-1", "data-name": "tokens" },
    h("header", {}, h("h3", {}, step.title), h("span", { class: "shape" }, step.shape.join(" × "))),
    reason(step),
    h(
      "ol",
      { class: "ids", start: "0" },
      sentence.tokens.map((token, i) => h("li", {}, h("span", {}, token), h("small", {}, sentence.ids[i]))),
    ),
  );
}
