"""Problems visible in the held-out loss, in how often the text was read, and in the held-out text itself."""

import numpy as np

from ...core.arrays import IntArray
from ...randomness import generator
from ...text.corpora.corpus import Corpus
from .run_record import LEAST_HELDOUT, Unavailable
from .symptoms import Case, Certainty, Finding, disease

MEMORISED = 0.1               # nats by which the gap between held-out and training loss has grown
# Repeating a text up to four times is as good as new text, and repeating it forty times adds nothing (Muennighoff et
# al. 2023, for causal models; a masked one hides other tokens each time, which the condition on the loss allows for).
MANY_TIMES = 40
FEW_PREDICTIONS = 100         # masked tokens; a held-out loss of fewer says nothing
SHIFT = 0.3                   # nats of divergence beyond that between parts of the training text
_SAMPLES, _MOST_TOKENS = 3, 1_000_000     # parts that are compared, and their tokens at most


@disease("too little text", 105, needs_curve=False)
def too_little_text(case: Case) -> Finding | None:
    """The text was read again and again, and the held-out loss does not show that anything was learned by it."""
    times = times_read(case)
    if times is None:
        raise Unavailable("the size of its text is unknown.")
    case.measured["times_read"] = times
    tokens, heldout = training_tokens(case.run.corpus), case.run.heldout_curve
    if times <= MANY_TIMES or any(finding.name == "over-fitting" for finding in case.findings):
        return None                               # over-fitting says it better
    judged = sum(int(batch.mask_positions.sum()) for batch in case.run.heldout) \
        if case.run.corpus.manifest.heldout_documents else 0
    evidence = {"tokens_in_text": float(tokens), "tokens_seen": float(case.curve.tokens[-1]), "times_read": times,
                "heldout_predictions": float(judged)}
    if judged >= FEW_PREDICTIONS and len(heldout) >= LEAST_HELDOUT \
            and int(np.argmin(heldout.losses)) >= 0.75 * (len(heldout) - 1):
        return None                               # it still helps
    why = "no text is held out, so nothing shows what it has learned beyond these sentences" if not judged else \
        f"the held-out loss is that of {judged:,} tokens, too few to say anything" if judged < FEW_PREDICTIONS else \
        "the held-out loss has long stopped falling"
    return Finding("too little text", Certainty.CERTAIN,
                   f"The training text has {tokens:,} tokens, and the run has read it {times:,.0f} times; {why}.",
                   evidence,
                   "Train on more text, for fewer steps, or start from a model that has read other text (--from mini).")


def times_read(case: Case) -> float | None:
    """How often the training text has been read; None without the corpus."""
    try:
        return float(case.curve.tokens[-1]) / max(training_tokens(case.run.corpus), 1)
    except Unavailable:
        return None


def training_tokens(corpus: Corpus) -> int:
    """The number of tokens of the training text."""
    return int(_lengths(corpus)[corpus.split("train")].sum())


def _lengths(corpus: Corpus) -> IntArray:
    """The tokens of each document."""
    lengths: IntArray = np.diff(corpus.sentences[corpus.documents].astype(np.int64))
    return lengths


@disease("worse from the first evaluation", 95)
def worse_from_the_first(case: Case) -> Finding | None:
    """The held-out loss was never again as low as when it was first measured."""
    heldout, training = case.run.heldout_curve, case.run.training_curve
    if len(heldout) < LEAST_HELDOUT:
        raise Unavailable(f"its log has fewer than {LEAST_HELDOUT} held-out losses.")
    first, least, last = float(heldout.losses[0]), float(heldout.losses[1:].min()), float(heldout.losses[-1])
    if least < first or last < first + max(0.02, 0.005 * first):
        return None
    fell = float(training.losses[0] - training.losses[-1]) if len(training) > 1 else 0.0
    return Finding("worse from the first evaluation", Certainty.LIKELY,
                   f"The held-out loss was lowest when it was first measured, {first:.3f} at step "
                   f"{heldout.steps[0]:.0f}; in the {len(heldout) - 1} evaluations since then it was never lower, and "
                   f"it is {last:.3f} now.",
                   {"first_heldout_loss": first, "lowest_since": least, "heldout_loss": last,
                    "fall_of_training_loss": fell},
                   "Lower the learning rate, evaluate earlier (training.eval_every), and compare the held-out text "
                   "with the training text.")


@disease("over-fitting", 100)
def over_fitting(case: Case) -> Finding | None:
    """The held-out loss rises while the training loss falls."""
    heldout, training = case.run.heldout_curve, case.run.training_curve
    if len(heldout) < LEAST_HELDOUT:
        raise Unavailable(f"its log has fewer than {LEAST_HELDOUT} held-out losses.")
    best = int(np.argmin(heldout.losses))
    risen = float(heldout.losses[-2:].min() - heldout.losses[best])       # in both of the last two evaluations
    case.measured["heldout_rise"] = risen
    since = training.steps >= heldout.steps[best]
    if since.sum() < 2:
        return None
    third = max(1, int(since.sum()) // 3)
    last = float(np.median(training.losses[since][-third:]))
    fell = float(np.median(training.losses[since][:third])) - last
    # The growth of the gap, not the gap: training may mask more of its text than evaluation, which raises its loss.
    apart, times = risen + fell, times_read(case)
    case.measured["gap_grown"] = apart
    # a hundredth of the loss is more than evaluations vary by chance, since all use the same masks
    if risen < max(0.05, 0.01 * heldout.losses[best]) or fell < 0.02:
        return None
    # only text that was read before can be memorised
    if apart < MEMORISED or (times is not None and times <= 1):
        return None
    read = "" if times is None else f"; the text has been read {times:.1f} times"
    return Finding("over-fitting", Certainty.CERTAIN if times is not None else Certainty.LIKELY,
                   f"Since step {heldout.steps[best]:.0f} the held-out loss has risen by {risen:.2f} while the "
                   f"training loss has fallen by {fell:.2f}{read}.",
                   {"best_step": float(heldout.steps[best]), "lowest_heldout_loss": float(heldout.losses[best]),
                    "heldout_loss": float(heldout.losses[-1]), "training_loss": last,
                    "gap_grown": apart}
                   | ({"times_read": times} if times is not None else {}),
                   "Use the checkpoint in best/, and train on more text rather than longer.")


# -------------------------------------------------------------------- the held-out text


@disease("held-out text of another kind", 32, needs_curve=False)
def other_heldout_text(case: Case) -> Finding | None:
    """The frequencies of tokens in the held-out text are further from those of training than parts of training are."""
    corpus = case.run.corpus
    heldout, train = corpus.split("heldout"), corpus.split("train")
    if not len(heldout):
        raise Unavailable("no text is held out.")
    own = _counts(corpus, _drawn(corpus, heldout, _MOST_TOKENS, 0))
    rest = corpus.piece_counts()
    for tokens in corpus.token_chunks("heldout"):
        rest -= np.bincount(tokens, minlength=len(rest))
    shift = divergence(own, rest)
    parts = [_drawn(corpus, train, int(own.sum()), number) for number in range(1, _SAMPLES + 1)]
    if not rest.any() or any(len(part) >= len(train) for part in parts):
        raise Unavailable("its training text has too few documents to compare the held-out text with.")
    usual = max(divergence(some, rest - some) for some in (_counts(corpus, part) for part in parts))
    case.measured |= {"divergence_of_heldout_text": shift, "divergence_within_training": usual}
    if shift < usual + SHIFT:
        return None
    unseen = float(own[rest == 0].sum() / own.sum())
    return Finding("held-out text of another kind", Certainty.LIKELY,
                   f"The tokens of the held-out text diverge from those of training by {shift:.2f} nats; parts of the "
                   f"training text of the same size diverge by {usual:.2f} at most. {unseen:.1%} of the held-out "
                   "tokens do not occur in training.",
                   {"divergence": shift, "divergence_within_training": usual, "unseen_share": unseen,
                    "heldout_tokens": float(own.sum())},
                   "Hold out documents of all kinds: put the texts together before data prepare, which draws documents "
                   "by chance, or read the held-out loss as that of another text.")


def divergence(own: IntArray, others: IntArray) -> float:
    """KL(own || others) of the frequencies in two vectors of counts (V,), in nats; the others with one added each."""
    p = own / own.sum()
    q = (others + 1) / (others.sum() + len(others))
    there = own > 0
    return float((p[there] * np.log(p[there] / q[there])).sum())


def _drawn(corpus: Corpus, documents: IntArray, tokens: int, number: int) -> IntArray:
    """Random documents, all or as many as have about this many tokens."""
    order = generator(0, "divergence", number).permutation(documents)
    ends = np.cumsum(_lengths(corpus)[order])
    chosen: IntArray = order[: int(np.searchsorted(ends, tokens)) + 1]
    return chosen


def _counts(corpus: Corpus, documents: IntArray) -> IntArray:
    counts = np.zeros(corpus.manifest.vocab_size, np.int64)
    for document in np.sort(documents).tolist():
        first, last = (int(corpus.sentences[int(corpus.documents[document + end])]) for end in (0, 1))
        counts += np.bincount(corpus.tokens[first:last], minlength=len(counts))
    return counts
