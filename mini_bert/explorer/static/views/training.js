// Training: the checkpoints of a run, one after another, beside its loss curve; looked for anew while it goes on.

import { ask, isOffline, unpack } from "../api.js";
import { headGrid } from "./attention.js";
import { lineChart } from "../charts.js";
import { h, number, put } from "../dom.js";
import { candidateList } from "../predictions.js";
import { go, query } from "../state.js";
import { liveTraining } from "./live.js";
import { nearest, timelinePanels, tokensAt } from "./timeline.js";

const EVERY = 5000; // milliseconds between looks at a run that is going on
const measure = () => h("code", {}, "mini-bert timeline RUN --tasks DIR");

/** The timeline of a model that comes with the package; its cursor is where the reader clicks. */
function shipped(timeline, of) {
  const box = h("section", { class: "panel timeline" });
  function draw(number) {
    put(
      box,
      h("h2", {}, `When ${of} learned what`),
      h("p", { class: "quiet" }, `The run of the model ${of}. ${where(timeline, number)}`),
      timelinePanels(timeline, {
        at: timeline.tokens[number],
        onPick: (tokens) => draw(nearest(timeline, tokens)),
      }),
    );
  }
  draw(timeline.steps.length - 1);
  return box;
}

function where(timeline, number) {
  const step = timeline.steps[number].toLocaleString("en"),
    tokens = timeline.tokens[number].toLocaleString("en");
  return `Numbers are those of step ${step}, after ${tokens} tokens.`;
}

export async function show(root, { state, sentence, info, changed }) {
  let { run } = await ask("run");
  const { timeline, of, notes } = await ask("timeline");
  if (!run) {
    const live = isOffline ? null : liveTraining(state, sentence, info, changed);
    put(
      root,
      h("p", { class: "lead" }, "Watch a prediction form while the model is trained."),
      live?.element,
      h(
        "p",
        { class: "panel" },
        isOffline
          ? "This file was written without a run: mini-bert explore --run DIR --export FILE TEXT puts its checkpoints in."
          : [
              "To look at a whole run, also while it goes on: ",
              h("code", {}, "mini-bert explore --run DIR"),
              ". To keep many models of a run, train with ",
              h("code", {}, "--set training.snapshots=20"),
              timeline ? "." : [", and measure what each of them knows with ", measure(), "."],
            ],
      ),
      timeline ? shipped(timeline, of) : null,
    );
    return live?.stop;
  }
  const curve = h("div"),
    chances = h("div"),
    learned = h(
      "section",
      { class: "panel timeline" },
      h("p", { class: "quiet" }, "To see when this run learned what: ", measure(), `. ${notes.join(" ")}`),
    ),
    detail = h("div", { "aria-live": "polite" }),
    status = h("p", { class: "quiet" });
  const slider = h("input", { type: "range", id: "checkpoint", min: "0", step: "1" }),
    name = h("output", { for: "checkpoint", id: "checkpoint-name" });
  const found = new Map(); // what each checkpoint says; `best` is another one at another step
  const keyOf = ({ name, step }) => `${name} ${step}`,
    keysOf = (checkpoints) => checkpoints.map(keyOf).join("\n");
  let playing = null,
    live = null,
    gone = false;
  const now = () => run.checkpoints[Number(slider.value)];

  async function fetchOne(checkpoint, withAttention) {
    const known = found.get(keyOf(checkpoint));
    if (known && (known.weights || !withAttention)) return known;
    const answer = await ask("checkpoint", {
      ...query(state),
      name: checkpoint.name,
      ...(withAttention || isOffline ? { attention: "1" } : {}),
    });
    found.set(keyOf(checkpoint), answer);
    return answer;
  }

  /** The figures of the snapshots, with the cursor at the chosen checkpoint. */
  function drawTimeline() {
    if (!timeline) return;
    const at = tokensAt(timeline, now()?.step ?? timeline.steps.at(-1));
    put(
      learned,
      h("h2", {}, "When it learned what"),
      h("p", { class: "quiet" }, where(timeline, nearest(timeline, at)), ` ${timeline.notes.join(" ")}`),
      timelinePanels(timeline, { at, onPick: (tokens) => pick(timeline.steps[nearest(timeline, tokens)]) }),
    );
  }

  /** Choose the checkpoint that is nearest to a step. */
  function pick(step) {
    const distances = run.checkpoints.map((checkpoint) => Math.abs(checkpoint.step - step));
    slider.value = String(distances.indexOf(Math.min(...distances)));
    choose();
  }

  async function choose() {
    drawTimeline();
    const checkpoint = now();
    if (!checkpoint) return drawCurve();
    name.textContent = `${checkpoint.name} (step ${checkpoint.step.toLocaleString("en")})`;
    go({ checkpoint: checkpoint.name }, { silent: true });
    drawCurve();
    try {
      const answer = await fetchOne(checkpoint, true);
      if (gone || !now() || keyOf(now()) !== keyOf(checkpoint)) return undefined;
      put(
        detail,
        h(
          "div",
          { class: "predictions" },
          answer.predictions.map((prediction) => candidateList(prediction)),
        ),
        answer.predictions.length ? null : h("p", { class: "quiet" }, "Mask a word to see its prediction form."),
        h("h3", {}, "Attention of every head at this checkpoint"),
        headGrid(unpack(answer.weights), { tokens: sentence.tokens }),
      );
      drawChances();
    } catch (error) {
      if (!gone) put(detail, h("p", { class: "refused" }, error.message));
    }
    return undefined;
  }

  function drawCurve() {
    const levels = Object.entries(run.baselines).map(([key, y]) => ({
      y,
      name: key === "uniform_loss" ? "uniform: ln V" : "by frequency",
    }));
    put(
      curve,
      lineChart(
        [
          { name: "training loss", class: "second", x: run.training.steps, y: run.training.losses },
          {
            name: "held-out loss",
            class: "first",
            x: run.heldout.steps,
            y: run.heldout.losses,
            dots: run.heldout.steps.length < 40,
          },
        ],
        {
          levels,
          at: now()?.step ?? null,
          label: "Loss over the run",
          yName: "loss",
          onPick: pick,
        },
      ),
    );
    status.textContent = `${run.name}: ${run.finished ? "finished" : "going on, or interrupted"}${run.step ? ` at step ${run.step.toLocaleString("en")}${run.total_steps ? ` of ${run.total_steps.toLocaleString("en")}` : ""}` : ""}; ${run.checkpoints.length} checkpoints. ${run.notes.join(" ")}`;
  }

  function drawChances() {
    const known = run.checkpoints
      .filter((checkpoint) => found.has(keyOf(checkpoint)))
      .sort((a, b) => a.step - b.step);
    if (known.length < 2 || !sentence.predictions.length) return;
    put(
      chances,
      h("h3", {}, "Probability of the target over the run"),
      lineChart(
        sentence.predictions.map((prediction, i) => ({
          name: `“${prediction.target}” at ${prediction.position}`,
          class: i ? "second" : "first",
          dots: true,
          x: known.map((checkpoint) => checkpoint.step),
          y: known.map((checkpoint) => found.get(keyOf(checkpoint)).predictions[i].probability),
        })),
        { at: now().step, label: "Probability of the target", yName: "probability" },
      ),
    );
  }

  /** One checkpoint after another, so that the line of probabilities fills without holding up a click. */
  async function fill() {
    for (const checkpoint of run.checkpoints) {
      if (gone) return;
      try {
        await fetchOne(checkpoint, false);
      } catch {
        /* a checkpoint that the run has removed; the next look at the run leaves it out */
      }
    }
    drawChances();
  }

  function range(chosen) {
    scrub.hidden = here.hidden = !run.checkpoints.length; // the curve is there from the first line of the log
    none.hidden = !scrub.hidden;
    slider.max = String(run.checkpoints.length - 1);
    const at = run.checkpoints.findIndex((checkpoint) => checkpoint.name === chosen);
    slider.value = String(at >= 0 ? at : run.checkpoints.length - 1);
  }

  /** A run removes its oldest checkpoints as it adds new ones; who was at the newest one stays at the newest. */
  async function look() {
    let next;
    try {
      ({ run: next } = await ask("run"));
    } catch {
      return; // the next look may be answered
    }
    if (gone || !next) return;
    const before = keysOf(run.checkpoints),
      last = Number(slider.value) >= run.checkpoints.length - 1,
      chosen = now();
    run = next;
    if (keysOf(run.checkpoints) === before) drawCurve();
    else {
      range(last ? null : chosen?.name);
      if (!chosen || !now() || keyOf(now()) !== keyOf(chosen)) await choose();
      else drawCurve();
      await fill();
    }
    if (run.finished) clearInterval(live);
  }

  const seen = () => document.visibilityState === "visible" && look(); // a hidden page's clock runs slowly

  const play = h(
    "button",
    {
      type: "button",
      id: "play",
      onclick: () => {
        if (playing) {
          clearInterval(playing);
          playing = null;
        } else {
          if (Number(slider.value) >= run.checkpoints.length - 1) slider.value = "0";
          playing = setInterval(() => {
            if (Number(slider.value) >= run.checkpoints.length - 1) play.click();
            else {
              slider.value = String(Number(slider.value) + 1);
              choose();
            }
          }, 700);
        }
        play.textContent = playing ? "Pause" : "Play";
      },
    },
    "Play",
  );
  slider.addEventListener("input", choose);
  const none = h("p", { class: "panel" }, "The run has no checkpoint yet; the page looks again every few seconds.");
  const scrub = h("div", { class: "panel scrub" }, h("label", { for: "checkpoint" }, "Checkpoint"), slider, name, play),
    here = h("section", { class: "panel" }, h("h2", {}, "At this checkpoint"), detail);
  const box = h(
    "div",
    {},
    scrub,
    h("div", { class: "training" }, h("section", { class: "panel" }, h("h2", {}, "Loss"), curve, chances), here),
  );
  put(
    root,
    h("p", { class: "lead" }, "Move through the checkpoints and watch predictions and attention form."),
    status,
    box,
    none,
    learned,
  );
  range(state.checkpoint);
  await choose();
  fill();
  if (!isOffline && !run.finished) {
    live = setInterval(look, EVERY);
    document.addEventListener("visibilitychange", seen);
  }
  return () => {
    gone = true;
    clearInterval(live);
    clearInterval(playing);
    document.removeEventListener("visibilitychange", seen);
  };
}
