// Layers: what each would predict, how alike they are, and which tokens the prediction rests on.

import { ask } from "../api.js";
import { ink, scale } from "../colours.js";
import { bar, h, number, percent, put, table, whenSeen } from "../dom.js";
import { matrixView } from "../matrix.js";
import { keepingFocus } from "../place.js";
import { go, placeIn, query } from "../state.js";

const nameOf = (name) =>
  name === "embeddings"
    ? "embeddings"
    : name === "final_hidden"
      ? "final LayerNorm"
      : name.replace("hidden_", "layer ");

export async function show(root, { state, sentence, info }) {
  const found = await ask("layers", query(state));
  put(
    root,
    h("p", { class: "lead" }, "The same sentence, seen layer by layer."),
    found.lens
      ? lens(found.lens, state, sentence, info)
      : h("p", { class: "quiet" }, "This model has no head for words, so its layers predict none."),
    found.lens && !sentence.predictions.length
      ? h("p", { class: "quiet" }, "Mask a word to see which tokens its prediction rests on.")
      : null,
    h(
      "div",
      { class: "training" },
      sentence.predictions.map(({ position }) => saliencyPlace(position, state, sentence)),
      similarity(found),
    ),
  );
}

function saliencyPlace(position, state, sentence) {
  const place = h("div", { class: "saliency-place" }, h("p", { class: "panel quiet" }, "Saliency …"));
  whenSeen(place, async () => {
    try {
      put(place, saliency(await ask("saliency", { ...query(state), position }), sentence));
    } catch (error) {
      put(place, h("p", { class: "refused" }, error.message));
    }
  });
  return place;
}

/** The first choice of each layer at each token, and the likeliest words at one position. */
function lens(found, state, sentence, info) {
  const place = h("section", { class: "panel", id: "lens", "aria-label": "Logit lens" });
  const draw = (chosen) => keepingFocus(place, () => put(place, lensParts(found, sentence, info, chosen, choose)));
  const choose = (position) => {
    go({ position }, { silent: true });
    draw(position);
  };
  requestAnimationFrame(() => {
    const scroll = place.querySelector(".scroll"), // in a narrow window the chosen column comes into sight
      cell = place.querySelector("td.chosen");
    if (cell) scroll.scrollLeft = cell.offsetLeft + cell.offsetWidth / 2 - scroll.clientWidth / 2;
  });
  draw(placeIn(state.position, sentence.tokens.length) ?? sentence.predictions[0]?.row ?? 1);
  return place;
}

function lensParts(found, sentence, info, chosen, choose) {
  const amount = scale(0, 1, false),
    target = sentence.predictions.find((prediction) => prediction.row === chosen),
    layers = found.names.map((_, i) => found.names.length - 1 - i);
  return [
    h("h2", {}, "Logit lens"),
    h(
      "p",
      { class: "quiet" },
      `What the model would predict${info.causal ? ", behind each token," : ""} if it stopped after each layer: the layer’s hidden states go through the final LayerNorm and the head. Click a column for more of its words.`,
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "lens" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, ""),
            sentence.tokens.map((token, i) =>
              h(
                "th",
                { scope: "col" },
                h(
                  "button",
                  {
                    type: "button",
                    class: "link",
                    "aria-pressed": String(i === chosen),
                    onclick: () => choose(i),
                  },
                  token,
                ),
              ),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          layers.map((layer) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, nameOf(found.names[layer])),
              found.top[layer].map((guesses, i) => {
                const colour = amount.rgb(guesses[0].probability);
                return h(
                  "td",
                  {
                    class: i === chosen ? "chosen" : "",
                    title: `${guesses[0].token}: ${percent(guesses[0].probability)}`,
                    style: { background: `rgb(${colour.join(" ")})`, color: ink(colour) },
                  },
                  guesses[0].token,
                );
              }),
            ),
          ),
        ),
      ),
    ),
    h("h3", {}, `${info.causal ? "After" : "At"} position ${chosen}, “${sentence.tokens[chosen]}”`),
    h(
      "div",
      { class: "lens-detail" },
      [...layers].reverse().map((layer) =>
        h(
          "section",
          {},
          h("h4", {}, nameOf(found.names[layer])),
          h(
            "ol",
            {},
            found.top[layer][chosen].map((guess) =>
              h(
                "li",
                { class: guess.id === target?.target_id ? "target" : "" },
                h("span", {}, guess.token),
                bar(guess.probability),
                h("span", { class: "number" }, percent(guess.probability)),
              ),
            ),
          ),
          h(
            "p",
            { class: "quiet" },
            `entropy ${number(found.entropy[layer][chosen], 3)}`,
            found.target?.[chosen]
              ? `; target ${percent(found.target[chosen].probability[layer])}, rank ${found.target[chosen].rank[layer].toLocaleString("en")}`
              : "",
          ),
        ),
      ),
    ),
  ];
}

/** What each token adds to the logit of the target. */
function saliency(found, sentence) {
  const values = found.methods.map((method) => method.attributions);
  const reach = values.map((row) => Math.max(...row.map(Math.abs)) || 1);
  const colour = scale(-reach[0], reach[0], true);
  return h(
    "section",
    { class: "panel saliency", "aria-label": "Saliency" },
    h("h2", {}, `Saliency: what speaks for “${found.target}” at position ${found.position}`),
    h(
      "p",
      { class: "tinted" },
      sentence.tokens.map((token, i) => {
        const rgb = colour.rgb(values[0][i]);
        return h(
          "span",
          { style: { background: `rgb(${rgb.join(" ")})`, color: ink(rgb) }, title: number(values[0][i]) },
          token,
        );
      }),
    ),
    table(
      ["token", ...found.methods.flatMap((method) => [[method.method, "number"], ""])],
      sentence.tokens.map((token, i) => [
        token,
        ...found.methods.flatMap((method, m) => [
          h("span", { "data-value": method.attributions[i] }, number(method.attributions[i], 3)),
          h(
            "span",
            { class: "track" },
            h("span", {
              class: method.attributions[i] < 0 ? "minus" : "plus",
              style: { width: `${(50 * Math.abs(method.attributions[i])) / reach[m]}%` },
            }),
          ),
        ]),
      ]),
    ),
    h(
      "p",
      { class: "quiet" },
      `Integrated gradients start from a sentence of masks and add up to the change of the logit, ${number(found.methods[0].output - found.methods[0].baseline_output, 4)}, but for ${number(Math.abs(found.methods[0].gap), 2)} that the integral’s points leave over.`,
    ),
  );
}

function similarity(found) {
  if (!found.similarity) return h("p", { class: "quiet" }, found.similarity_note);
  const names = found.similarity_names.map(nameOf),
    n = names.length;
  const amount = scale(0, 1, false);
  return h(
    "section",
    { class: "panel", "aria-label": "Similarity of layers" },
    h("h2", {}, "Similarity between layers"),
    h(
      "p",
      { class: "quiet" },
      "Linear CKA of the tokens’ representations (debiased): 1 for the same up to rotation and scale, 0 for unrelated. A sentence has few tokens, so the figures are rough.",
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "lens cka" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th"),
            names.map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          found.similarity.map((row, i) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, names[i]),
              row.map((value) => {
                const rgb = amount.rgb(value);
                return h(
                  "td",
                  {
                    class: "number",
                    "data-value": value,
                    style: { background: `rgb(${rgb.join(" ")})`, color: ink(rgb) },
                  },
                  number(value, 2),
                );
              }),
            ),
          ),
        ),
      ),
    ),
    found.cosine
      ? [
          h("h3", {}, "How far each token turns from layer to layer"),
          matrixView(
            {
              shape: [n - 1, found.cosine[0].length],
              data: Float32Array.from(found.cosine.flat()),
              signed: true,
              axes: [
                { kind: "layer", labels: names.slice(1) },
                { kind: "token", labels: found.cosine_tokens },
              ],
            },
            { name: "Cosine with the layer before" },
          ),
          h("p", { class: "quiet" }, "The cosine of a token’s vector with the one a layer before."),
        ]
      : null,
  );
}
