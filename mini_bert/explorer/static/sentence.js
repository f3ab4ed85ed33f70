// The sentence: typed, its words clicked to be masked, and what the model says at the masks.

import { isOffline } from "./api.js";
import { bar, h, percent, put } from "./dom.js";
import { keepingFocus } from "./place.js";
import { go, goToText, joinTargets, masks, targets } from "./state.js";

let pairAsked = false; // is the field of a second sentence open, though nothing is in it yet?

export function drawSentence(root, { state, sentence, info, error }) {
  const field = h("input", {
    id: "text",
    type: "text",
    value: state.text,
    maxlength: String(info.longest_text),
    autocomplete: "off",
    spellcheck: "false",
    disabled: isOffline,
    "aria-describedby": error ? "refusal" : "hint",
  });
  const pair =
    state.pair || pairAsked
      ? h("input", {
          id: "pair",
          type: "text",
          value: state.pair ?? "",
          maxlength: String(info.longest_text),
          autocomplete: "off",
          spellcheck: "false",
          disabled: isOffline,
        })
      : null;
  const form = h(
    "form",
    {
      class: "type",
      onsubmit: (event) => {
        event.preventDefault();
        // what was refused may be a mask or a target: the same sentence without them is another one
        const second = pair?.value.trim() ?? "";
        if (error || field.value !== state.text || second !== (state.pair ?? "")) goToText(field.value, second);
      },
    },
    h("label", { for: "text" }, "Sentence"),
    field,
    pair ? h("label", { for: "pair" }, "and") : null,
    pair,
    isOffline ? null : h("button", { type: "submit" }, "Show"),
  );
  const addPair =
    pair || isOffline
      ? null
      : h(
          "button",
          {
            type: "button",
            class: "link",
            id: "add-pair",
            title: "A second sentence beside the first: [CLS] first [SEP] second [SEP]",
            onclick: () => {
              pairAsked = true;
              drawSentence(root, { state, sentence, info, error });
              document.getElementById("pair").focus();
            },
          },
          "Add a second sentence",
        );
  pairAsked = false;
  const parts = error
    ? [form, h("p", { id: "refusal", class: "refused", role: "alert" }, error)]
    : [
        h(
          "div",
          { class: "said" },
          form,
          words(state, sentence, info),
          h(
            "p",
            { id: "hint", class: "quiet" },
            isOffline
              ? "This file holds one sentence; with mini-bert explore any sentence can be typed and any word masked."
              : info.causal
                ? "Click a word to ask the model for it: it reads only what comes before. Click it again to ask no more."
                : "Click a word to mask it; click it again to take the mask away.",
            " ",
            addPair,
          ),
        ),
        predictions(state, sentence, info),
      ];
  keepingFocus(root, () => put(root, parts));
}

function words(state, sentence, info) {
  const [take, give] = info.causal
    ? ["Do not ask for this word", "Ask for this word"]
    : ["Take the mask away", "Mask this word"];
  return h(
    "div",
    { class: "tokens", role: "group", "aria-label": "Tokens" },
    sentence.tokens.map((token, i) => {
      const masked = sentence.masks.includes(i);
      return h(
        "button",
        {
          type: "button",
          id: `token-${i}`,
          class: `token${masked ? " masked" : ""}${sentence.special[i] ? " special" : ""}${sentence.types?.[i] ? " second" : ""}`,
          "aria-pressed": String(masked),
          disabled: isOffline || sentence.special[i],
          title: sentence.special[i] ? `${token} stands by itself` : masked ? take : give,
          onclick: () => toggle(state, i),
        },
        h("span", {}, token),
        masked && sentence.original[i] !== token ? h("small", {}, sentence.original[i]) : null,
      );
    }),
  );
}

function toggle(state, i) {
  const now = new Set(masks(state)),
    wanted = targets(state);
  if (!now.delete(i)) now.add(i);
  else wanted.delete(i);
  go({ mask: [...now].sort((a, b) => a - b).join(","), target: joinTargets(wanted) });
}

/** For each mask the likeliest words; each can be made the target. */
function predictions(state, sentence, info) {
  if (!info.predicts) return h("p", { class: "quiet" }, "This model has no head for words, so it predicts none.");
  if (!sentence.predictions.length)
    return h(
      "p",
      { class: "quiet" },
      info.causal ? "No word is asked for: no prediction, no loss." : "Nothing is masked: no prediction, no loss.",
    );
  const choose = (position, word) => {
    const wanted = targets(state).set(position, word);
    if (sentence.original[position] === word) wanted.delete(position);
    go({ target: joinTargets(wanted) });
  };
  return h(
    "div",
    { class: "predictions" },
    info.streams
      ? h(
          "p",
          { class: "quiet" },
          "This model predicts words in any order with a second stream of queries. Shown is its content stream alone, which reads [MASK] as a word.",
        )
      : null,
    sentence.predictions.map((found) =>
      h(
        "section",
        { class: "prediction", "aria-label": `Position ${found.position}` },
        h(
          "p",
          {},
          h(
            "span",
            {},
            info.causal
              ? `After “${sentence.tokens[found.row]}”, at position ${found.position}, the model expects`
              : `At position ${found.position} the model expects`,
          ),
          targetForm(found, choose),
        ),
        h(
          "ol",
          {},
          found.candidates.slice(0, 5).map((candidate) =>
            h(
              "li",
              {},
              h(
                "button",
                {
                  type: "button",
                  id: `candidate-${found.position}-${candidate.id}`,
                  class: candidate.token === found.target ? "word target" : "word",
                  disabled: isOffline,
                  title: "Make this the target",
                  onclick: () => choose(found.position, candidate.token),
                },
                candidate.token,
              ),
              bar(candidate.probability),
              h("span", { class: "number", "data-value": candidate.probability }, percent(candidate.probability)),
            ),
          ),
        ),
      ),
    ),
  );
}

function targetForm(found, choose) {
  return h(
    "form",
    {
      class: "target",
      onsubmit: (event) => {
        event.preventDefault();
        const word = event.target.elements[0].value.trim();
        if (word) choose(found.position, word);
      },
    },
    h(
      "label",
      { for: `target-${found.position}` },
      found.guessed ? "target (the model’s own first choice)" : "target",
    ),
    h("input", {
      id: `target-${found.position}`,
      type: "text",
      value: found.target,
      size: "12",
      maxlength: "100",
      autocomplete: "off",
      disabled: isOffline,
    }),
    h("span", { class: "quiet" }, `${percent(found.probability)}, rank ${found.rank.toLocaleString("en")}`),
  );
}
