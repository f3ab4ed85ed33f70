// The map of the model: its blocks as a diagram that stays in sight. A click on a block shows the steps inside it.

import { h, put, s } from "./dom.js";
import { arrive } from "./place.js";
import { go } from "./state.js";

const MOST_BOXES = 24; // beyond these, the layers that are not looked at are closed

/** The number of the block that the address names: by a step of it, by itself, or the first one. */
export function blockOf(blocks, { part, name }) {
  const byStep = blocks.findIndex((block) => block.steps.includes(name));
  if (byStep >= 0) return byStep;
  return Math.max(
    0,
    blocks.findIndex((block) => block.id === part),
  );
}

/** `clear` are the keys of the address that name a card: in another block they mean nothing. */
export function goToBlock(id, clear) {
  go({ part: id, ...Object.fromEntries(clear.map((key) => [key, ""])) });
}

/** The diagram. `cards` are the steps that are shown, as [id of the card, symbol, title]. */
export function modelMap(blocks, chosen, { clear, cards }) {
  const groups = [];
  blocks.forEach((block, i) => {
    if (groups.at(-1)?.name !== block.group) groups.push({ name: block.group, boxes: [] });
    groups.at(-1).boxes.push(i);
  });
  const all = blocks.length <= MOST_BOXES,
    boxes = new Map(),
    ways = s("svg", { class: "ways", "aria-hidden": "true" });
  const list = h(
    "ol",
    {},
    groups.map(({ name, boxes: some }) => {
      const here = some.includes(chosen);
      if (!all && !here)
        return h(
          "li",
          { class: "closed" },
          h(
            "button",
            { type: "button", id: `map-${blocks[some[0]].id}`, onclick: () => goToBlock(blocks[some[0]].id, clear) },
            name,
          ),
        );
      return h(
        "li",
        { class: here ? "here" : "" },
        h("p", { class: "group-name" }, name),
        some.map((i) => box(i)),
      );
    }),
  );
  const element = h("nav", { class: "map", id: "map", "aria-label": "Map of the model" }, ways, list);

  function box(i) {
    const block = blocks[i],
      open = i === chosen;
    const made = h(
      "div",
      { class: `box kind-${block.kind}${open ? " open" : ""}` },
      h(
        "button",
        {
          type: "button",
          id: `map-${block.id}`,
          "aria-current": open ? "true" : null,
          onclick: () => goToBlock(block.id, clear),
        },
        block.title,
      ),
      open
        ? h(
            "p",
            { class: "symbols" },
            cards.map(([id, symbol, title]) =>
              h(
                "button",
                {
                  type: "button",
                  title,
                  onclick: () => {
                    const target = document.getElementById(id);
                    arrive(target, target);
                  },
                },
                symbolOf(symbol),
              ),
            ),
          )
        : null,
    );
    boxes.set(block.id, made);
    return made;
  }

  /** What goes past boxes, as lines at the right side. */
  function drawWays() {
    const around = list.getBoundingClientRect();
    if (!around.width) return;
    ways.setAttribute("width", String(around.width + 16));
    ways.setAttribute("height", String(around.height));
    const side = (id) => {
      const place = boxes.get(id)?.getBoundingClientRect();
      return place && { x: place.right - around.left, y: place.top + place.height / 2 - around.top };
    };
    put(
      ways,
      blocks.flatMap((block) =>
        block.past.map((id) => {
          const [from, to] = [side(id), side(block.id)];
          if (!from || !to) return null;
          const right = Math.max(from.x, to.x) + 11;
          return [
            s("path", { d: `M${from.x} ${from.y}H${right}V${to.y}H${to.x + 3}` }),
            s("path", { class: "tip", d: `M${to.x} ${to.y}l6 -3.5v7z` }),
          ];
        }),
      ),
    );
  }

  new ResizeObserver(() => {
    drawWays();
    const current = element.querySelector("[aria-current]");
    if (current && !element.dataset.placed && element.clientHeight) {
      element.dataset.placed = "1"; // once: afterwards the reader scrolls
      const place = current.getBoundingClientRect(),
        frame = element.getBoundingClientRect();
      element.scrollTop += place.top - frame.top - frame.height / 2;
      element.scrollLeft += place.left - frame.left - frame.width / 2;
    }
  }).observe(list);
  return element;
}

/** x_0 with its number below. */
function symbolOf(text) {
  const [stem, below] = text.split("_");
  return below ? [stem, h("sub", {}, below)] : stem;
}

/** Links to the blocks before and behind, in the order of the view. */
export function around(blocks, chosen, { clear, reverse = false }) {
  const link = (i, id, arrow) =>
    blocks[i]
      ? h(
          "button",
          { type: "button", id, onclick: () => goToBlock(blocks[i].id, clear) },
          arrow[0],
          blockName(blocks[i]),
          arrow[1],
        )
      : h("span");
  const way = reverse ? -1 : 1;
  return h(
    "p",
    { class: "around" },
    link(chosen - way, "block-before", ["← ", ""]),
    link(chosen + way, "next-block", ["", " →"]),
  );
}

export function blockName(block) {
  return block.title === block.group ? block.title : `${block.group}: ${block.title.toLowerCase()}`;
}
