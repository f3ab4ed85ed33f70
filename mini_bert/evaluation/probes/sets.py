"""The training, development and test set of a probe, and their word vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.model import MiniBERT
from ...errors import DataError
from ...inference.inputs import require_vocabulary
from ...randomness import generator
from ...text.tokenizer import Tokenizer
from ...workers import Workers
from ..formats.conllu import Sentence
from ..samples import sampled
from .classifier import Scaling
from .quantised_vectors import QuantisedVectors, quantised_bytes
from .word_vectors import Alignment, align_words, chosen_layers, read_states

SPLITS = ("train", "dev", "test")
DEV_SHARE = 0.1                           # of the training sentences, if no development set is given
MAX_BYTES = 2_200_000_000                 # for the vectors held at a time, the model, and a randomly initialised model
_FEW_WORDS = 2000                         # of training; with fewer, a probe says little


@dataclass(frozen=True)
class ProbeSets:
    """The sentences of each split with their alignment to pieces, and notes on sampled, cut or windowed sentences."""

    sentences: dict[str, list[Sentence]]
    alignments: dict[str, Alignment]
    notes: list[str]
    max_bytes: int = MAX_BYTES

    def layer_groups(self, model: MiniBERT, layers: Sequence[str] | None = None, *,
                     pooling: str = "ends") -> list[list[str]]:
        """The layers, all by default, in groups whose vectors fit into `max_bytes`; one group if all fit.

        A large model needs more passes over the text, never fewer sentences.
        """
        names = chosen_layers(model, layers)
        H = model.config.hidden_size
        each = sum(quantised_bytes(alignment, pooling, H) for alignment in self.alignments.values())
        room = self.max_bytes - 2 * model.params.nbytes
        if each > room:
            words = sum(alignment.report.words for alignment in self.alignments.values())
            raise DataError(f"The vectors of {words:,} words at one layer take {each / 1e9:.2f} GB, but next to the "
                            f"model there are only {max(room, 0) / 1e9:.2f} GB; use fewer sentences (max_samples).")
        most = room // max(each, 1)
        return [names[start : start + most] for start in range(0, len(names), most)]

    def vectors(self, model: MiniBERT, tokenizer: Tokenizer, *, layers: Sequence[str] | None = None,
                pooling: str = "ends", team: Workers | None = None,
                progress: Callable[[int], None] | None = None) -> dict[str, dict[str, QuantisedVectors]]:
        """layer -> split -> the vectors of all words. `progress` is called with the number of windows done so far."""
        names, before = chosen_layers(model, layers), 0
        made: dict[str, dict[str, QuantisedVectors]] = {name: {} for name in names}
        for split, alignment in self.alignments.items():
            held = [QuantisedVectors(alignment, pooling, model.config.hidden_size) for _ in names]

            def put(layer: int, *what: Any, held: list[QuantisedVectors] = held) -> None:
                held[layer].put(*what)

            def report(done: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + done)

            read_states(model, tokenizer, alignment, names, put, team=team, progress=report)
            before += len(alignment.windows)
            for name, vectors in zip(names, held, strict=True):
                made[name][split] = vectors
        return made

    def each_group(self, model: MiniBERT, tokenizer: Tokenizer, groups: Sequence[Sequence[str]],
                   use: Callable[[dict[str, dict[str, QuantisedVectors]]], None], *, pooling: str, centred: bool,
                   team: Workers, progress: Callable[[int, int], None]) -> None:
        """Call `use` with the scaled vectors of each group of layers; those of one group are held at a time.

        The features have standard deviation one on the training set, and mean zero if `centred`.
        """
        windows = sum(len(alignment.windows) for alignment in self.alignments.values())

        def scaled(splits: dict[str, QuantisedVectors]) -> dict[str, QuantisedVectors]:
            mean, deviation = Scaling.of(splits["train"])
            return {split: x.standardised(mean if centred else None, deviation) for split, x in splits.items()}

        for number, group in enumerate(groups):
            def encoded(done: int, before: int = number * windows) -> None:
                progress(before + done, len(groups) * windows)

            vectors = self.vectors(model, tokenizer, layers=group, pooling=pooling, team=team, progress=encoded)
            use(dict(zip(vectors, team.map(scaled, vectors.values()), strict=True)))
            del vectors                       # before those of the next group are made

    def to_dict(self) -> dict[str, dict[str, int]]:
        return {split: alignment.report.to_dict() for split, alignment in self.alignments.items()}


def probe_sets(model: MiniBERT, tokenizer: Tokenizer, train: Sequence[Sentence], test: Sequence[Sentence],
               dev: Sequence[Sentence] | None = None, *, max_samples: int | None = None, seed: int = 0,
               max_bytes: int = MAX_BYTES) -> ProbeSets:
    """Prepare the three sets, those to train and to choose by with at most `max_samples` sentences drawn by the seed.

    Without `dev`, a tenth of the training sentences is used as the development set. The sentences do not depend on the
    size of the model: if the vectors of all layers exceed `max_bytes`, fewer layers are held at a time.
    """
    require_vocabulary(model, tokenizer)
    notes: list[str] = []
    sets = {"train": list(train), "test": list(test)} | ({"dev": list(dev)} if dev is not None else {})
    for split, sentences in sets.items():
        if not sentences:
            raise DataError(f"The {split} set has no sentences.")
        if max_samples is not None and max_samples < len(sentences) and split != "test":
            notes.append(f"{split}: {max_samples:,} of {len(sentences):,} sentences were drawn")
            sets[split] = sampled(sentences, max_samples, seed, "probe sample", split)
    if dev is None:
        count = max(1, round(DEV_SHARE * len(sets["train"])))
        if len(sets["train"]) < 2:
            raise DataError("The training set has only one sentence; give a second one or a development set.")
        chosen = set(generator(seed, "probe dev").permutation(len(sets["train"]))[:count].tolist())
        sets["dev"] = [sets["train"][i] for i in sorted(chosen)]
        sets["train"] = [sentence for i, sentence in enumerate(sets["train"]) if i not in chosen]
        notes.append(f"dev: {count:,} sentences of the training set serve as the development set")
    alignments = {split: align_words(tokenizer, [sentence.words for sentence in sets[split]],
                                     model.config.max_seq_length) for split in SPLITS}
    if alignments["train"].report.words < _FEW_WORDS:
        notes.append(f"train: {alignments['train'].report.words:,} words are too few for a reliable probe")
    for split, alignment in alignments.items():
        report = alignment.report
        for number, what in ((report.windowed_sentences, "sentences are longer than the model takes and were windowed"),
                             (report.cut_words, "words are longer than the model takes and were cut"),
                             (report.empty_words, "words have no piece and were replaced by [UNK]")):
            if number:
                notes.append(f"{split}: {number:,} {what}")
    return ProbeSets({split: sets[split] for split in SPLITS}, alignments, notes, max_bytes)
