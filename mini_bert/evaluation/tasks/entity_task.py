"""Named entity recognition: one BIO label per word."""

from collections import Counter
from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

from ...core.config import ModelConfig
from ...core.modules.heads.tasks import Answers
from ...core.registry import register
from ...core.task_model import TaskModel
from ...errors import DataError
from ...text.tokenizer import Tokenizer
from ...workers import Workers
from ..formats.conllu import Sentence
from ..formats.named import DataSource
from ..formats.reading import load_sentences
from ..samples import sampled, set_aside
from .bio import entity_f1
from .encode import Encoded, encode_words
from .predict import labels_of_words
from .task import DEV_SHARE, Task, notes_about, source_name

SentenceSource = DataSource | Sequence[Sentence]


class SentenceSet(NamedTuple):
    """An encoded development or test set."""

    words: list[tuple[str, ...]]
    encoded: Encoded
    truth: list[Sequence[str]]


@register("task", "ner")
class Entities(Task[SentenceSet]):
    """Words with BIO labels, from CoNLL or CoNLL-U files or tables of lists."""

    head = "tokens"
    answers = Answers.TOKENS

    def __init__(self, train: SentenceSource, dev: SentenceSource | None, tokenizer: Tokenizer,
                 config: ModelConfig, *, max_samples: int | None = None, seed: int = 0,
                 test: SentenceSource | None = None):
        read = list(_read(train))
        given = {label for labels in _split(read)[1] for label in labels}     # a sample may lack some
        if len(given) < 2:
            raise DataError(f"{source_name(train)} has only the label {next(iter(given))!r}, so there is nothing to "
                            "learn.")
        self.labels = sorted(given, key=lambda label: (label != "O", label))
        self.outputs = len(self.labels)
        if dev is None:
            held, read = _set_aside(read, seed)
            self.said.append(f"{len(held):,} of {len(held) + len(read):,} sentences are set aside as the "
                             "development set.")
        else:
            held = list(_read(dev))
        sets_of = [sampled(sentences, max_samples, seed, "samples") for sentences in (read, held)]
        (words, answers), *asked = map(_split, [*sets_of, *([] if test is None else [_read(test)])])
        self._train = words, answers
        numbers = {label: i for i, label in enumerate(self.labels)}
        longest = config.max_seq_length
        self.train = encode_words(words, [[numbers[label] for label in labels] for labels in answers], tokenizer,
                                  longest)
        sets = [SentenceSet(some, encode_words(some, None, tokenizer, longest), truth) for some, truth in asked]
        self.dev, self.measured = sets[0], sets[-1]
        unseen = sum(label not in numbers for part in sets for labels in part.truth for label in labels)
        encoded = [self.train, *(part.encoded for part in sets)]
        self.notes = notes_about([words, *(part.words for part in sets)], {
            "longer than the model reads at once, in windows": sum(made.split for made in encoded),
            "words too long, cut": sum(made.parts_cut for made in encoded),
            "words with labels unseen in training, which count as wrong": unseen})

    def _figures(self, data: SentenceSet, model: TaskModel, team: Workers) -> dict[str, float]:
        found = [[self.labels[i] for i in row] for row in labels_of_words(model, data.encoded, len(data.words), team)]
        pairs = [(a, b) for ours, theirs in zip(found, data.truth, strict=True)
                 for a, b in zip(ours, theirs, strict=True)]
        return {"entity_f1": entity_f1(data.truth, found), "word_accuracy": sum(a == b for a, b in pairs) / len(pairs)}

    def baselines(self) -> dict[str, float]:
        """The most frequent label of each word in training, and O for unseen words."""
        seen: dict[str, Counter[str]] = {}
        for words, labels in zip(*self._train, strict=True):
            for word, label in zip(words, labels, strict=True):
                seen.setdefault(word.lower(), Counter())[label] += 1
        memory = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
        return {"word-type memory": entity_f1(self.measured.truth, [[memory.get(word.lower(), "O") for word in words]
                                                                    for words in self.measured.words])}


def _read(given: SentenceSource) -> Sequence[Sentence]:
    sentences = load_sentences(given) if isinstance(given, str | PathLike) else given
    without = [number for number, sentence in enumerate(sentences, 1) if sentence.entities is None]
    if len(without) == len(sentences):
        raise DataError(f"{source_name(given)} has no named entities: neither Entity= in MISC nor BIO labels.")
    if without:
        raise DataError(f"{source_name(given)}, sentence {without[0]}: it has no entity annotation, unlike others; "
                        f"{len(without):,} of {len(sentences):,} have none.")
    return sentences


def _set_aside(sentences: list[Sentence], seed: int) -> tuple[list[Sentence], list[Sentence]]:
    """A tenth of the sentences with its share of each combination of kinds of entities, and the others."""
    kinds = [sorted({label[2:] for label in sentence.entities or ()}) for sentence in sentences]
    there = set(set_aside([sentence.words for sentence in sentences], kinds, DEV_SHARE, seed, "development set"))
    return [s for i, s in enumerate(sentences) if i in there], [s for i, s in enumerate(sentences) if i not in there]


def _split(sentences: Sequence[Sentence]) -> tuple[list[tuple[str, ...]], list[Sequence[str]]]:
    """The words and the labels of all sentences."""
    return [sentence.words for sentence in sentences], [sentence.entities or () for sentence in sentences]
