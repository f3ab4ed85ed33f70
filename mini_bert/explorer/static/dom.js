// Making elements, and writing numbers.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.assign(element.style, value); // by property: no inline styles in the page
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Put these in the place of what an element has; lists are taken apart, null and undefined are nothing. */
export function put(element, ...children) {
  element.replaceChildren(...flat(children));
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A <math> element from the server's MathML. */
export function math(formula) {
  const parsed = new DOMParser().parseFromString(formula.mathml, "application/xml").documentElement;
  const element = document.importNode(parsed, true);
  element.setAttribute("display", "block");
  element.setAttribute("alttext", formula.text);
  return h("div", { class: "formula", title: formula.text }, element);
}

/** Four digits that matter, a true minus sign. */
export function number(value, digits = 4) {
  if (value === -Infinity) return "−∞";
  if (value === null || value === undefined || !Number.isFinite(value)) return value === null ? "not finite" : "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (size >= 1e5 || size < 1e-4) {
    const [digitsPart, power] = value.toExponential(digits - 1).split("e");
    text = `${digitsPart.replace(/\.?0+$/, "")}e${Number(power)}`;
  } else
    text = value
      .toPrecision(digits)
      .replace(/^(-?\d+\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
  return text.replaceAll("-", "−");
}

export function percent(value) {
  if (value >= 0.9995) return "100 %";
  if (value >= 0.0995) return `${(100 * value).toFixed(1)} %`;
  if (value >= 0.00095) return `${(100 * value).toFixed(2)} %`;
  if (value >= 1e-7)
    return `${Number((100 * value).toPrecision(2))
      .toFixed(7)
      .replace(/0+$/, "")} %`;
  return value > 0 ? "<0.00001 %" : "0 %";
}

export function shape(sizes) {
  return sizes.length ? sizes.map((n) => n.toLocaleString("en")).join(" × ") : "1";
}

/** A bar for a share of one, with its label beside it. */
export function bar(share, kind = "") {
  return h(
    "span",
    { class: `bar ${kind}`, "aria-hidden": "true" },
    h("span", { style: { width: `${Math.max(0, Math.min(1, share)) * 100}%` } }),
  );
}

let counter = 0;
export function unique(stem) {
  counter += 1;
  return `${stem}-${counter}`;
}

/** Call back once, when an element comes near to what is seen. */
const seen = new WeakMap();
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      watcher.unobserve(entry.target);
      seen.get(entry.target)?.();
    }
  },
  { rootMargin: "300px" },
);

export function whenSeen(element, callback) {
  seen.set(element, callback);
  watcher.observe(element);
}

/** A table: columns are names, or [name, "number"]. */
export function table(columns, rows, caption) {
  const kinds = columns.map((column) => (Array.isArray(column) ? column[1] : ""));
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      {},
      caption ? h("caption", {}, caption) : null,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column, i) =>
            h("th", { scope: "col", class: kinds[i] }, Array.isArray(column) ? column[0] : column),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            { class: row.class },
            (row.cells ?? row).map((cell, i) => h("td", { class: kinds[i] }, cell)),
          ),
        ),
      ),
    ),
  );
}
