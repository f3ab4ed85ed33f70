// One matrix as a heat map on a canvas: a cursor for mouse and arrow keys, Enter or a click to choose a cell.

import { ink } from "./colours.js";
import { h } from "./dom.js";

const GAP = 6;
const LEAST = 5; // pixels: a smaller cell has no room for a minus
const MOST = 16e6; // pixels of a canvas, and on a side: with more, browsers draw nothing
const LONGEST = 32767;
const TICKS = 15; // pixels for the numbers of columns

/** The smallest of 1, 2, 5, 10, 20, ... that keeps ticks at least `least` cells apart. */
function tickStep(count, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.min(count, [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least) ?? 10 * power);
}

/**
 * rows × columns of `data`, from `offset` on. `label(row, column)` names a cell for the readout, `onMove` gets the cell
 * under the cursor, `onSelect` the chosen one. `rowHeight` and `cellWidth` are in CSS pixels; with no `cellWidth` the
 * map is as wide as its place. `marked` cells get a frame; with `snap` only they can be chosen, the nearest one. In a
 * `signed` map negative cells have a minus in them, if there is room: without colour both signs look the same.
 */
export class HeatMap {
  constructor({
    data,
    offset = 0,
    rows,
    columns,
    colouring,
    signed = false,
    rowLabels,
    columnLabels,
    rowNumbers,
    columnNumbers,
    columnName = "",
    rowHeight = 14,
    cellWidth,
    label,
    name,
    onMove,
    onSelect,
    marked = [],
    snap = false,
  }) {
    Object.assign(this, {
      data,
      offset,
      rows,
      columns,
      colouring,
      signed,
      rowLabels,
      columnLabels,
      rowNumbers,
      columnNumbers,
      columnName,
      rowHeight,
      cellWidth,
      label,
      onMove,
      onSelect,
      marked,
      snap,
    });
    this.cursor = null;
    this.chosen = null;
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "heat map",
      "aria-label": `${name}, ${rows} rows and ${columns} columns; arrow keys move, Enter chooses a cell`,
    });
    this.element = h("div", { class: "heatmap" }, this.canvas);
    this.listen();
    this.resizing = new ResizeObserver(() => this.draw());
    this.resizing.observe(this.element);
  }

  value(row, column) {
    return this.data[this.offset + row * this.columns + column];
  }

  choose(row, column) {
    this.chosen = [row, column];
    this.paint();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointermove", (event) => this.move(this.at(event)));
    canvas.addEventListener("pointerleave", () => this.move(null));
    canvas.addEventListener("click", (event) => {
      const cell = this.at(event);
      if (cell) this.select(cell);
    });
    canvas.addEventListener("focus", () => {
      if (!this.cursor && canvas.matches(":focus-visible")) this.move(this.chosen ?? this.marked[0] ?? [0, 0]);
    });
    canvas.addEventListener("blur", () => this.move(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const [row, column] = this.cursor ?? this.chosen ?? [0, 0];
    const page = event.shiftKey ? 8 : 1;
    const moves = {
      ArrowUp: [row - page, column],
      ArrowDown: [row + page, column],
      ArrowLeft: [row, column - page],
      ArrowRight: [row, column + page],
      Home: [row, 0],
      End: [row, this.columns - 1],
    };
    if (event.key in moves && !event.altKey && !event.ctrlKey && !event.metaKey) {
      const [r, c] = moves[event.key];
      this.move([Math.max(0, Math.min(this.rows - 1, r)), Math.max(0, Math.min(this.columns - 1, c))]);
      event.preventDefault();
    } else if (event.key === "Enter" || event.key === " ") {
      this.select(this.cursor ?? [row, column]);
      event.preventDefault();
    }
  }

  move(cell) {
    if (String(cell) === String(this.cursor)) return;
    this.cursor = cell;
    this.paint();
    this.onMove?.(cell);
  }

  select(cell) {
    this.chosen = this.snap && this.marked.length ? this.nearest(cell) : cell;
    this.paint();
    this.onSelect?.(this.chosen);
  }

  nearest([row, column]) {
    const distance = ([r, c]) => Math.abs(r - row) * this.rowHeight + Math.abs(c - column) * this.cellX;
    return this.marked.reduce((best, cell) => (distance(cell) < distance(best) ? cell : best));
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.cellX);
    const row = Math.floor((event.clientY - box.top - this.top) / this.rowHeight);
    return row >= 0 && row < this.rows && column >= 0 && column < this.columns ? [row, column] : null;
  }

  /** Sizes, and the picture of all cells, which changes only with the place or the look. */
  draw() {
    const style = getComputedStyle(this.element);
    const font = `${Math.min(12, Math.max(9, this.rowHeight - 3))}px ${style.fontFamily}`;
    const context = this.canvas.getContext("2d");
    context.font = font;
    const room = this.element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (!(room > 0)) return; // it is not in the page
    const widest = (labels) => Math.max(...labels.map((text) => context.measureText(text).width));
    // where cells are smaller than a label, every second one has one, or every third
    const rowStep = Math.ceil(9 / this.rowHeight),
      rowText = this.rows > 1 ? (row) => this.rowLabels?.[row] ?? this.rowNumbers?.[row] ?? row : null;
    const rowWords = this.rowLabels ?? [String(this.rowNumbers?.at(-1) ?? this.rows - 1)];
    this.left = rowText ? Math.min(room * 0.3, Math.ceil(widest(rowWords)) + GAP) : 0;
    const inside = Math.max(20, room - this.left - 1);
    this.cellX = this.cellWidth ? Math.max(this.cellWidth, inside / this.columns) : inside / this.columns;
    if (this.cellWidth) this.cellX = Math.min(this.cellX, Math.max(this.cellWidth, 28));
    else this.cellX = Math.min(this.cellX, 40);
    const columnStep = Math.ceil(11 / this.cellX);
    this.top = this.columnLabels ? Math.min(90, Math.ceil(widest(this.columnLabels)) + GAP) : TICKS;
    const width = this.left + this.cellX * this.columns,
      height = this.top + this.rowHeight * this.rows;
    const largest = Math.min(Math.sqrt(MOST / (width * height)), LONGEST / Math.max(width, height)),
      ratio = Math.min(devicePixelRatio || 1, largest);
    this.ratio = ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    this.picture = this.cells(Math.min(this.columns, Math.max(1, Math.round(this.cellX * this.columns * ratio))));
    this.minuses = this.signed && this.cellX >= LEAST && this.rowHeight >= LEAST ? this.signs(ratio) : null;
    const columnFont = `${this.columnLabels ? Math.min(12, columnStep * this.cellX - 1) : 10}px ${style.fontFamily}`;
    this.texts = { font, columnFont, colour: style.color, rowText, rowStep, columnStep };
    this.paint();
  }

  /** One pixel a cell; where there are more cells than pixels, the one farthest from zero. */
  cells(pixels) {
    const picture = new OffscreenCanvas(pixels, this.rows),
      context = picture.getContext("2d");
    const image = context.createImageData(pixels, this.rows);
    for (let row = 0; row < this.rows; row += 1) {
      for (let x = 0; x < pixels; x += 1) {
        let value = 0;
        const stop = Math.floor(((x + 1) * this.columns) / pixels);
        for (let column = Math.floor((x * this.columns) / pixels); column < stop; column += 1) {
          const here = this.value(row, column);
          if (Math.abs(here) >= Math.abs(value)) value = here;
        }
        const [r, g, b] = this.colouring.rgb(value);
        image.data.set([r, g, b, 255], 4 * (row * pixels + x));
      }
    }
    context.putImageData(image, 0, 0);
    return picture;
  }

  /** A minus in each negative cell, as light or as dark as can be seen on its colour. */
  signs(ratio) {
    const picture = new OffscreenCanvas(
      Math.ceil(this.cellX * this.columns * ratio),
      Math.ceil(this.rowHeight * this.rows * ratio),
    );
    const context = picture.getContext("2d"),
      width = Math.min(6, Math.round(this.cellX / 2)),
      least = this.colouring.from / 20; // what is nearly zero has hardly a colour to mistake
    context.scale(ratio, ratio);
    for (let row = 0; row < this.rows; row += 1) {
      for (let column = 0; column < this.columns; column += 1) {
        const value = this.value(row, column);
        if (!(value < least) || value === -Infinity) continue;
        context.fillStyle = ink(this.colouring.rgb(value));
        const x = Math.round((column + 0.5) * this.cellX - width / 2),
          y = Math.round((row + 0.5) * this.rowHeight);
        context.fillRect(x, y, width, 1);
      }
    }
    return picture;
  }

  paint() {
    if (!this.picture) return;
    const { ratio } = this,
      context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.imageSmoothingEnabled = false;
    const box = [this.left, this.top, this.cellX * this.columns, this.rowHeight * this.rows];
    context.drawImage(this.picture, ...box);
    if (this.minuses) context.drawImage(this.minuses, ...box);
    context.font = this.texts.font;
    context.fillStyle = this.texts.colour;
    context.textBaseline = "middle";
    const { rowText, rowStep, columnStep } = this.texts;
    if (rowText) {
      context.textAlign = "right";
      for (let row = 0; row < this.rows; row += this.rowLabels ? rowStep : tickStep(this.rows, 14 / this.rowHeight)) {
        context.globalAlpha = this.cursor && this.cursor[0] !== row ? 0.55 : 1;
        context.fillText(rowText(row), this.left - GAP, this.top + (row + 0.5) * this.rowHeight, this.left - GAP);
      }
    }
    context.font = this.texts.columnFont;
    if (this.columnLabels) {
      context.textAlign = "left";
      for (let column = 0; column < this.columns; column += columnStep) {
        context.globalAlpha = this.cursor && this.cursor[1] !== column ? 0.55 : 1;
        context.save();
        context.translate(this.left + (column + 0.5) * this.cellX, this.top - GAP / 2);
        context.rotate(-Math.PI / 2);
        context.fillText(this.columnLabels[column], 0, 0, this.top - GAP);
        context.restore();
      }
    } else this.ticks(context);
    context.globalAlpha = 1;
    for (const cell of this.marked) this.frame(context, cell, 1);
    if (this.chosen) this.frame(context, this.chosen, 2.5);
    if (this.cursor) this.frame(context, this.cursor, 1.5);
  }

  /** Numbers over the columns, the first with what they count. */
  ticks(context) {
    const step = tickStep(this.columns, 30 / this.cellX);
    let free = 0;
    context.globalAlpha = 0.75;
    for (let column = 0; column < this.columns; column += step) {
      const at = this.left + (column + 0.5) * this.cellX,
        text = `${column ? "" : `${this.columnName} `}${this.columnNumbers?.[column] ?? column}`;
      const half = context.measureText(text).width / 2,
        x = column ? at : Math.max(this.left, at - half);
      if (column && (x - half < free || x + half > this.left + this.cellX * this.columns)) continue;
      context.textAlign = column ? "center" : "left";
      context.fillText(text, x, TICKS / 2);
      free = x + (column ? half : 2 * half) + 6;
    }
  }

  frame(context, [row, column], width) {
    const x = this.left + column * this.cellX,
      y = this.top + row * this.rowHeight,
      w = Math.max(this.cellX, 3);
    for (const [colour, extra] of [
      ["#fff", 2],
      ["#000", 0],
    ]) {
      context.strokeStyle = colour;
      context.lineWidth = width + extra;
      context.strokeRect(x - (w - this.cellX) / 2, y, w, this.rowHeight);
    }
  }
}
