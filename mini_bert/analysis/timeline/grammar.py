"""Entries on grammar, without training: minimal pairs overall and by phenomenon, and agreement by attractors."""

from ...core.model import MiniBERT
from ...core.registry import register
from ...errors import InputError
from ...evaluation.statistics import Interval
from ...evaluation.zero_shot.agreement import agreement, ngram_agreement
from ...evaluation.zero_shot.minimal_pairs import CHANCE, MinimalPairsReport, minimal_pairs, ngram_averages
from ...text.tokenizer import Tokenizer
from .data import TimelineData
from .entry import TimelineEntry

BLIMP, BIGRAM = "BLiMP", "bigram"


def _scored(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> MinimalPairsReport:
    """The pairs are scored once for both entries."""
    return data.kept("minimal pairs", model, lambda: minimal_pairs(model, tokenizer, data.pairs, threads=data.threads))


def blimp(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """The mean over paradigms."""
    return {BLIMP: _scored(model, tokenizer, data).average["token"]}


def phenomena(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """All pairs of each phenomenon."""
    found = _scored(model, tokenizer, data).phenomena
    return {_spaced(group.name): group.accuracy["token"] for group in found}


def blimp_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    counts = data.counts(tokenizer)
    return {BLIMP: {"chance": CHANCE} | (
        {} if counts is None else {BIGRAM: ngram_averages(tokenizer, data.pairs, counts)["bigram"].mean})}


def phenomenon_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    counts, made = data.counts(tokenizer), dict[str, dict[str, float]]()
    for name in dict.fromkeys(pair.phenomenon for pair in data.pairs):
        own = [pair for pair in data.pairs if pair.phenomenon == name]
        made[_spaced(name)] = {"chance": CHANCE} | (
            {} if counts is None else {BIGRAM: ngram_averages(tokenizer, own, counts)["bigram"].mean})
    return made


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def attractors(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, Interval]:
    """Verbs that agree with their subject, by the number of nouns of the other number between the two."""
    if not model.modules.has_logits:
        raise InputError("the model has no head that compares two forms of a verb")
    found = agreement(model, tokenizer, data.verbs, threads=data.threads)
    return {_line(score.attractors or 0): score.accuracy["model"] for score in found.by_attractors}


def attractor_levels(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    counts, made = data.counts(tokenizer), dict[str, dict[str, float]]()
    for number in sorted({item.attractors for item in data.verbs}):
        own = [item for item in data.verbs if item.attractors == number]
        made[_line(number)] = {"chance": CHANCE} | (
            {} if counts is None else {BIGRAM: ngram_agreement(tokenizer, own, counts)["bigram"].mean})
    return made


def _line(attractors: int) -> str:
    return f"{attractors} attractor{'' if attractors == 1 else 's'}"


register("timeline", "blimp")(TimelineEntry(
    "Grammar (BLiMP)", blimp, ("pairs",), levels=blimp_levels, columns={BLIMP: BLIMP}))
register("timeline", "agreement")(TimelineEntry(
    "Agreement of verbs", attractors, ("agreement",), levels=attractor_levels, columns={"1 attr.": _line(1)}))
register("timeline", "phenomena")(TimelineEntry(
    "BLiMP by phenomenon", phenomena, ("pairs",), levels=phenomenon_levels, apart=True))
