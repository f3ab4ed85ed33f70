// Small drawings in SVG: bars over a middle line, lines over steps, arcs over a sentence.

import { h, number, s } from "./dom.js";

/** Values of either sign as upright bars, one a column. */
export function signedBars(
  values,
  { height = 70, label, colour = (value) => (value < 0 ? "var(--minus)" : "var(--plus)") } = {},
) {
  const reach = Math.max(...values.map(Math.abs)) || 1,
    width = 6 * values.length,
    middle = height / 2;
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "bars", preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("line", { x1: 0, x2: width, y1: middle, y2: middle, class: "axis" }),
    values.map((value, i) => {
      const size = Math.max(0.5, (Math.abs(value) / reach) * (middle - 1));
      return s(
        "rect",
        { x: 6 * i + 0.5, width: 5, y: value < 0 ? middle : middle - size, height: size, fill: colour(value) },
        s("title", {}, `dimension ${i}: ${number(value, 5)}`),
      );
    }),
  );
}

/** Lines over a common x; a line is {name, x, y, class}. `levels` are lines across, `at` an upright one.
    With `log` the axis of x is logarithmic; `size` and `range`, of y, are for a chart among many. */
export function lineChart(
  lines,
  { levels = [], at = null, label, xName = "step", yName, onPick, log = false, size = null, range = [] } = {},
) {
  const [width, height] = size ?? [Math.max(300, Math.min(640, innerWidth - 70)), 260],
    bottom = xName ? 34 : 20,
    right = 10,
    top = yName ? 24 : 12;
  const some = lines.filter((line) => line.x.length);
  const scaled = (value) => (log ? Math.log10(Math.max(value, 1)) : value);
  const xs = some.flatMap((line) => line.x.map(scaled)),
    ys = [...some.flatMap((line) => line.y), ...range];
  if (!xs.length) return h("p", { class: "quiet" }, "There is nothing to draw yet.");
  const now = at === null ? null : scaled(at);
  const [x0, x1] = [Math.min(...xs, now ?? Infinity), Math.max(...xs, now ?? -Infinity)];
  let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  // a level that is near belongs to the picture; one that is far would squeeze the lines, so it is only named
  const reach = 0.3 * (y1 - y0 || 1),
    inside = levels.filter((level) => level.y >= y0 - reach && level.y <= y1 + reach),
    named = levels.filter((level) => level.name);
  [y0, y1] = [Math.min(y0, ...inside.map((level) => level.y)), Math.max(y1, ...inside.map((level) => level.y))];
  if (y1 === y0) [y0, y1] = [y0 - 0.5, y1 + 0.5];
  const pad = 0.05 * (y1 - y0);
  [y0, y1] = [y0 >= 0 ? Math.max(0, y0 - pad) : y0 - pad, y1 + pad];
  const put = (value, a, b, from, to) => from + ((value - a) / (b - a || 1)) * (to - from);
  const Y = (value) => put(value, y0, y1, height - bottom, top);
  const ticks = (a, b, n) => {
    const raw = (b - a) / n || 1,
      power = 10 ** Math.floor(Math.log10(raw));
    const step = power * ([1, 2, 5, 10].find((m) => m * power >= raw) ?? 10);
    const first = Math.ceil(a / step - 1e-6), // a tick at the end itself is not lost to rounding
      last = Math.floor(b / step + 1e-6);
    return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  };
  const yTicks = ticks(y0, y1, height > 150 ? 5 : 3),
    digits = [3, 4, 5, 6].find((n) => new Set(yTicks.map((tick) => number(tick, n))).size === yTicks.length) ?? 7,
    left = 14 + 7 * Math.max(...yTicks.map((tick) => number(tick, digits).length)),
    X = (value) => put(scaled(value), x0, x1, left, width - right);
  const many = width > 450 ? 6 : 3;
  const powers = Array.from({ length: Math.floor(x1) - Math.ceil(x0) + 1 }, (_, i) => 10 ** (Math.ceil(x0) + i));
  const xTicks = log ? powers.filter((_, i) => i % Math.ceil(powers.length / many) === 0) : ticks(x0, x1, many);
  const chart = s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": label },
    yTicks.map((tick) => [
      s("line", { x1: left, x2: width - right, y1: Y(tick), y2: Y(tick), class: "grid" }),
      s("text", { x: left - 6, y: Y(tick) + 4, "text-anchor": "end" }, number(tick, digits)),
    ]),
    xTicks.map((tick) =>
      s(
        "text",
        { x: X(tick), y: height - bottom + 16, "text-anchor": "middle" },
        log ? amount(tick) : tick.toLocaleString("en"),
      ),
    ),
    s("text", { x: (left + width) / 2, y: height - 3, "text-anchor": "middle" }, xName),
    yName ? s("text", { x: 2, y: 11, class: "axis-title" }, yName) : null,
    inside.map((level) => [
      s("line", { x1: left, x2: width - right, y1: Y(level.y), y2: Y(level.y), class: `level ${level.class ?? ""}` }),
    ]),
    some.map((line) => [
      s("polyline", {
        class: `line ${line.class ?? ""}`,
        points: line.x.map((x, i) => `${X(x).toFixed(1)},${Y(line.y[i]).toFixed(1)}`).join(" "),
      }),
      line.dots
        ? line.x.map((x, i) =>
            s(
              "circle",
              { cx: X(x), cy: Y(line.y[i]), r: line.dots === true ? 4 : line.dots, class: `dot ${line.class ?? ""}` },
              s("title", {}, line.titles?.[i] ?? `${xName} ${x}: ${number(line.y[i])}`),
            ),
          )
        : null,
    ]),
    at === null ? null : s("line", { x1: X(at), x2: X(at), y1: top, y2: height - bottom, class: "now" }),
  );
  if (onPick) {
    chart.classList.add("pick");
    chart.addEventListener("click", (event) => {
      const box = chart.getBoundingClientRect();
      const x = put(((event.clientX - box.left) / box.width) * width, left, width - right, x0, x1);
      onPick(log ? 10 ** x : x);
    });
  }
  return h(
    "figure",
    { class: "chart-box" },
    chart,
    h(
      "figcaption",
      { class: "key" },
      some.filter((line) => line.name).map((line) => h("span", { class: line.class ?? "" }, line.name)),
      named.map((level) =>
        h(
          "span",
          { class: "level-key" },
          `${level.name} ${number(level.y, 3)}${inside.includes(level) ? "" : level.y > y1 ? " (above)" : " (below)"}`,
        ),
      ),
    ),
  );
}

/** 10,000 as 10k. */
function amount(value) {
  const [size, unit] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ].find(([size]) => value >= size) ?? [1, ""];
  return `${value / size}${unit}`;
}

/** One head over the sentence: an arc from each token to those that it attends to, its own weight as a ring. */
export function arcs(tokens, weight, { query = null, onPick } = {}) {
  const width = tokens.map((token) => 14 + 8 * Math.max(2, [...token].length));
  const starts = width.map((_, i) => width.slice(0, i).reduce((a, b) => a + b, 0));
  const middle = starts.map((x, i) => x + width[i] / 2),
    total = starts.at(-1) + width.at(-1);
  const span = Math.max(...tokens.map((_, i) => Math.max(middle[i] - middle[0], middle.at(-1) - middle[i])));
  const shown = (i, j) => (query === null ? weight(i, j) >= 0.1 : i === query && weight(i, j) >= 0.01);
  const pairs = tokens.flatMap((_, i) => tokens.map((__, j) => [i, j])).filter(([i, j]) => shown(i, j));
  const reach = Math.min(170, 30 + span * 0.32);
  const bend = ([i, j]) => (i === j ? 26 : 16 + (Math.abs(middle[i] - middle[j]) / span) * (reach - 16) * 1.25);
  const base = 8 + Math.max(30, ...pairs.map((pair) => 0.78 * bend(pair)));
  const curves = pairs
    .sort((a, b) => weight(...a) - weight(...b))
    .map(([i, j]) => {
      const w = weight(i, j),
        top = base - bend([i, j]),
        [from, to] = [middle[i], middle[j]];
      const [a, b] = i === j ? [-4, -16] : [0, 0]; // an arc to itself is a ring
      return s(
        "path",
        {
          d: `M${from + a} ${base} C${from + b} ${top} ${to - b} ${top} ${to - a} ${base}`,
          class: j < i ? "arc back" : j > i ? "arc on" : "arc self",
          "stroke-width": (0.5 + 5.5 * w).toFixed(2),
          opacity: (0.25 + 0.75 * w).toFixed(2),
        },
        s("title", {}, `“${tokens[i]}” → “${tokens[j]}”: ${number(w, 3)}`),
      );
    });
  const words = tokens.map((token, i) => {
    const chosen = i === query;
    const word = s(
      "g",
      {
        class: `word${chosen ? " chosen" : ""}`,
        tabindex: "0",
        role: "button",
        "aria-pressed": String(chosen),
        "aria-label": `Attention of ${token}`,
      },
      s("rect", { x: starts[i] + 1, y: base + 3, width: width[i] - 2, height: 24, rx: 5 }),
      s("text", { x: middle[i], y: base + 20, "text-anchor": "middle" }, token),
      query === null
        ? null
        : s(
            "text",
            { x: middle[i], y: base + 42, "text-anchor": "middle", class: "quiet" },
            weight(query, i) >= 0.01 ? number(weight(query, i), 2) : "",
          ),
    );
    const pick = () => onPick?.(chosen ? null : i);
    word.addEventListener("click", pick);
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pick();
      }
    });
    return word;
  });
  return h(
    "div",
    { class: "scroll" },
    s(
      "svg",
      {
        width: total,
        height: base + 50,
        class: "arcs",
        role: "group",
        "aria-label": "Attention as arcs over the sentence",
      },
      curves,
      words,
    ),
  );
}
