// The timeline of a run: small charts over tokens, one for each kind of figure, with a cursor at a snapshot.

import { lineChart } from "../charts.js";
import { h, number, percent } from "../dom.js";

const CLASSES = ["first", "second", "third", "fourth", "fifth", "sixth"];
const shown = (value, unit) => (value === null ? "–" : unit === "share" ? percent(value) : number(value, 4));

/** Tokens at a step, by the snapshots around it. */
export function tokensAt(timeline, step) {
  const { steps, tokens } = timeline,
    after = steps.findIndex((known) => known >= step);
  if (after < 0) return tokens.at(-1);
  if (after === 0) return tokens[0];
  const share = (step - steps[after - 1]) / (steps[after] - steps[after - 1]);
  return tokens[after - 1] + share * (tokens[after] - tokens[after - 1]);
}

/** The number of the snapshot that is nearest to some tokens, as the logarithmic axis shows them. */
export function nearest(timeline, tokens) {
  const far = timeline.tokens.map((known) => Math.abs(Math.log(Math.max(known, 1) / Math.max(tokens, 1))));
  return far.indexOf(Math.min(...far));
}

/** All panels, with the cursor at the number of tokens `at`; a click on a panel calls `onPick` with the number there. */
export function timelinePanels(timeline, { at, onPick }) {
  const here = nearest(timeline, at);
  const together = timeline.panels.filter((panel) => !panel.apart);
  return [
    h("div", { class: "multiples large" }, together.map((panel) => chart(timeline, panel, panel.lines, panel.title))),
    timeline.panels
      .filter((panel) => panel.apart)
      .map((panel) => [
        h("h3", {}, panel.title, levelNames(panel)),
        h("div", { class: "multiples" }, panel.lines.map((line) => chart(timeline, panel, [line], line.name, true))),
      ]),
  ];

  function chart(timeline, panel, lines, title, small = false) {
    const everything = panel.lines.flatMap((line) => [...line.values, ...Object.values(line.levels)]);
    const factor = panel.unit === "share" ? 100 : 1;
    const common = (name) => lines.every((line) => line.levels[name] === lines[0].levels[name]);
    const levels = lines.flatMap((line, i) =>
      Object.entries(line.levels)
        .filter(([name]) => i === 0 || !common(name))
        .map(([name, y]) => ({ y: factor * y, name: common(name) && !small ? name : "", class: common(name) ? "" : CLASSES[i % 6] })),
    );
    const drawn = lines.map((line, i) => {
      const known = line.values.map((_, k) => k).filter((k) => line.values[k] !== null);
      return {
        name: lines.length > 1 ? `${line.name} ${shown(line.values[here], panel.unit)}` : "",
        class: CLASSES[i % 6],
        dots: 2.5,
        x: known.map((k) => timeline.tokens[k]),
        y: known.map((k) => factor * line.values[k]),
        titles: known.map((k) => told(timeline, panel, line, k)),
      };
    });
    return h(
      "figure",
      { class: "multiple" },
      h(
        "figcaption",
        {},
        title,
        lines.length > 1 ? null : h("span", { class: "number" }, shown(lines[0].values[here], panel.unit)),
      ),
      lineChart(drawn, {
        levels,
        at,
        log: true,
        size: small ? [190, 110] : [380, 220],
        range: small
          ? everything.filter((value) => value !== null).map((value) => factor * value)
          : panel.unit === "share" && everything.every((value) => !value)
            ? [0, 1]
            : [],
        label: `${title} over tokens`,
        xName: "",
        onPick,
      }),
    );
  }
}

function told(timeline, panel, line, k) {
  const range =
    line.low[k] === null ? "" : ` (${shown(line.low[k], panel.unit)} to ${shown(line.high[k], panel.unit)})`;
  return `${line.name}, ${timeline.tokens[k].toLocaleString("en")} tokens: ${shown(line.values[k], panel.unit)}${range}`;
}

function levelNames(panel) {
  const names = [...new Set(panel.lines.flatMap((line) => Object.keys(line.levels)))];
  return names.length ? h("span", { class: "quiet" }, ` Dashed: ${names.join(" and ")}.`) : null;
}
