// Change: switch heads off and edit single weights, and watch the prediction move. The model itself stays as it is.

import { ask, isOffline } from "../api.js";
import { h, number, put } from "../dom.js";
import { keepingFocus } from "../place.js";
import { lossMove, movedTable } from "../predictions.js";
import { go, query, read } from "../state.js";

const STEPS = 200; // of the slider

export async function show(root, { state, sentence, info }) {
  if (!info.predicts || !sentence.predictions.length) {
    put(
      root,
      h(
        "p",
        { class: "panel" },
        info.predicts
          ? "Nothing is masked, so there is no prediction to watch: click a word to mask it."
          : "This model has no head for words, so there is no prediction to watch.",
      ),
    );
    return;
  }
  const outcome = h("div", { id: "outcome", "aria-live": "polite" }),
    heads = h("div", { class: "switches", id: "switches" }),
    edits = h("ul", { class: "edits", id: "edits" }),
    weight = h("div", { id: "weight" });
  let off = new Set((state.off ?? "").split(",").filter(Boolean)),
    edited = readEdits(state.edit),
    found = null,
    asking = false,
    again = false;

  const parameters = () => ({
    ...query(read()),
    off: [...off].sort().join(","),
    edit: edited.map(({ name, index, value }) => `${name}:${index.join(",")}:${value}`).join("\n"),
  });

  /** Ask for the changed pass; while an answer is on its way only the last wish is remembered. */
  async function update() {
    go({ off: parameters().off, edit: parameters().edit }, { silent: true });
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    do {
      again = false;
      try {
        found = await ask("intervene", parameters());
        keepingFocus(outcome, () => put(outcome, shownOutcome(found)));
      } catch (error) {
        put(outcome, h("p", { class: "refused" }, error.message));
      }
    } while (again);
    asking = false;
    drawHeads();
    drawEdits();
  }

  function toggle(names) {
    const all = names.every((name) => off.has(name));
    if (isOffline) off = new Set(all ? [] : names.slice(0, 1)); // a file has the answers for one head at a time
    else for (const name of names) all ? off.delete(name) : off.add(name);
    update();
  }

  function drawHeads() {
    const { num_layers: L, num_heads: A } = info.config;
    const row = (l) => Array.from({ length: A }, (_, a) => `${l}.${a}`);
    keepingFocus(heads, () =>
      put(
        heads,
        h("div", { class: "head-grid", style: { gridTemplateColumns: `auto repeat(${A}, minmax(0, 1fr))` } }, [
          h("span"),
          Array.from({ length: A }, (_, a) => h("span", { class: "axis-name" }, `head ${a}`)),
          Array.from({ length: L }, (_, l) => L - 1 - l).map((l) => [
            isOffline
              ? h("span", { class: "axis-name" }, `layer ${l}`)
              : h(
                  "button",
                  {
                    type: "button",
                    class: "link axis-name",
                    title: "All heads of this layer",
                    onclick: () => toggle(row(l)),
                  },
                  `layer ${l}`,
                ),
            row(l).map((name) =>
              h(
                "button",
                {
                  type: "button",
                  class: "switch",
                  "data-switch": name,
                  "aria-pressed": String(off.has(name)),
                  "aria-label": `layer ${name.replace(".", ", head ")}: off`,
                  onclick: () => toggle([name]),
                },
                off.has(name) ? "off" : "on",
              ),
            ),
          ]),
        ]),
      ),
    );
  }

  function drawEdits() {
    put(
      edits,
      edited.map((edit, i) =>
        h(
          "li",
          {},
          h("code", {}, `${edit.name}[${edit.index.join(",")}]`),
          ` = ${number(edit.value, 4)}`,
          found?.edits[i] ? ` (was ${number(found.edits[i].before, 4)}) ` : " ",
          h(
            "button",
            {
              type: "button",
              class: "link",
              onclick: () => {
                edited = edited.filter((other) => other !== edit);
                update();
              },
            },
            "put back",
          ),
        ),
      ),
    );
  }

  function setWeight(name, index, value) {
    const same = edited.find((edit) => edit.name === name && String(edit.index) === String(index));
    if (same) same.value = value;
    else edited.push({ name, index, value });
    update();
  }

  put(
    root,
    h(
      "p",
      { class: "lead" },
      isOffline
        ? "Switch a head off and watch what it was good for. In this file one head at a time; mini-bert explore takes any, and lets you edit weights."
        : "Switch heads off, or edit a weight, and watch the prediction move. Nothing is trained, and nothing stays changed: the other views show the model as it is.",
    ),
    h(
      "div",
      { class: "outcomes" },
      h(
        "div",
        {},
        h(
          "section",
          { class: "panel", "aria-label": "Heads" },
          h("h2", {}, "Heads"),
          h("p", { class: "quiet" }, "A head that is off adds nothing: its context is zero for every token."),
          heads,
        ),
        isOffline ? null : h("section", { class: "panel", "aria-label": "One weight" }, h("h2", {}, "One weight"), weight, edits),
      ),
      outcome,
    ),
  );
  if (!isOffline) weightForm(weight, info, state, edited, setWeight);
  drawHeads();
  await update();
}

function shownOutcome(found) {
  return [lossMove(found, " higher"), found.predictions.map(movedTable)];
}

function readEdits(text) {
  return (text ?? "")
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const [name, index, value] = line.split(":");
      return { name, index: (index ?? "").split(",").map(Number), value: Number(value) };
    });
}

/** A parameter, a place in it, and a slider for the number there. */
function weightForm(root, info, state, edited, setWeight) {
  const first = edited.at(-1),
    names = info.parameter_shapes,
    shapeOf = (name) => names.find(([other]) => other === name)?.[1] ?? [];
  const name = h(
    "select",
    { id: "weight-name" },
    names.map(([word]) => h("option", { value: word, selected: word === (first?.name ?? "W_Q_0") }, word)),
  );
  const place = h("span", { class: "place" }),
    slider = h("input", { type: "range", id: "weight-slider", min: String(-STEPS), max: String(STEPS), value: "0" }),
    field = h("input", { id: "weight-value", size: "9", inputmode: "decimal", autocomplete: "off" }),
    note = h("p", { class: "quiet" });
  let index = first?.index ?? [],
    reach = 1,
    turn = 0;

  async function look() {
    const mine = (turn += 1),
      shape = shapeOf(name.value);
    index = shape.map((size, i) => Math.max(0, Math.min(size - 1, Math.trunc(index[i]) || 0)));
    put(
      place,
      shape.map((size, axis) =>
        h(
          "label",
          {},
          axis ? "column " : "row ",
          h("input", {
            type: "number",
            min: "0",
            max: String(size - 1),
            value: String(index[axis]),
            onchange: (event) => {
              index[axis] = Number(event.target.value);
              look();
            },
          }),
        ),
      ),
    );
    try {
      const found = await ask("weight", { name: name.value, index: index.join(",") });
      if (mine !== turn) return;
      ({ reach } = found);
      const now = edited.find((edit) => edit.name === name.value && String(edit.index) === String(index));
      field.value = String(Number((now?.value ?? found.value).toPrecision(5)));
      slide();
      note.textContent = `In the model it is ${number(found.value, 5)}; the slider goes from −${number(reach, 3)} to ${number(reach, 3)}, twice the largest number of this parameter.`;
    } catch (error) {
      note.textContent = error.message;
    }
  }

  const slide = () => (slider.value = String(Math.round((Number(field.value) / reach) * STEPS)));
  slider.addEventListener("input", () => {
    field.value = String(Number(((Number(slider.value) / STEPS) * reach).toPrecision(4)));
    setWeight(name.value, [...index], Number(field.value));
  });
  field.addEventListener("change", () => {
    if (!Number.isFinite(Number(field.value))) return;
    slide();
    setWeight(name.value, [...index], Number(field.value));
  });
  name.addEventListener("change", look);
  put(
    root,
    h("p", { class: "weight-form" }, h("label", { for: "weight-name" }, "Parameter"), name, place),
    h("p", { class: "scrub" }, slider, h("label", {}, "value ", field)),
    note,
  );
  look();
}
