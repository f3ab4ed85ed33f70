// Compare: two sentences side by side, or two models, from the tokens to the heads.

import { ask, isOffline, unpack } from "../api.js";
import { h, number, put } from "../dom.js";
import { matrixView } from "../matrix.js";
import { candidateList } from "../predictions.js";
import { go, query } from "../state.js";
import { headGrid } from "./attention.js";

export async function show(root, { state, info }) {
  const asked = isOffline
    ? {}
    : Object.fromEntries(
        ["other", "otherpair", "othermask"].filter((key) => state[key]).map((key) => [key, state[key]]),
      );
  const found = await ask("compare", { ...query(state), ...asked }),
    [, second] = found.sides;
  const field = h("input", {
    id: "other",
    type: "text",
    value: second.text,
    maxlength: String(info.longest_text),
    autocomplete: "off",
    spellcheck: "false",
    disabled: isOffline,
  });
  put(
    root,
    h(
      "form",
      {
        class: "panel type",
        onsubmit: (event) => {
          event.preventDefault();
          go({ other: field.value, otherpair: "", othermask: "" });
        },
      },
      h("label", { for: "other" }, found.models ? `Sentence for ${second.name}` : "Second sentence"),
      field,
      isOffline ? null : h("button", { type: "submit" }, "Compare"),
    ),
    h(
      "p",
      { class: "quiet" },
      found.chosen
        ? "For a start the same words in reverse order: how much do positions matter? Type any other sentence."
        : found.models
          ? `Left ${found.sides[0].name}, right ${second.name}, each with its own pieces.`
          : "Click a word of the right sentence to mask it there; the left one is the sentence above.",
      !found.models && !isOffline
        ? [" For two models: ", h("code", {}, "mini-bert explore --against NAME_OR_DIR"), "."]
        : null,
    ),
    h(
      "div",
      { class: "sides" },
      found.sides.map((side, i) => sideBox(side, i === 1 && !isOffline)),
    ),
    found.cosine ? alikeBox(found) : null,
  );
}

function sideBox(side, clickable) {
  const toggle = (i) => {
    const now = new Set(side.masks);
    if (!now.delete(i)) now.add(i);
    go({ other: side.text, otherpair: side.pair, othermask: [...now].sort((a, b) => a - b).join(",") || "none" });
  };
  return h(
    "section",
    { class: "panel side-box" },
    h("h2", {}, side.name),
    h(
      "div",
      { class: "tokens" },
      side.tokens.map((token, i) => {
        const masked = side.masks.includes(i);
        return h(
          "button",
          {
            type: "button",
            class: `token${masked ? " masked" : ""}${side.special[i] ? " special" : ""}${side.types[i] ? " second" : ""}`,
            "aria-pressed": clickable ? String(masked) : null,
            disabled: !clickable || side.special[i],
            onclick: () => toggle(i),
          },
          h("span", {}, token),
          masked && side.original[i] !== token ? h("small", {}, side.original[i]) : null,
        );
      }),
    ),
    side.loss === null
      ? h("p", { class: "quiet" }, side.predicts ? "Nothing is masked here." : "This model predicts no words.")
      : [
          h("p", {}, "loss ", h("b", { "data-value": side.loss }, number(side.loss, 5))),
          side.predictions.map((prediction) => candidateList(prediction, 5)),
        ],
    h("h3", {}, "Attention of every head"),
    headGrid(unpack(side.weights), { tokens: side.tokens, heads: side.heads }),
  );
}

function alikeBox(found) {
  return h(
    "section",
    { class: "panel" },
    h("h2", {}, "How alike the vectors are, layer by layer"),
    h(
      "p",
      { class: "quiet" },
      "The cosine of the two vectors at each position: 1 where both sides have the same direction. A difference in one word spreads to the others from layer to layer.",
    ),
    matrixView(
      {
        shape: [found.cosine.length, found.cosine[0].length],
        data: Float32Array.from(found.cosine.flat()),
        signed: true,
        axes: [
          { kind: "layer", labels: found.layers },
          { kind: "position", labels: found.labels },
        ],
      },
      { name: "Cosine of the two sides", open: true },
    ),
  );
}
