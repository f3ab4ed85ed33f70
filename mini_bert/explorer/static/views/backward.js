// Backward: the loss and its gradient, from the logits down to the embedding rows, each entry to be verified.

import { ask, isOffline } from "../api.js";
import { bar, h, number, percent, put, table } from "../dom.js";
import { around, blockName, blockOf, modelMap } from "../map.js";
import { arrive } from "../place.js";
import { go, query } from "../state.js";
import { card, group, zero } from "../steps.js";

const CLEAR = ["grad", "entry"];

export async function show(root, { state, embedded }) {
  const found = await ask("backward", query(state));
  const withParameters = state.parameters === "1";
  const steps = found.steps.filter((step) => withParameters || !step.is_parameter || step.component === "embeddings");
  const { blocks } = found,
    place = new Map(found.steps.map((step) => [step.name, step.place])),
    // begin where the gradient begins: at the top of the model
    chosen =
      state.grad || state.part ? blockOf(blocks, { part: state.part, name: place.get(state.grad) }) : blocks.length - 1,
    block = blocks[chosen],
    inside = steps.filter((step) => block.steps.includes(step.place));
  put(
    root,
    lossBox(
      found,
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          id: "parameters",
          checked: withParameters,
          onchange: (event) => go({ parameters: event.target.checked ? "1" : "" }, { replace: true }),
        }),
        " gradients of all parameters too",
      ),
    ),
    h(
      "div",
      { class: "mapped" },
      modelMap(blocks, chosen, {
        clear: CLEAR,
        cards: inside.map((step) => [`backward-${step.name}`, `d${step.symbol}`, step.title]),
      }),
      h(
        "div",
        { class: "beside" },
        h(
          "div",
          {},
          group(
            block.id,
            blockName(block),
            h(
              "p",
              { class: "lead quiet" },
              "The gradient of the loss, in the order in which it comes. ",
              isOffline
                ? "Click a framed cell to see it compared with a finite difference."
                : "Click any cell to compare it with a finite difference.",
            ),
            inside.map((step) => gradientCard(step, state, embedded)),
          ),
          around(blocks, chosen, { clear: CLEAR, reverse: true }),
        ),
        norms(found, steps),
      ),
    ),
  );
}

function gradientCard(step, state, embedded) {
  return card({
    step,
    of: "backward",
    heading: step.is_parameter ? `Gradient of ${step.of}` : `Gradient: ${step.title}`,
    place: CLEAR,
    state,
    marked: embedded?.entries?.[step.name] ?? [],
    facts: h(
      "p",
      { class: "facts" },
      h("b", {}, `norm ${number(step.norm)}`),
      `, from ${number(step.min)} to ${number(step.max)}`,
      step.gradients.length
        ? `; made from ${step.gradients.join(", ")}${step.values.length ? ` with ${step.values.join(", ")}` : ""}`
        : "",
    ),
    inspect: async (index) =>
      verification(step, index, await ask("verify", { ...query(state), name: step.name, index: index.join(",") })),
  });
}

/** Loss, and the softmax's answer beside what was wanted. */
function lossBox(found, choice) {
  return h(
    "section",
    { class: "panel loss", "aria-label": "Loss" },
    h("p", { class: "big" }, "loss = ", h("b", { id: "loss", "data-value": found.loss }, number(found.loss, 6))),
    h(
      "div",
      {},
      found.predictions.map((prediction) =>
        h(
          "p",
          {},
          "−ln p(“",
          h("b", {}, prediction.target),
          `”) at position ${prediction.position}: `,
          `p = ${percent(prediction.probability)}, rank ${prediction.rank.toLocaleString("en")}`,
          prediction.guessed ? h("em", {}, " (no target was chosen, so this is the model’s own first choice)") : null,
        ),
      ),
      found.predictions.length > 1 ? h("p", { class: "quiet" }, "The loss is their mean.") : null,
    ),
    choice,
  );
}

/** The norms of all gradients as a map of the pass, and the flow by layer. */
function norms(found, steps) {
  const values = steps.filter((step) => !step.is_parameter);
  const logs = values.map((step) => Math.log10(Math.max(step.norm, 1e-12)));
  const low = Math.min(...logs) - 0.3,
    high = Math.max(...logs);
  const list = h(
    "ol",
    { class: "norms" },
    values.map((step, i) =>
      h(
        "li",
        {},
        h(
          "button",
          {
            type: "button",
            class: "link",
            onclick: () => {
              const target = document.getElementById(`backward-${step.name}`);
              if (target) arrive(target, target);
              else go({ grad: step.name, entry: "", part: "" });
            },
          },
          step.name,
        ),
        bar((logs[i] - low) / (high - low || 1), step.layer === null ? "" : `layer-${step.layer % 2}`),
        h("span", { class: "number" }, number(step.norm, 3)),
      ),
    ),
  );
  return h(
    "aside",
    { class: "panel norms-box", "aria-label": "Norms" },
    h("h2", {}, "Norms by layer"),
    table(
      ["layer", ["out", "number"], ["in", "number"], ["gain", "number"]],
      [...found.flow.layers]
        .reverse()
        .map((layer) => [
          `${layer.layer}${layer.verdict === "steady" ? "" : `, ${layer.verdict}`}`,
          number(layer.at_output, 3),
          number(layer.at_input, 3),
          number(layer.gain, 3),
        ]),
    ),
    h(
      "p",
      { class: "quiet" },
      "out: at the layer’s output, where the gradient arrives; in: at its input, where it leaves.",
    ),
    h("h3", {}, "Residual split"),
    table(
      ["layer", ["through", "number"], ["past", "number"]],
      [...found.flow.layers].reverse().flatMap((layer) => [
        [`${layer.layer} feed-forward`, number(layer.through_feedforward, 3), number(layer.past_feedforward, 3)],
        [`${layer.layer} attention`, number(layer.through_attention, 3), number(layer.past_attention, 3)],
      ]),
    ),
    h("h3", {}, "Share of the parameters’ gradient"),
    h(
      "ul",
      { class: "shares" },
      Object.entries(found.flow.share).map(([name, share]) =>
        h("li", {}, h("span", {}, name), bar(share), h("span", { class: "number" }, percent(share))),
      ),
    ),
    h("h3", {}, "Every step (log scale)"),
    list,
  );
}

function verification(step, index, found) {
  const row = (name, value, key, digits = 8) => [
    name,
    h("b", { "data-value": value, class: key }, number(value, digits)),
  ];
  return h(
    "div",
    { class: "explanation" },
    zero(found),
    h("p", {}, h("code", { class: "expression" }, `d loss / d ${found.of}[${found.index.join(",")}]`)),
    table(
      ["", ["", "number"]],
      [
        row("backward pass, as shown (float32)", found.shown, "shown"),
        row("backward pass in float64", found.analytic, "analytic"),
        row("finite difference of the loss", found.numeric, "numeric"),
        row("relative error of the last two", found.error, "error", 3),
      ],
    ),
    h(
      "p",
      { class: found.passed ? "good" : "refused" },
      found.passed
        ? "They agree."
        : found.at_kink
          ? "A ReLU switches within every step that was tried, so a difference cannot measure this slope."
          : "They do not agree.",
    ),
    h(
      "p",
      { class: "quiet" },
      `The number was moved by ±${number(found.step, 3)} and half of that, in the middle of the pass, and the loss computed again.`,
    ),
  );
}
