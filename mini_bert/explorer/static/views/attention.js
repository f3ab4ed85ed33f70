// Attention: all heads at a glance, one head as arcs and as a matrix, one pair of words dimension by dimension.

import { ask, unpack } from "../api.js";
import { arcs, signedBars } from "../charts.js";
import { scale } from "../colours.js";
import { h, number, put } from "../dom.js";
import { matrixView } from "../matrix.js";
import { keepingFocus } from "../place.js";
import { go, placeIn, query } from "../state.js";

/** A number of an array whose axes of length one stand for all. */
function entry(array, index) {
  return array.data[array.shape.reduce((place, size, axis) => place * size + (size === 1 ? 0 : index[axis]), 0)];
}

const lower = (title) => title.charAt(0).toLowerCase() + title.slice(1);

/** All heads of all layers, as buttons with a small picture each. */
export function headGrid(weights, { chosen = null, onPick, heads = [], tokens }) {
  const [L, A, T] = weights.shape,
    colouring = scale(0, 1, false);
  return h(
    "div",
    { class: "head-grid", style: { gridTemplateColumns: `auto repeat(${A}, minmax(0, 1fr))` } },
    h("span"),
    Array.from({ length: A }, (_, a) => h("span", { class: "axis-name" }, `head ${a}`)),
    Array.from({ length: L }, (_, l) => L - 1 - l).map((l) => [
      h("span", { class: "axis-name side" }, `layer ${l}`),
      Array.from({ length: A }, (_, a) => {
        const canvas = h("canvas", { width: T, height: T, "aria-hidden": "true" });
        const context = canvas.getContext("2d"),
          image = context.createImageData(T, T);
        const offset = (l * A + a) * T * T;
        for (let i = 0; i < T * T; i += 1) image.data.set([...colouring.rgb(weights.data[offset + i]), 255], 4 * i);
        context.putImageData(image, 0, 0);
        const about = heads.find((head) => head.layer === l && head.head === a);
        const picked = chosen && chosen[0] === l && chosen[1] === a;
        return h(
          "button",
          {
            type: "button",
            class: "head",
            "aria-pressed": onPick ? String(Boolean(picked)) : null,
            disabled: !onPick,
            "aria-label": `layer ${l}, head ${a}${about ? `, ${about.type}` : ""}`,
            "data-head": `${l},${a}`,
            onclick: () => onPick?.(l, a),
          },
          canvas,
          about ? h("span", {}, about.type) : null,
        );
      }),
    ]),
  );
}

export async function show(root, { state }) {
  const found = await ask("attention", query(state));
  const weights = unpack(found.weights),
    { tokens } = found,
    [L, A, T] = weights.shape;
  const chosen = [placeIn(state.layer, L) ?? L - 1, placeIn(state.head, A) ?? 0];
  let asked = placeIn(state.query, T),
    key = placeIn(state.key, T),
    turn = 0;
  const grid = h("div", { id: "heads" }),
    detail = h("div", { class: "head-detail", id: "head" }),
    pair = h("section", { class: "panel pair", id: "pair", "aria-label": "One pair" });
  const weight = (i, j) => weights.data[((chosen[0] * A + chosen[1]) * T + i) * T + j];

  function drawGrid() {
    const drawn = headGrid(weights, {
      chosen,
      heads: found.heads,
      tokens,
      onPick: (layer, head) => {
        chosen[0] = layer;
        chosen[1] = head;
        go({ layer, head }, { silent: true });
        drawGrid();
        drawHead();
      },
    });
    keepingFocus(grid, () => put(grid, drawn));
  }

  function pick(i, j = key) {
    asked = i;
    key = i === null ? null : j;
    go({ query: asked ?? "", key: key ?? "" }, { silent: true });
    drawHead();
  }

  function drawHead() {
    const about = found.heads.find((head) => head.layer === chosen[0] && head.head === chosen[1]);
    const one = {
      shape: [T, T],
      signed: false,
      axes: [
        { kind: "token", labels: tokens },
        { kind: "token", labels: tokens },
      ],
      data: weights.data.subarray((chosen[0] * A + chosen[1]) * T * T, (chosen[0] * A + chosen[1] + 1) * T * T),
    };
    const parts = [
      h(
        "h2",
        { id: "head-name" },
        `Layer ${chosen[0]}, head ${chosen[1]}`,
        about ? h("span", { class: "type" }, about.type) : null,
      ),
      about
        ? h(
            "p",
            { class: "facts" },
            `entropy ${number(about.entropy, 3)} nats, mean distance ${number(about.distance, 3)} tokens; weight on itself ${number(about.diagonal, 2)}, on the token before ${number(about.previous, 2)}, after ${number(about.next, 2)}, on [CLS], [SEP] and punctuation ${number(about.delimiter, 2)}`,
          )
        : null,
      arcs(tokens, weight, { query: asked, onPick: (i) => pick(i) }),
      h(
        "p",
        { class: "quiet" },
        asked === null
          ? "Weights of at least 0.1 as arcs; click a word for all of its own. Arcs to earlier words are orange, to later ones violet."
          : `What “${tokens[asked]}” looks at. Click it again for all words.`,
      ),
      h("h3", {}, "As a matrix"),
      h(
        "p",
        { class: "quiet" },
        "A row for each word that asks, a column for each that is looked at; rows add up to one. Click a cell to take its score apart.",
      ),
      matrixView(one, {
        name: "Attention weights",
        open: true,
        chosen: asked !== null && key !== null ? [asked, key] : null,
        onSelect: ([i, j]) => pick(i, j),
      }),
    ];
    keepingFocus(detail, () => put(detail, parts));
    drawPair();
  }

  async function drawPair() {
    const mine = (turn += 1),
      i = asked ?? Math.max(0, found.masks?.[0] ?? 0),
      j = key ?? bestKey(i);
    let parts;
    try {
      parts = pairOf(i, j, ...(await scored()));
    } catch (error) {
      parts = [h("p", { class: "refused" }, error.message)];
    }
    if (mine === turn) keepingFocus(pair, () => put(pair, parts)); // not if another pair was chosen meanwhile
  }

  /** What the scores of the chosen layer are made of: the step, its queries and keys, and what is added, with titles. */
  async function scored() {
    const { steps } = await ask("forward", query(state)),
      named = new Map(steps.map((step) => [step.name, step])),
      scores = named.get(`scores_${chosen[0]}`);
    const arrays = [...scores.inputs, scores.name].map(async (name) => ({
      ...unpack(await ask("matrix", { ...query(state), of: "forward", name })),
      title: named.get(name).title,
    }));
    const [Q, K, ...rest] = await Promise.all(arrays);
    return [Q, K, rest.slice(0, -1), rest.at(-1)];
  }

  function pairOf(i, j, Q, K, biases, scores) {
    const select = (id, label, value, change) =>
      h(
        "label",
        {},
        `${label} `,
        h(
          "select",
          { id, onchange: (event) => change(Number(event.target.value)) },
          tokens.map((token, i) => h("option", { value: i, selected: i === value }, `${i} ${token}`)),
        ),
      );
    const d = Q.shape[2];
    const row = (matrix, t) => Array.from(matrix.data.subarray((chosen[1] * T + t) * d, (chosen[1] * T + t + 1) * d));
    const q = row(Q, i),
      k = row(K, j),
      terms = q.map((value, n) => (value * k[n]) / Math.sqrt(d));
    const product = terms.reduce((a, b) => a + b, 0),
      added = biases.map((bias) => ({ title: bias.title, value: entry(bias, [chosen[1], i, j]) })),
      hidden = entry(scores, [chosen[1], i, j]) === -Infinity,
      score = hidden ? -Infinity : added.reduce((sum, { value }) => sum + value, product);
    const order = terms
      .map((_, n) => n)
      .sort((a, b) => Math.abs(terms[b]) - Math.abs(terms[a]))
      .slice(0, 5);
    return [
      h("h2", {}, "Q · K of one pair"),
      h(
        "p",
        {},
        select("pair-asks", "asks", i, (n) => pick(n, j)),
        " ",
        select("pair-looked-at", "is looked at", j, (n) => pick(i, n)),
      ),
      h(
        "p",
        { class: "big" },
        "score = q · k / √",
        String(d),
        added.map((_, n) => ` + s${added.length > 1 ? n + 1 : ""}`),
        hidden ? ", but this key is hidden: " : " = ",
        h("b", { id: "pair-score", "data-value": score }, number(score, 6)),
        h(
          "span",
          {},
          ", weight after softmax ",
          h("b", { id: "pair-weight", "data-value": weight(i, j) }, number(weight(i, j), 6)),
        ),
      ),
      added.length
        ? h(
            "p",
            { class: "facts", id: "pair-parts" },
            `q · k / √${d} = ${number(product, 4)}`,
            added.map(({ title, value }, n) => `; s${added.length > 1 ? n + 1 : ""}, ${lower(title)}: ${number(value, 4)}`),
            ".",
          )
        : null,
      ...[
        [q, `q of “${tokens[i]}”: ${lower(Q.title)}`],
        [k, `k of “${tokens[j]}”: ${lower(K.title)}`],
        [terms, "q k / √d, dimension by dimension"],
      ].map(([values, label]) =>
        h("figure", { class: "bars-box" }, h("figcaption", {}, label), signedBars(values, { label })),
      ),
      h(
        "p",
        { class: "facts" },
        "Largest: ",
        order
          .map((n) => `dimension ${n}: ${number(q[n], 3)} × ${number(k[n], 3)} / √${d} = ${number(terms[n], 3)}`)
          .join("; "),
        ".",
      ),
    ];
  }

  function bestKey(i) {
    let best = 0;
    for (let j = 1; j < T; j += 1) if (weight(i, j) > weight(i, best)) best = j;
    return best;
  }

  put(
    root,
    h(
      "p",
      { class: "lead" },
      "Every head of every layer, the last layer on top. In each picture a row is a word that asks, and strong colour shows where it looks.",
    ),
    h("div", { class: "attention" }, h("div", {}, grid, pair), detail),
  );
  drawGrid();
  drawHead();
}
