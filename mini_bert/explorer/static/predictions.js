// What is predicted at a mask, as a list of words or as a table of before and after.

import { bar, h, number, percent, table } from "./dom.js";

/** The likeliest words with their bars, and the target's probability and rank. */
export function candidateList(prediction, count = 6) {
  return h(
    "section",
    { class: "prediction" },
    h("p", {}, `Position ${prediction.position}`),
    h(
      "ol",
      {},
      prediction.candidates
        .slice(0, count)
        .map((candidate) =>
          h(
            "li",
            { class: candidate.token === prediction.target ? "target" : "" },
            h("span", {}, candidate.token),
            bar(candidate.probability),
            h("span", { class: "number", "data-value": candidate.probability }, percent(candidate.probability)),
          ),
        ),
    ),
    h(
      "p",
      { class: "quiet" },
      `“${prediction.target}”: ${percent(prediction.probability)}, rank ${prediction.rank.toLocaleString("en")}`,
    ),
  );
}

/** The words of before and of after in one table. */
export function movedTable(prediction) {
  return h(
    "section",
    { class: "panel" },
    h("h2", {}, `Position ${prediction.position}`),
    table(
      ["word", ["before", "number"], "", ["after", "number"], ""],
      [...prediction.words]
        .sort((a, b) => b.after - a.after)
        .map((word) => ({
          class: word.id === prediction.target_id ? "target" : "",
          cells: [
            word.id === prediction.target_id ? h("b", {}, `${word.token} (target)`) : word.token,
            percent(word.before),
            bar(word.before),
            h("span", { "data-after": word.after }, percent(word.after)),
            bar(word.after),
          ],
        })),
    ),
  );
}

/** The loss before and after, and a word on which is lower. */
export function lossMove(found, notLower) {
  const change = found.loss_after - found.loss_before;
  return h(
    "p",
    { class: "big" },
    "loss ",
    h("b", { id: "loss-before", "data-value": found.loss_before }, number(found.loss_before, 6)),
    " → ",
    h("b", { id: "loss-after", "data-value": found.loss_after }, number(found.loss_after, 6)),
    change === 0
      ? h("span", { class: "quiet" }, " unchanged")
      : h("span", { class: change < 0 ? "good" : "refused" }, change < 0 ? " lower" : notLower),
  );
}
