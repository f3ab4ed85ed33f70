// Colour scales for colour-blind eyes. Amounts: cividis, which keeps its order in greyscale; in the light look from white
// on, so that nothing is pale. Signed numbers: orange to violet; in greyscale the ends are alike, and heat maps put a
// minus in negative cells.

const CIVIDIS = [
  "#00224e",
  "#123570",
  "#3b496c",
  "#575d6d",
  "#707173",
  "#8a8678",
  "#a59c74",
  "#c3b369",
  "#e1cc55",
  "#fee838",
];
const CIVIDIS_LIGHT = [
  "#ffffff",
  "#fbf3c2",
  "#efdf86",
  "#d9c46a",
  "#b9a872",
  "#8d8878",
  "#666a73",
  "#45536e",
  "#1f3b6f",
  "#00224e",
];
const SIGNED_LIGHT = [
  "#7f3b08",
  "#b35806",
  "#e08214",
  "#fdb863",
  "#fee0b6",
  "#fbfaf8",
  "#d8daeb",
  "#b2abd2",
  "#8073ac",
  "#542788",
  "#2d004b",
];
const SIGNED_DARK = [
  "#ffd9a8",
  "#ffb454",
  "#e8871e",
  "#a85c10",
  "#553410",
  "#1d1f26",
  "#352c5c",
  "#5b4aa0",
  "#8d78d6",
  "#b8a6f5",
  "#e2d9ff",
];

export function isDark() {
  const chosen = document.documentElement.dataset.look;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const tables = new Map();

/** 256 colours as [r, g, b]. */
function tableOf(stops) {
  if (!tables.has(stops)) {
    const rgb = stops.map((stop) => [1, 3, 5].map((i) => parseInt(stop.slice(i, i + 2), 16)));
    tables.set(
      stops,
      Array.from({ length: 256 }, (_, i) => {
        const at = (i / 255) * (rgb.length - 1),
          low = Math.min(Math.floor(at), rgb.length - 2),
          share = at - low;
        return rgb[low].map((value, c) => Math.round(value + share * (rgb[low + 1][c] - value)));
      }),
    );
  }
  return tables.get(stops);
}

const HIDDEN_LIGHT = [208, 205, 197],
  HIDDEN_DARK = [70, 72, 80];

/** A scale for numbers from low to high: signed ones are centred at zero. Minus infinity, a hidden key, is grey. */
export function scale(low, high, signed) {
  const dark = isDark();
  const colours = tableOf(signed ? (dark ? SIGNED_DARK : SIGNED_LIGHT) : dark ? CIVIDIS : CIVIDIS_LIGHT);
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const [from, to] = signed ? [-reach, reach] : [Math.min(0, low), high || 1];
  const hidden = dark ? HIDDEN_DARK : HIDDEN_LIGHT;
  const rgb = (value) =>
    value === -Infinity
      ? hidden
      : (colours[Math.max(0, Math.min(255, Math.round(((value - from) / (to - from)) * 255)))] ?? [128, 128, 128]);
  return { rgb, from, to, css: (value) => `rgb(${rgb(value).join(" ")})` };
}

/** Black or white, whichever can be read on a colour. */
export function ink([r, g, b]) {
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff";
}

/** The ends and the middle of a scale, as a strip with its numbers. */
export function legendCanvas(colouring, width = 120) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = 10;
  const context = canvas.getContext("2d");
  for (let x = 0; x < width; x += 1) {
    context.fillStyle = colouring.css(colouring.from + (x / (width - 1)) * (colouring.to - colouring.from));
    context.fillRect(x, 0, 1, 10);
  }
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}
