// Forward: tokens, embeddings, each block, predictions; every step with its formula, its shapes and its numbers.

import { ask, isOffline } from "./api.js";
import { h, number, put } from "./dom.js";
import { query } from "./state.js";
import { card, explanation, group, grouped, jumps, sources } from "./steps.js";

export async function show(root, { state, sentence, embedded }) {
  const { steps } = await ask("forward", query(state));
  const groups = grouped(steps);
  put(
    root,
    h(
      "p",
      { class: "lead" },
      "From tokens to predictions. Each card is one step: its formula, what goes in, and its numbers, a row for each token. ",
      isOffline ? "Click a framed cell for the sum that made it." : "Click a cell for the exact sum that made it.",
    ),
    jumps(groups, "Parts of the pass"),
    groups.map(([name, some]) =>
      group(name, [
        ...some.map((step) =>
          step.name === "tokens"
            ? tokensCard(step, sentence)
            : card({
                step,
                of: "forward",
                heading: step.title,
                place: ["step", "cell"],
                state,
                marked: embedded?.cells?.[step.name] ?? [],
                facts: [
                  sources(step, state),
                  h(
                    "p",
                    { class: "facts" },
                    `from ${number(step.min)} to ${number(step.max)}, mean ${number(step.mean)}`,
                  ),
                ],
                inspect: async (index) =>
                  explanation(await ask("cell", { ...query(state), name: step.name, index: index.join(",") })),
              }),
        ),
      ]),
    ),
  );
}

function tokensCard(step, sentence) {
  return h(
    "article",
    { class: "card", id: "forward-tokens", tabindex: "-1", "data-name": "tokens" },
    h("header", {}, h("h3", {}, step.title), h("span", { class: "shape" }, step.shape.join(" × "))),
    h(
      "p",
      { class: "facts" },
      "The text is cut into pieces of the vocabulary; each has a number, the row of its vector.",
    ),
    h(
      "ol",
      { class: "ids", start: "0" },
      sentence.tokens.map((token, i) => h("li", {}, h("span", {}, token), h("small", {}, sentence.ids[i]))),
    ),
  );
}
