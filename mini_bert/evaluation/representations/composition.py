"""Does a model compose meaning from parts? Small sets of minimal cases, each with its control.

negation     "The door was not open. The door was [MASK]." should prefer `closed` to `open` more than the same text with
             `still` instead of `not`. Control: `still` against no adverb, which negates nothing.
word order   "The dog chased the cat. The one that was chased was the [MASK]." and the same with dog and cat exchanged
             have the same words and opposite answers. Each case comes in the active and in the passive voice, so that
             copying the first or the last noun is right in exactly half of them. Control: "The dog and the cat came.",
             where the exchange does not change the meaning; its score shows the preference for the last noun.
phrases      Is the vector of "old house" closer to the sum of the vectors of `old` and `house` than to a sum with
             another adjective or another noun? And the same for the vector of the noun only, which contains the
             adjective only through attention.

A contrast is right if the preference for its first answer, log p(first answer) - log p(second answer), is higher in
the first text than in the second, so that a general preference for a word cancels out. Ties count one half; a model
that ignores the change, as a bag of words ignores word order, gets one half, like chance.

Limits: the sets are small (see the intervals), English and simple. A right preference does not prove understanding,
and a wrong one may mean that a word is unknown. The vector of a phrase contains its own tokens, so its score is high
for any model that keeps its input, even with random weights; the score of the noun is the real test. Contrasts need a
model with an MLM head. Built-in categories that cannot be tested are left out and listed with the reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.ops.softmax import softmax_forward
from ...errors import DataError, InputError
from ...inference.inputs import pad_sequences
from ...text.tokenizer import Tokenizer
from ..model_tokenizer import model_tokenizer
from ..probabilities import Floats
from ..result import Result
from ..statistics import Interval, wilson_interval
from ..zero_shot.pseudo_likelihood import single_piece
from .geometry import layer_states, unit_rows

_TEXTS_AT_A_TIME = 64


class Contrast(NamedTuple):
    """Two texts with one [MASK] each and their answers, single pieces; and two control texts that should not differ."""

    category: str
    first: str
    second: str
    first_answer: str
    second_answer: str
    control_first: str
    control_second: str


class Phrase(NamedTuple):
    """An adjective and a noun."""

    adjective: str
    noun: str
    category: str = "phrases"


Cases = Sequence[Contrast | Phrase]

# the noun, a property, its opposite
_OPPOSITES = """door open closed|room empty full|glass full empty|river deep shallow|road wide narrow|box light heavy
water hot cold|man rich poor|boy young old|house large small|wall high low|night dark light|soup cold hot
bag heavy light|street quiet loud|horse slow fast|coat wet dry|hill low high|woman happy sad|king strong weak
answer right wrong|story false true|knife sharp dull|child awake asleep|bird alive dead|cup clean dirty|test easy hard
line short long|king young old|ground dry wet"""

# two nouns, a verb in the past, its participle
_EVENTS = """dog cat chased chased|king queen killed killed|boy girl saw seen|man woman called called
father son followed followed|doctor soldier helped helped|king bishop attacked attacked|mother daughter loved loved
captain officer met met|horse dog passed passed|teacher student heard heard|lord prince defeated defeated
lady gentleman married married|brother sister beat beaten|soldier enemy shot shot|child bird caught caught"""

_PHRASES = """old house|young man|red flower|black horse|white snow|cold winter|hot summer|dark night|deep sea
high mountain|small village|great city|rich merchant|poor widow|new book|long road|green field|blue sky|strong wind
sweet fruit|heavy stone|wide river|narrow street|empty room|golden crown|wild animal|public school|modern art
local government|military officer"""


def _negation(noun: str, word: str, opposite: str) -> Contrast:
    plain, negated, other = (f"The {noun} was {said}{word}. The {noun} was [MASK]." for said in ("", "not ", "still "))
    return Contrast("negation", negated, other, opposite, word, other, plain)


def _word_order(one: str, two: str, past: str, participle: str) -> list[Contrast]:
    orders, question = ((one, two), (two, one)), f"The one that was {participle} was the [MASK]."
    both = [f"The {a} and the {b} came. {question}" for a, b in orders]
    active, passive = ([f"The {a} {said} {b}. {question}" for a, b in orders]
                       for said in (f"{past} the", f"was {participle} by the"))
    # the first control text ends with the first answer, so its score measures copying the last noun
    return [Contrast("word order", active[0], active[1], two, one, both[0], both[1]),
            Contrast("word order", passive[0], passive[1], one, two, both[1], both[0])]


def built_in_cases() -> list[Contrast | Phrase]:
    """The default cases."""
    def table(text: str) -> list[list[str]]:
        return [entry.split() for entry in text.replace("\n", "|").split("|")]

    return [*(_negation(*entry) for entry in table(_OPPOSITES)),
            *(case for entry in table(_EVENTS) for case in _word_order(*entry)),
            *(Phrase(*entry) for entry in table(_PHRASES))]


@dataclass(frozen=True)
class CategoryScore:
    """The share of right comparisons in one category, with its baselines."""

    score: Interval
    chance: float
    random_init: float            # score of an untrained model of the same shape
    control: float | None         # share of controls that move the preference the same way, though nothing should
    change: float | None          # mean total variation between the predictions for the two texts
    control_change: float | None  # the same for the two control texts
    cases: int
    left_out: list[str]           # answers and words that are not single pieces of the vocabulary
    by_layer: dict[str, float]    # phrases only


@dataclass(frozen=True)
class CompositionReport(Result):
    categories: dict[str, CategoryScore]
    left_out: dict[str, str]      # built-in categories that this model cannot be tested on, and why


def measure_compositional_understanding(model: MiniBERT, tokenizer: Tokenizer | Cases | None = None,
                                        test_cases: Cases | None = None, *, seed: int = 0) -> CompositionReport:
    """The score of each category of `test_cases`, by default of the built-in cases; `seed` draws the untrained model.

    The tokenizer is by default that of the loaded model; `measure_compositional_understanding(model, test_cases)` works
    too. A case with an answer that is not a single piece of the vocabulary is left out and listed. Phrases are scored
    in the last layer; the scores of all layers are in `by_layer`.
    """
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        tokenizer, test_cases = None, tokenizer
    tokenizer = model_tokenizer(model, tokenizer)
    cases = built_in_cases() if test_cases is None else list(test_cases)
    if not cases or not all(isinstance(case, Contrast | Phrase) for case in cases):
        raise InputError("test_cases must be a list of Contrast(...) and Phrase(...).")
    untrained = MiniBERT(model.config, dtype=model.dtype, seed=seed)
    found: dict[str, CategoryScore] = {}
    left_out: dict[str, str] = {}
    for category in dict.fromkeys(case.category for case in cases):
        contrasts = [case for case in cases if isinstance(case, Contrast) and case.category == category]
        phrases = [case for case in cases if isinstance(case, Phrase) and case.category == category]
        if contrasts and phrases:
            raise InputError(f"The category {category!r} has both contrasts and phrases; give them different names.")
        try:
            if contrasts:
                found[category] = _contrasts(model, untrained, tokenizer, contrasts)
            else:
                found[category], found[f"{category}, noun alone"] = _phrases(model, untrained, tokenizer, phrases)
        except DataError as error:
            if test_cases is not None:
                raise
            left_out[category] = str(error)
    if not found:
        raise DataError(f"No built-in case can be tested: {' '.join(left_out.values())}")
    return CompositionReport(found, left_out)


def _known(tokenizer: Tokenizer, *words: str) -> bool:
    return all(single_piece(tokenizer, word) is not None for word in words)


# -------------------------------------------------------------------- contrasts


def _contrasts(model: MiniBERT, untrained: MiniBERT, tokenizer: Tokenizer,
               cases: list[Contrast]) -> CategoryScore:
    if not model.modules.predicts_words:
        raise DataError(f"{cases[0].category!r} needs predictions of words, but the model has no MLM head.")
    used = [case for case in cases if _known(tokenizer, case.first_answer, case.second_answer)]
    left_out = [f"{case.first_answer}/{case.second_answer}" for case in cases if case not in used]
    if not used:
        raise DataError(f"No case of {cases[0].category!r} has answers that are single pieces of the vocabulary.")
    trained, random = (_preferences(network, tokenizer, used) for network in (model, untrained))
    right = _wins(trained.of_first - trained.of_second)
    return CategoryScore(wilson_interval(float(right.sum()), len(used)), 0.5,
                         float(_wins(random.of_first - random.of_second).mean()),
                         float(_wins(trained.of_control_first - trained.of_control_second).mean()),
                         trained.change, trained.control_change, len(used), left_out, {})


def _wins(differences: Floats) -> Floats:
    """1 above zero, 0 below, and one half for differences that may be rounding errors."""
    return np.where(np.abs(differences) < 1e-5, 0.5, (differences > 0).astype(np.float64))


class _Preferences(NamedTuple):
    """log p(first answer) - log p(second answer) of each case in its four texts, and the change of the predictions."""

    of_first: Floats
    of_second: Floats
    of_control_first: Floats
    of_control_second: Floats
    change: float
    control_change: float


def _preferences(model: MiniBERT, tokenizer: Tokenizer, cases: list[Contrast]) -> _Preferences:
    texts = [text for case in cases for text in (case.first, case.second, case.control_first, case.control_second)]
    answers = np.array([[tokenizer.word_ids(answer)[0] for answer in (case.first_answer, case.second_answer)]
                        for case in cases])
    preferred = np.empty((len(cases), 4))
    changes = np.zeros(2)
    step = _TEXTS_AT_A_TIME // 4
    for start in range(0, len(cases), step):
        some = slice(start, start + step)
        logits = _at_masks(model, tokenizer, texts[4 * start : 4 * (start + step)])
        logits = logits.reshape(-1, 4, logits.shape[1])                   # (cases, 4, V)
        pairs = np.take_along_axis(logits, answers[some, None, :], axis=2).astype(np.float64)
        preferred[some] = pairs[..., 0] - pairs[..., 1]                   # equals the difference of log p
        p, _ = softmax_forward(logits)
        changes += np.abs(p[:, 0::2] - p[:, 1::2]).sum(axis=(0, 2), dtype=np.float64) / 2
    return _Preferences(*preferred.T, *(changes / len(cases)).tolist())


def _at_masks(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str]) -> Array:
    """The logits (N, V) at the one [MASK] of each text."""
    rows = [tokenizer.encode(tokenizer.with_mask(text)) for text in texts]
    for text, row in zip(texts, rows, strict=True):
        if row.count(tokenizer.vocabulary.mask) != 1:
            raise DataError(f"The text of a contrast needs exactly one [MASK], unlike {text!r}.")
        if len(row) > model.config.max_seq_length:
            raise DataError(f"{text!r} has {len(row)} tokens; the model takes {model.config.max_seq_length}.")
    ids, mask = pad_sequences(rows, tokenizer.vocabulary.pad)
    logits, _ = model.forward(ids, mask, positions=ids == tokenizer.vocabulary.mask, forward_only=True)
    return logits


# -------------------------------------------------------------------- phrases


def _phrases(model: MiniBERT, untrained: MiniBERT, tokenizer: Tokenizer,
             cases: list[Phrase]) -> tuple[CategoryScore, CategoryScore]:
    """The score of the phrases' vectors, and that of their nouns' vectors."""
    used = [case for case in cases if _known(tokenizer, case.adjective, case.noun)]
    left_out = [f"{case.adjective} {case.noun}" for case in cases if case not in used]
    if len({case.adjective for case in used}) < 2 or len({case.noun for case in used}) < 2:
        raise DataError(f"The phrases of {cases[0].category!r} need at least two adjectives and two nouns that are "
                        "single pieces of the vocabulary, for the controls.")
    trained, random = (_phrase_wins(network, tokenizer, used) for network in (model, untrained))

    def score(which: int) -> CategoryScore:
        last = list(trained)[-1]
        return CategoryScore(wilson_interval(float(trained[last][which].sum()), len(used)), 0.5,
                             float(random[last][which].mean()), None, None, None, len(used), left_out,
                             {layer: float(wins[which].mean()) for layer, wins in trained.items()})

    return score(0), score(1)


def _phrase_wins(model: MiniBERT, tokenizer: Tokenizer,
                 cases: list[Phrase]) -> dict[str, tuple[Floats, Floats]]:
    """By layer: the share of controls that are less similar to each phrase, and to its noun, than the sum of its parts.

    The phrase is the mean of its two tokens; the parts are the vectors of each word as a text of its own. Phrases and
    sums are centred. Controls are the same noun with every other adjective, and for the phrase also the same adjective
    with every other noun.
    """
    texts = [text for case in cases for text in (f"{case.adjective} {case.noun}", case.adjective, case.noun)]
    ids, mask = pad_sequences([tokenizer.encode(text) for text in texts], tokenizer.vocabulary.pad)
    _, cache = model.encode(ids, mask, forward_only=True)
    first = len(tokenizer.template.before)                                # where a text begins, after [CLS]
    other_adjective, other_noun = (np.array([[a != b for b in words] for a in words]) for words in
                                   zip(*((case.adjective, case.noun) for case in cases), strict=True))
    wins = {}
    for layer, states in layer_states(cache).items():
        words = states[:, first : first + 2].astype(np.float64)
        adjective, noun = words[1::3, 0], words[2::3, 0]                  # (n, H)
        every = adjective[:, None] + noun                                 # (n, n, H): every adjective with every noun
        sums = unit_rows(every - every.mean(axis=(0, 1)))
        by = []
        for vector, nouns_too in ((words[0::3].mean(axis=1), True), (words[0::3, 1], False)):
            unit = unit_rows(vector - vector.mean(axis=0))
            adjectives, nouns = np.einsum("ih,kih->ik", unit, sums), np.einsum("ih,ikh->ik", unit, sums)
            own = adjectives.diagonal()[:, None]
            right, controls = _wins(own - adjectives) * other_adjective, other_adjective.sum(axis=1)
            if nouns_too:
                right, controls = right + _wins(own - nouns) * other_noun, controls + other_noun.sum(axis=1)
            by.append(right.sum(axis=1) / controls)
        wins[layer] = (by[0], by[1])
    return wins
