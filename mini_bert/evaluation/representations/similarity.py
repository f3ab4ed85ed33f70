"""Word similarity and analogies, for static and contextual vectors.

    similarity:  Spearman's correlation of cosines with human scores
    analogies:   a is to b as c is to the word d with the largest cos(d, b - a + c)        (3CosAdd)

The static vector of a word is the mean of the token embeddings of its pieces. Its contextual vector at a layer is the
mean over its pieces and over sentences of a given text that contain the word, or over the word alone as a sentence.
Layer 0 is the input of the first layer; the last layer is the input of the MLM head.

The baselines are an untrained model of the same shape, which only knows how words are split into pieces, and for
analogies the word nearest to c, which ignores a and b.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

import numpy as np

from ...core.arrays import BoolArray, IntArray
from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...text.corpora.sentences import split_sentences
from ...text.corpora.sources import ReadingReport, Source, find_sources, paragraphs
from ...text.tokenizer import Tokenizer
from ...workers import Workers, workers
from ..built_in import built_in_words
from ..formats.words import Analogies, Similarity, read_words
from ..model_tokenizer import model_tokenizer
from ..ranking import spearman_interval
from ..result import Result
from ..samples import sampled
from ..statistics import Interval, wilson_interval
from ..zero_shot.pseudo_likelihood import FloatArray, ProgressCallback, offset_progress, same_length_groups, window

STATIC = "static"
CONTEXTS = 20                 # maximum number of sentences for a word
_TOKENS, _ROUND = 2048, 32     # per batch; batches between two calls of progress
_AT_A_TIME = 4096             # analogies


# -------------------------------------------------------------------- vectors

Pieces = tuple[int, ...]


class Contexts(NamedTuple):
    """Sequences, each with the positions [start, end) of a word's pieces and the index of the word."""

    sequences: list[list[int]]
    places: list[tuple[int, int]]
    words: IntArray


def words_alone(tokenizer: Tokenizer, words: Sequence[Pieces], longest: int) -> Contexts:
    """Each word alone as a sentence."""
    room, first = longest - tokenizer.template.added(), len(tokenizer.template.before)
    parts = [ids[:room] for ids in words]
    return Contexts([tokenizer.with_special(ids) for ids in parts], [(first, first + len(ids)) for ids in parts],
                    np.arange(len(words)))


def words_in_text(text: Iterable[str], tokenizer: Tokenizer, words: Sequence[Pieces], longest: int, *,
                  most: int = CONTEXTS, seed: int = 0) -> Contexts:
    """At most `most` sentences of the text for each word, drawn by the seed; a long sentence is cut around the word."""
    ids, counts = tokenizer.ids_array(sentence for paragraph in text for sentence in split_sentences(paragraph))
    lengths = counts.astype(np.int64)
    ends = np.cumsum(lengths)
    begins_word = ~tokenizer.vocabulary.continues[ids]
    begins_word[(ends - lengths)[lengths > 0]] = True
    begins = np.flatnonzero(begins_word)
    stops = np.append(begins[1:], len(ids))
    number = {own: i for i, own in enumerate(words)}
    first = np.zeros(len(tokenizer), bool)
    first[[own[0] for own in words]] = True
    near = first[ids[begins]]                                     # skip words whose first piece begins no wanted word
    found: list[list[tuple[int, int]]] = [[] for _ in words]
    for begin, stop in zip(begins[near].tolist(), stops[near].tolist(), strict=True):
        own = number.get(tuple(ids[begin:stop].tolist()))
        if own is not None:
            found[own].append((begin, stop))
    kept = [(word, *place) for word, places in enumerate(found)
            for place in sampled(places, most, seed, "contexts", repr(words[word]))]
    sequences, places = [], []
    room, before = longest - tokenizer.template.added(), len(tokenizer.template.before)
    for _, begin, stop in kept:
        sentence = int(np.searchsorted(ends, begin, side="right"))
        start = int(ends[sentence] - lengths[sentence])
        part, place = window(ids[start : ends[sentence]].tolist(), begin - start, room)
        sequences.append(tokenizer.with_special(part))
        places.append((before + place, before + min(place + stop - begin, len(part))))
    return Contexts(sequences, places, np.array([word for word, *_ in kept], np.int64))


def static_vectors(model: MiniBERT, words: Sequence[Pieces]) -> FloatArray:
    """The mean of each word's token embeddings (words, H)."""
    return np.array([model.token_embeddings[list(ids)].mean(axis=0, dtype=np.float64) for ids in words])


def contextual_vectors(model: MiniBERT, where: Contexts, words: int, layers: Sequence[int], team: Workers,
                       progress: Callable[[int], None] | None = None) -> dict[str, FloatArray]:
    """By layer, the mean over a word's contexts of the mean over its pieces (words, H); zeros for a word without."""
    sums = {layer: np.zeros((words, model.config.hidden_size)) for layer in layers}
    last, done = model.config.num_layers, 0

    def one(numbers: IntArray) -> list[FloatArray]:
        ids = np.array([where.sequences[i] for i in numbers.tolist()])                    # (b, T)
        _, cache = model.encode(ids, forward_only=True)
        start, end = np.array([where.places[i] for i in numbers.tolist()]).T[..., None]
        columns = np.arange(ids.shape[1])
        weights = (((columns >= start) & (columns < end)) / (end - start)).astype(model.dtype)[:, None]
        names = ["final_hidden" if i == last else f"hidden_{i - 1}" if i else "embeddings" for i in layers]
        return [(weights @ cache[name])[:, 0].astype(np.float64) for name in names]

    batches = []
    for numbers in same_length_groups(where.sequences):
        size = max(1, _TOKENS // len(where.sequences[numbers[0]]))
        batches += [numbers[i : i + size] for i in range(0, len(numbers), size)]
    for start in range(0, len(batches), _ROUND):
        some = batches[start : start + _ROUND]
        for numbers, found in zip(some, team.map(one, some), strict=True):
            for total, values in zip(sums.values(), found, strict=True):
                np.add.at(total, where.words[numbers], values)
            done += len(numbers)
        if progress is not None:
            progress(done)
    times = np.maximum(np.bincount(where.words, minlength=words), 1)[:, None]
    return {str(layer): total / times for layer, total in sums.items()}


# -------------------------------------------------------------------- measures

def _unit(vectors: FloatArray) -> FloatArray:
    unit: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit


def analogy_answers(vectors: FloatArray, questions: IntArray) -> tuple[IntArray, IntArray]:
    """For questions (N, 3), indices of a, b, c: the answer of 3CosAdd, and the word nearest to c; never a, b or c."""
    unit = _unit(vectors)
    found: list[list[IntArray]] = [[], []]
    for start in range(0, len(questions), _AT_A_TIME):
        some = questions[start : start + _AT_A_TIME]
        a, b, c = (unit[column] for column in some.T)
        for answers, target in zip(found, (b - a + c, c), strict=True):
            cosines = target @ unit.T                             # up to the norm of the target
            np.put_along_axis(cosines, some, -np.inf, axis=1)
            answers.append(cosines.argmax(axis=1))
    return np.concatenate(found[0]), np.concatenate(found[1])


# -------------------------------------------------------------------- report

@dataclass(frozen=True)
class SimilarityScore:
    """The correlation on one file for the vectors of one layer; None where it is undefined."""

    data: str
    layer: str
    spearman: Interval | None
    untrained: Interval | None
    pairs: int
    left_out: int                 # pairs with a word that is unknown or has no context
    several_pieces: int           # of the scored pairs, those with a word of several pieces


@dataclass(frozen=True)
class AnalogyScore:
    """The accuracy in a section, or in all sections for None, for the vectors of one layer."""

    data: str
    section: str | None
    layer: str
    accuracy: Interval
    nearest: Interval             # accuracy of the word nearest to c
    untrained: Interval
    questions: int
    left_out: int
    candidates: int               # words to choose from: those of the file that have vectors


@dataclass(frozen=True)
class SemanticReport(Result):
    """The scores of all files by layer."""

    similarity: list[SimilarityScore]
    analogies: list[AnalogyScore]
    words: int                    # distinct words in the files
    without_context: int          # words with known pieces that do not occur in the text
    sentences: int                # contexts found in the text; 0 for words alone
    invalid_bytes: int            # bytes of the text that were not UTF-8 and were replaced


def probe_semantic_knowledge(model: MiniBERT, tokenizer: Tokenizer | None = None,
                             names: Sequence[str | PathLike[str]] | None = None, *,
                             text: Sequence[str | Source] | None = None, layers: Sequence[int] | None = None,
                             contexts: int = CONTEXTS, max_samples: int | None = None, seed: int = 0,
                             threads: int = 0, progress: ProgressCallback | None = None) -> SemanticReport:
    """Similarity and analogies of the named files, for static vectors and those of `layers`, all by default.

    The tokenizer is by default that of the loaded model, and the words are a small built-in set. A word's contexts are
    at most `contexts` sentences of the `text` files, or the word alone. `max_samples` draws at most that many pairs or
    questions of a file; the candidates of analogies are still all words of the file.
    """
    tokenizer = model_tokenizer(model, tokenizer)
    layers = range(model.config.num_layers + 1) if layers is None else layers
    wrong_layer = next((layer for layer in layers if not 0 <= layer <= model.config.num_layers), None)
    if wrong_layer is not None:
        raise InputError(f"There is no layer {wrong_layer}; this model has 0 to {model.config.num_layers}.")
    files = built_in_words() if names is None else [read_words(name) for name in names]
    if not files:
        raise DataError("No file of words was given.")
    spelled = [word for data in files for group in (data.pairs if isinstance(data, Similarity) else data.questions)
               for word in group]
    pieces = {word: tuple(tokenizer.word_ids(word)) for word in dict.fromkeys(spelled)}
    # words that an uncased tokenizer does not distinguish are one word
    unknown = tokenizer.vocabulary.roles.get("unk")
    known = list(dict.fromkeys(ids for ids in pieces.values() if ids and unknown not in ids))
    if not known:
        raise DataError("The tokenizer knows none of the words.")
    number = {ids: i for i, ids in enumerate(known)}
    longest, report = model.config.max_seq_length, ReadingReport()
    where = words_alone(tokenizer, known, longest) if text is None else words_in_text(
        (line for line in paragraphs(find_sources(text), report) if line is not None), tokenizer, known, longest,
        most=contexts, seed=seed)
    untrained = MiniBERT(model.config, dtype=model.dtype, seed=seed)
    made = []
    with workers(threads) as team:
        for turn, network in enumerate((model, untrained)):
            made.append({STATIC: static_vectors(network, known), **contextual_vectors(
                network, where, len(known), layers, team,
                offset_progress(progress, turn * len(where.sequences), 2 * len(where.sequences)))})
    seen = np.bincount(where.words, minlength=len(known)) > 0
    similarity: list[SimilarityScore] = []
    analogies: list[AnalogyScore] = []
    for data in files:
        groups: Sequence[tuple[str, ...]] = data.pairs if isinstance(data, Similarity) else data.questions
        chosen = sampled(range(len(groups)), max_samples, seed, "words", data.name)
        asked = np.array([[number.get(pieces[word], -1) for word in groups[i]] for i in chosen])
        for layer in made[0]:
            covered = (asked >= 0).all(axis=1) & (np.ones(len(asked), bool) if layer == STATIC
                                                  else seen[asked].all(axis=1))
            both = made[0][layer], made[1][layer]
            if isinstance(data, Similarity):
                several = np.array([len(ids) > 1 for ids in known])[asked[covered]].any(axis=1)
                scores = np.array(data.scores)[chosen][covered]
                found = [spearman_interval(_cosines(vectors, asked[covered]), scores) for vectors in both]
                similarity.append(SimilarityScore(data.name, layer, found[0], found[1], len(scores),
                                                  len(asked) - len(scores), int(several.sum())))
            else:
                words = np.unique([number.get(pieces[word], -1) for group in groups for word in group])
                words = words[(words >= 0) & (seen[words] if layer != STATIC else True)]
                analogies += _analogy_scores(data, layer, both, asked, covered, words,
                                             [data.sections[i] for i in chosen])
    return SemanticReport(similarity, analogies, len(pieces), int((~seen).sum()),
                          0 if text is None else len(where.sequences), report.invalid)


def _cosines(vectors: FloatArray, pairs: IntArray) -> FloatArray:
    unit = _unit(vectors)
    cosines: FloatArray = np.einsum("nh,nh->n", unit[pairs[:, 0]], unit[pairs[:, 1]])
    return cosines


def _analogy_scores(data: Analogies, layer: str, both: tuple[FloatArray, FloatArray], asked: IntArray,
                    covered: BoolArray, words: IntArray, sections: list[str]) -> list[AnalogyScore]:
    """Scores by section and in total. A question whose answer is one of its own words cannot be solved: left out."""
    fair = covered & (asked[:, :3] != asked[:, 3:]).all(axis=1)
    local = np.searchsorted(words, asked[fair])                   # indices among the candidates
    if not len(local):
        return []
    (right, nearest), (untrained, _) = (
        [answers == local[:, 3] for answers in analogy_answers(vectors[words], local[:, :3])] for vectors in both)
    of = np.array(sections)
    scores = []
    for section in (None, *dict.fromkeys(sections)):
        everywhere = np.ones(len(of), bool) if section is None else of == section
        here = everywhere[fair]
        if here.any():
            count = int(here.sum())
            shares = [wilson_interval(int(values[here].sum()), count) for values in (right, nearest, untrained)]
            scores.append(AnalogyScore(data.name, section, layer, shares[0], shares[1], shares[2], count,
                                       int(everywhere.sum()) - count, len(words)))
    return scores
