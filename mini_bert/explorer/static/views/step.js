// Step: one step of training on this sentence, what it changes, and the way back.

import { ask, change, has, isOffline } from "../api.js";
import { lineChart } from "../charts.js";
import { bar, h, number, percent, put, table } from "../dom.js";
import { lossMove, movedTable } from "../predictions.js";
import { go, query } from "../state.js";

const RATES = ["0.0001", "0.0003", "0.001", "0.003", "0.01", "0.1"];

export async function show(root, { state, sentence, refusal, info, changed, again }) {
  // without a loss there is no step to take, but steps that stand can be taken back
  const blocked =
    refusal ??
    (!info.predicts
      ? "This model has no head for words, so there is no loss to step against."
      : sentence.predictions.length
        ? null
        : "Nothing is masked, so there is no loss to step against: click a word to mask it.");
  const result = h("div", { "aria-live": "polite" }),
    history = h("div"),
    ahead = h("div", { class: "outcomes", id: "ahead", hidden: true });
  const rate = h("input", {
    id: "rate",
    list: "rates",
    value: state.rate ?? "0.001",
    size: "8",
    inputmode: "decimal",
    autocomplete: "off",
  });
  const optimiser = h(
    "select",
    { id: "optimiser" },
    Object.entries(info.optimisers).map(([word, name], i) =>
      h("option", { value: word, selected: state.optimiser ? word === state.optimiser : i === 0 }, name),
    ),
  );
  const undo = h("button", { type: "button", id: "undo", onclick: () => act("undo") }, "Undo");
  const reset = h("button", { type: "button", id: "reset", onclick: () => act("reset") }, "Reset");
  const take = h("button", { type: "submit", id: "take-step", class: "main", disabled: blocked !== null }, "Take a step");
  const status = h("p", { class: "quiet", id: "steps-taken" });

  async function act(name, parameters = {}) {
    try {
      const found = await change(name, parameters);
      if (blocked !== null) return again();
      if (name === "step") put(result, outcome(found));
      else {
        const now = isOffline ? sentence : await ask("sentence", query(state));
        put(
          result,
          h(
            "p",
            {},
            name === "undo" ? "The last step is undone: " : "The model is as it was loaded: ",
            "the loss is ",
            h("b", { id: "loss-now", "data-value": now.loss }, number(now.loss, 6)),
            ".",
          ),
        );
      }
      changed({ state: found.state, steps: found.steps, history: found.history, undoable: found.undoable });
      draw(found);
    } catch (error) {
      put(result, h("p", { class: "refused" }, error.message));
    }
    return undefined;
  }

  function draw(found) {
    const taken = found.steps,
      first = taken - found.history.length + 1,
      focused = document.activeElement;
    undo.disabled = isOffline || !found.undoable;
    reset.disabled = isOffline || !taken;
    if (focused?.disabled) take.focus(); // a button that can do nothing more loses the focus
    ahead.hidden = taken > 0;
    status.textContent = taken
      ? `${taken === 1 ? "One step stands" : `${taken} steps stand`}; ${undoableText(taken, found.undoable)}. The files of the model are never changed.`
      : "No step has been taken. The files of the model are never changed, only the copy in memory.";
    put(
      history,
      ...(found.history.length > 1
        ? [
            h("h2", {}, "Loss before each step"),
            lineChart(
              [
                {
                  name: "loss",
                  class: "first",
                  dots: true,
                  x: found.history.map((_, i) => first + i),
                  y: found.history.map((entry) => entry.loss),
                },
              ],
              { label: "Loss before each step", xName: "step", yName: "loss" },
            ),
          ]
        : []),
    );
  }

  put(
    root,
    h(
      "p",
      { class: "lead" },
      "One step of training on this one sentence moves all parameters against their gradients. Watch what that does to the prediction, then undo it.",
    ),
    h(
      "form",
      {
        class: "panel step-form",
        onsubmit: (event) => {
          event.preventDefault();
          go({ rate: rate.value, optimiser: optimiser.value }, { silent: true });
          act("step", { ...query(state), learning_rate: rate.value, optimiser: optimiser.value });
        },
      },
      h("label", { for: "rate" }, "Learning rate"),
      rate,
      h(
        "datalist",
        { id: "rates" },
        RATES.map((value) => h("option", { value })),
      ),
      h("label", { for: "optimiser" }, "Optimiser"),
      optimiser,
      take,
      undo,
      reset,
    ),
    isOffline ? offlineSteps(info, (parameters) => act("step", { ...query(state), ...parameters })) : null,
    status,
    blocked === null ? null : h("p", { class: "refused" }, blocked),
    result,
    ahead,
    history,
  );
  draw(info);
  if (blocked === null && has("backward", query(state))) put(ahead, ...asked(await ask("backward", query(state)), rate));
  if (isOffline) for (const field of [rate, optimiser, take]) field.disabled = true;
}

/** What the gradient asks for, before any step: how far the loss should fall, and which parts will move. */
function asked(found, rate) {
  const { total, share, by_component: norms, by_layer: layers } = found.flow,
    forecast = h("p", { id: "forecast" });
  const predict = () => {
    const step = Number(rate.value),
      fall = step * total * total;
    put(
      forecast,
      ...(step > 0 && Number.isFinite(fall)
        ? [
            `For gradient descent with this rate: ${number(step, 3)} × ${number(total, 4)}² = `,
            h("b", { "data-value": fall }, number(fall, 3)),
            fall < found.loss
              ? `, from ${number(found.loss, 4)} to about ${number(found.loss - fall, 4)}. Take the step, and see how far off that is.`
              : `, more than the whole loss of ${number(found.loss, 4)}: such a step is too long for the forecast, and may raise the loss.`,
          ]
        : ["Type a learning rate above zero."]),
    );
  };
  rate.addEventListener("input", predict);
  predict();
  return [
    h(
      "section",
      { class: "panel" },
      h("h2", {}, "What a step should do"),
      h(
        "p",
        {},
        "Gradient descent subtracts the learning rate η times the gradient g from all parameters. If the step is short, the loss falls by η times the square of the gradient’s norm: η |g|².",
      ),
      forecast,
      h(
        "p",
        { class: "quiet" },
        "AdamW, Lion and Muon scale the gradient first, so they move other parts more, and the forecast is not theirs.",
      ),
    ),
    h(
      "section",
      { class: "panel" },
      h("h2", {}, "Which parts it moves"),
      table(
        ["part", ["|g|", "number"], ["share of |g|²", "number"], ""],
        Object.entries(norms).map(([name, norm]) => [name, number(norm, 3), percent(share[name]), bar(share[name])]),
      ),
      h("h3", {}, "Layer by layer"),
      table(
        ["|g| in", ...Object.keys(Object.values(layers)[0] ?? {}).map((name) => [name, "number"])],
        Object.entries(layers)
          .reverse()
          .map(([name, parts]) => [name.replace("_", " "), ...Object.values(parts).map((norm) => number(norm, 3))]),
      ),
    ),
  ];
}

function undoableText(taken, undoable) {
  if (!undoable) return "only a reset takes them back";
  if (undoable < taken) return `the last ${undoable === 1 ? "one" : undoable} can be undone`;
  return taken === 1 ? "it can be undone" : "all can be undone";
}

/** An exported file has the results of some steps, each taken from the model as it was loaded. */
function offlineSteps(info, take) {
  return h(
    "div",
    {},
    h(
      "p",
      { class: "quiet" },
      "This file has no model, but it holds what these steps did, each taken from the same beginning:",
    ),
    h(
      "p",
      {},
      (info.embedded?.steps ?? []).map((parameters) =>
        h(
          "button",
          { type: "button", class: "embedded-step", onclick: () => take(parameters) },
          `${info.optimisers[parameters.optimiser]}, rate ${parameters.learning_rate}`,
        ),
      ),
    ),
  );
}

function outcome(found) {
  return h(
    "div",
    {},
    lossMove(found, " not lower: the step was too long"),
    h(
      "div",
      { class: "outcomes" },
      found.predictions.map(movedTable),
      h(
        "section",
        { class: "panel" },
        h("h2", {}, "What moved"),
        table(
          ["part", ["gradient", "number"], ["change", "number"], ["change / size", "number"]],
          found.parts.map((part) => [
            part.part.replace("_", " "),
            number(part.gradient, 3),
            number(part.change, 3),
            number(part.ratio, 3),
          ]),
        ),
      ),
    ),
  );
}
