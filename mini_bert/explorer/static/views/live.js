// Live training on the sentence that is shown: one small step after another, drawn as they are taken.

import { ask, change, unpack } from "../api.js";
import { lineChart } from "../charts.js";
import { h, number, percent, put } from "../dom.js";
import { query } from "../state.js";
import { headGrid } from "./attention.js";

const RATE = "0.0001",
  STEPS = 30,
  PAUSE = 120; // milliseconds between steps, so that the eye can follow

/** A panel that trains; `stop` ends it when the view is left. */
export function liveTraining(state, sentence, info, changed) {
  const blocked = !info.predicts
    ? "This model has no head for words, so there is nothing to train on a sentence."
    : sentence.predictions.length
      ? null
      : "Nothing is masked: click a word to mask it, and train the model to find it.";
  const curve = h("div"),
    chances = h("div"),
    heads = h("div"),
    status = h("p", { class: "quiet", id: "live-status", "aria-live": "polite" });
  let running = false,
    gone = false,
    losses = [sentence.loss],
    shares = sentence.predictions.map((prediction) => [prediction.probability]);

  const start = h(
    "button",
    {
      type: "button",
      class: "main",
      id: "live-start",
      disabled: blocked !== null,
      onclick: () => (running ? (running = false) : train()),
    },
    "Train on this sentence",
  );
  const reset = h(
    "button",
    { type: "button", id: "live-reset", onclick: putBack, disabled: !info.steps },
    "Back to the model as it was",
  );

  async function train() {
    running = true;
    start.textContent = "Stop";
    try {
      for (let n = 0; n < STEPS && running && !gone; n += 1) {
        const found = await change("step", { ...query(state), learning_rate: RATE, optimiser: "adamw" });
        if (gone) return;
        losses.push(found.loss_after);
        found.predictions.forEach((prediction, i) =>
          shares[i].push(prediction.words.find((word) => word.id === prediction.target_id).after),
        );
        changed({ state: found.state, steps: found.steps, history: found.history, undoable: found.undoable });
        draw();
        await new Promise((done) => setTimeout(done, PAUSE));
      }
      if (!gone) await drawHeads();
    } catch (error) {
      status.textContent = error.message;
    }
    running = false;
    start.textContent = "Train on this sentence";
    reset.disabled = false;
  }

  async function putBack() {
    running = false;
    try {
      const found = await change("reset");
      changed({ state: found.state, steps: found.steps, history: found.history, undoable: found.undoable });
      const now = await ask("sentence", query(state));
      losses = [now.loss];
      shares = now.predictions.map((prediction) => [prediction.probability]);
      reset.disabled = true;
      draw();
      await drawHeads();
    } catch (error) {
      status.textContent = error.message;
    }
  }

  function draw() {
    const x = losses.map((_, i) => i);
    status.textContent =
      losses.length > 1
        ? `${losses.length - 1} steps of AdamW with the learning rate ${RATE}: loss ${number(losses[0], 4)} → ${number(losses.at(-1), 4)}. This is memorising one sentence; training takes many.`
        : `Loss ${number(losses[0], 4)} before any step. Only the copy in memory is changed.`;
    put(
      curve,
      lineChart([{ name: "loss", class: "first", dots: true, x, y: losses }], {
        label: "Loss over the steps",
        yName: "loss",
        range: [0],
      }),
    );
    put(
      chances,
      lineChart(
        sentence.predictions.map((prediction, i) => ({
          name: `“${prediction.target}” at ${prediction.position}: ${percent(shares[i].at(-1))}`,
          class: i ? "second" : "first",
          dots: true,
          x,
          y: shares[i],
        })),
        { label: "Probability of the target over the steps", yName: "probability of the target", range: [0, 1] },
      ),
    );
  }

  async function drawHeads() {
    const found = await ask("attention", query(state));
    if (!gone) put(heads, headGrid(unpack(found.weights), { tokens: found.tokens, heads: found.heads }));
  }

  if (blocked === null) {
    draw();
    drawHeads().catch((error) => (status.textContent = error.message));
  }
  const element = h(
    "div",
    {},
    h("p", { class: "panel scrub" }, start, reset, blocked ? h("span", { class: "refused" }, blocked) : null),
    status,
    blocked
      ? null
      : h(
          "div",
          { class: "training" },
          h("section", { class: "panel" }, h("h2", {}, "As it is trained"), curve, chances),
          h("section", { class: "panel" }, h("h2", {}, "Attention of every head, now"), heads),
        ),
  );
  return {
    element,
    stop: () => {
      gone = true;
    },
  };
}
