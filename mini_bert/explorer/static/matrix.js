// The numbers of a step: one heat map, or one for each head, with a readout and a legend that they share.

import { isOffline } from "./api.js";
import { legendCanvas, scale } from "./colours.js";
import { h, number } from "./dom.js";
import { HeatMap } from "./heatmap.js";

/** The least and the greatest of an array's finite numbers. */
export function range(data) {
  let low = Infinity,
    high = -Infinity;
  for (const value of data) {
    if (value < low && Number.isFinite(value)) low = value;
    if (value > high && Number.isFinite(value)) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}

export function legend(colouring, { hidden = false } = {}) {
  const swatch = h("span", { class: "swatch", style: { background: colouring.css(-Infinity) } });
  return h(
    "span",
    { class: "legend" },
    number(colouring.from, 3),
    legendCanvas(colouring),
    number(colouring.to, 3),
    hidden ? [swatch, "hidden (−∞)"] : null,
  );
}

/** What stands at a place of an axis. */
export function placeName(axis, i) {
  if (axis.labels) return `“${axis.labels[i]}”`;
  return `${axis.kind} ${axis.numbers?.[i] ?? i}`;
}

/** What rows and columns count. */
function axesNote([row, column]) {
  const text = row ? `rows: ${row.kind}, columns: ${column.kind}` : `columns: ${column.kind}`;
  return h("span", { class: "axes-note" }, text);
}

const rowHeightOf = (rows, open) => (open ? 18 : Math.max(4, Math.min(16, Math.floor(180 / rows))));

/** About as high as the map of an array will be, in pixels: the rows, the names of heads, and the line underneath. */
export function mapHeight(sizes, open = false) {
  const rows = sizes.length > 1 ? sizes.at(-2) : 1;
  return rows * rowHeightOf(rows, open) + (sizes.length === 3 ? 67 : 47);
}

/** `matrix` is unpacked. `onSelect(index)` gets an index of the whole array, words by their ids. */
export function matrixView(matrix, { name, open = false, marked = [], chosen = null, onSelect } = {}) {
  const heads = matrix.shape.length === 3 ? matrix.shape[0] : 1;
  const flat = matrix.shape.length === 1;
  const [rows, columns] = flat ? [1, matrix.shape[0]] : matrix.shape.slice(-2);
  const axes = flat ? [null, matrix.axes[0]] : matrix.axes.slice(-2);
  const colouring = scale(...range(matrix.data), matrix.signed);
  const readout = h("output", { class: "readout", "aria-live": "polite" }, " ");
  const real = (axis, i) => axis?.numbers?.[i] ?? i;
  const shown = (axis, i) => (axis?.numbers ? axis.numbers.indexOf(i) : i);
  const indexOf = (head, [row, column]) => [
    ...(heads > 1 || matrix.shape.length === 3 ? [head] : []),
    ...(flat ? [] : [real(axes[0], row)]),
    real(axes[1], column),
  ];
  const rowHeight = rowHeightOf(rows, open);
  const cells = (list, head) =>
    list
      .map((index) =>
        matrix.shape.length === 3 ? (index[0] === head ? index.slice(1) : null) : flat ? [null, index[0]] : index,
      )
      .filter(Boolean)
      .map(([r, c]) => [flat ? 0 : shown(axes[0], r), shown(axes[1], c)])
      .filter(([r, c]) => r >= 0 && c >= 0 && r < rows && c < columns);
  const maps = Array.from({ length: heads }, (_, head) => {
    const map = new HeatMap({
      data: matrix.data,
      offset: head * rows * columns,
      rows,
      columns,
      colouring,
      signed: matrix.signed,
      rowHeight,
      rowLabels: axes[0]?.labels,
      columnLabels: axes[1].labels,
      rowNumbers: axes[0]?.numbers,
      columnNumbers: axes[1].numbers,
      columnName: axes[1].kind,
      cellWidth: open ? 7 : undefined,
      name: heads > 1 ? `${name}, head ${head}` : name,
      marked: cells(marked, head),
      snap: isOffline,
      onMove: (cell) => {
        readout.textContent =
          cell === null
            ? " "
            : `${heads > 1 ? `head ${head}, ` : ""}${
                flat ? "" : `${placeName(axes[0], cell[0])}, `
              }${placeName(axes[1], cell[1])}: ${number(map.value(...cell), 6)}`;
      },
      onSelect: (cell) => {
        maps.forEach((other) => other !== map && other.chosen && ((other.chosen = null), other.paint()));
        onSelect?.(indexOf(head, cell));
      },
    });
    [map.chosen] = chosen ? cells([chosen], head) : [null];
    return map;
  });
  const cut = matrix.axes
    .filter((axis) => axis.of && axis.of > (axis.labels?.length ?? 0))
    .map((axis) => `${axis.labels.length} of ${axis.of.toLocaleString("en")} words are shown`);
  const body = h(
    "div",
    { class: `maps${heads > 1 ? " heads" : ""}${open ? " open" : ""}` },
    maps.map((map, head) => h("figure", {}, heads > 1 ? h("figcaption", {}, `head ${head}`) : null, map.element)),
  );
  return h(
    "div",
    { class: "matrix" },
    body,
    h("div", { class: "under" }, legend(colouring, { hidden: matrix.data.includes(-Infinity) }), axesNote(axes), readout),
    cut.length ? h("p", { class: "quiet" }, `${cut.join("; ")}.`) : null,
  );
}
