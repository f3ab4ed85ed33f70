"""Named entities as BIO labels, one label per word: validation, spans, and F1."""

from collections.abc import Sequence


def is_bio(label: str) -> bool:
    """Whether a label is O, B-TYPE or I-TYPE."""
    return label == "O" or (label[:2] in ("B-", "I-") and len(label) > 2)


def as_bio(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels with B- at the start of every entity."""
    found, before = [], "O"
    for label in labels:
        begins = label.startswith("I-") and before[2:] != label[2:]
        found.append(f"B-{label[2:]}" if begins else label)
        before = label
    return tuple(found)


def entity_spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """(start, end, type) of each entity, in order; an I- that continues no entity begins one."""
    spans: list[tuple[int, int, str]] = []
    start, kind = 0, ""
    for i, label in enumerate([*as_bio(labels), "O"]):
        if kind and not label.startswith("I-"):
            spans.append((start, i, kind))
            kind = ""
        if label.startswith("B-"):
            start, kind = i, label[2:]
    return spans


def entity_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """F1 of entities over sentences of BIO labels; span and type of an entity must match exactly."""
    right = found = there = 0
    for g, p in zip(gold, predicted, strict=True):
        true, guessed = set(entity_spans(g)), set(entity_spans(p))
        right, found, there = right + len(true & guessed), found + len(guessed), there + len(true)
    return 2 * right / (found + there) if found + there else 0.0
