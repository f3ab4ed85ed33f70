"""Sequences, batches and masks from a corpus."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert import ConfigError, CorpusError, InputError
from mini_bert.core.registry import register, restored_registry
from mini_bert.text.batches import BUCKET, MLMBatches
from mini_bert.text.generator import MLMDataGenerator
from mini_bert.text.masking import Masking
from mini_bert.text.permutation import Permutation
from mini_bert.text.schedule import Step
from mini_bert.text.sequences.pairs import RandomPairs, SwappedPairs
from mini_bert.text.sequences.sequences import PackedSequences, PairSequences, SentenceSequences
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig

CLS, SEP, PAD, MASK = 2, 3, 0, 4


@given(st.integers(1, 2000), st.integers(0, 100))
def test_a_permutation_contains_every_number_once(n, seed):
    assert sorted(Permutation(n, seed, "test")(np.arange(n))) == list(range(n))


def test_a_permutation_depends_on_its_key_and_looks_shuffled():
    n = 100_000
    first, again, other = (Permutation(n, 0, "epoch", e)(np.arange(n)) for e in (0, 0, 1))
    assert np.array_equal(first, again)
    assert (first == other).mean() < 0.001
    assert abs(np.corrcoef(np.arange(n), first)[0, 1]) < 0.02
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.02
    assert Permutation(10**12, 0)([10**12 - 1])[0] < 10**12                # in constant memory


def test_packed_sequences_cover_the_documents_in_order(corpus):
    sequences = PackedSequences(corpus, "train", 16)
    rows = sequences.fill(np.arange(len(sequences)), 0, 0)
    inside = [row[1 : int(mask.sum()) - 1] for row, mask in zip(rows.ids, rows.attention_mask, strict=True)]
    assert np.array_equal(np.concatenate(inside), np.concatenate([corpus.document(n) for n in corpus.split("train")]))
    assert (rows.ids[:, 0] == CLS).all()
    assert all(row[int(mask.sum()) - 1] == SEP for row, mask in zip(rows.ids, rows.attention_mask, strict=True))
    assert np.array_equal(rows.ids == PAD, ~rows.attention_mask)
    assert np.array_equal(sequences.lengths(np.arange(len(sequences))), rows.attention_mask.sum(axis=1))


def test_each_sentence_sequence_is_one_sentence(corpus):
    sequences = SentenceSequences(corpus, "heldout", 10)
    expected = [sentence[:8] for n in corpus.split("heldout") for sentence in corpus.document_sentences(n)]
    rows = sequences.fill(np.arange(len(sequences)), 0, 0)
    assert len(sequences) == len(expected)
    for row, mask, sentence in zip(rows.ids, rows.attention_mask, expected, strict=True):
        assert row[: int(mask.sum())].tolist() == [CLS, *sentence, SEP]


def sentences_of(rows):
    """The two sentences of each row, without special tokens, and the row's types, checked."""
    for ids, types, mask in zip(rows.ids, rows.token_types, rows.attention_mask, strict=True):
        real = ids[mask].tolist()
        cut = real.index(SEP)
        assert real[0] == CLS
        assert real[-1] == SEP
        assert (types[: cut + 1] == 0).all()
        assert (types[cut + 1 : len(real)] == 1).all()
        yield tuple(real[1:cut]), tuple(real[cut + 1 : -1])


@pytest.fixture(scope="module")
def documents(corpus):
    """For each sentence of the training text: the documents it is in, and the sentences that follow it."""
    found, following = {}, {}
    for number in corpus.split("train"):
        sentences = [tuple(sentence.tolist()) for sentence in corpus.document_sentences(number)]
        for sentence in sentences:
            found.setdefault(sentence, set()).add(number)
        for a, b in pairwise(sentences):
            following.setdefault(a, set()).add(b)
    return found, following


def test_pairs_are_consecutive_sentences(corpus, documents):
    sequences = PairSequences(corpus, "train", 40)
    rows = sequences.fill(np.arange(len(sequences)), 0, 0)
    assert rows.relation is None
    for (a, b), mask in zip(sentences_of(rows), rows.attention_mask, strict=True):
        assert mask.sum() == 40 or b in documents[1][a]


def test_half_of_the_random_pairs_have_a_sentence_of_another_document(corpus, documents):
    sequences = RandomPairs(corpus, "train", 64)
    numbers = np.arange(len(sequences))
    rows = sequences.fill(numbers, 0, 0)
    assert 0.4 < rows.relation.mean() < 0.6
    others = set()
    for (a, b), relation in zip(sentences_of(rows), rows.relation, strict=True):
        if relation == 0:
            assert b in documents[1][a]
        elif len(documents[0][a]) == len(documents[0][b]) == 1:
            assert documents[0][a] != documents[0][b]
            others |= documents[0][b]
    assert len(others) > 0.7 * len(corpus.split("train"))                  # all of them are drawn from
    again = sequences.fill(numbers[5:9], 0, 0)
    assert np.array_equal(again.ids[again.attention_mask], rows.ids[5:9][rows.attention_mask[5:9]])
    assert not np.array_equal(sequences.fill(numbers, 1, 0).relation, rows.relation)
    assert not np.array_equal(sequences.fill(numbers, 0, 1).relation, rows.relation)


def test_half_of_the_swapped_pairs_are_in_the_wrong_order(corpus, documents):
    sequences = SwappedPairs(corpus, "train", 64)
    rows = sequences.fill(np.arange(len(sequences)), 0, 0)
    assert 0.4 < rows.relation.mean() < 0.6
    for (a, b), relation in zip(sentences_of(rows), rows.relation, strict=True):
        assert (a in documents[1][b]) if relation else (b in documents[1][a])


@pytest.mark.parametrize("mode", ["packed", "sentences", "pairs"])
@pytest.mark.parametrize("bucket", [False, True])
def test_an_epoch_has_every_sequence_once_and_any_step_is_computed_directly(corpus, mode, bucket):
    batches = MLMBatches(corpus, max_seq_length=16, batch_size=7, mode=mode, bucket=bucket)
    n = len(batches.sequences)
    for epoch in (0, 1):
        seen = np.concatenate([batches.numbers(epoch * len(batches) + step)[1] for step in range(len(batches))])
        assert sorted(seen) == list(range(n))
    again = MLMBatches(corpus, max_seq_length=16, batch_size=7, mode=mode, bucket=bucket)[len(batches) + 2]
    assert all(np.array_equal(a, b) for a, b in zip(again, batches[len(batches) + 2], strict=True) if a is not None)
    assert not np.array_equal(batches[0].target_ids, batches[len(batches)].target_ids)


def test_bucketing_reduces_padding(corpus):
    def padding(bucket: bool) -> float:
        batches = MLMBatches(corpus, max_seq_length=64, batch_size=8, mode="sentences", bucket=bucket)
        return float(np.mean([1 - batches[step].attention_mask.mean() for step in range(len(batches))]))

    assert padding(True) < padding(False) / 2


def test_bucketed_batches_have_about_the_same_number_of_tokens(corpus):
    batches = MLMBatches(corpus, max_seq_length=64, batch_size=8, mode="sentences", bucket=True)
    first = [batches[step] for step in range(min(len(batches), BUCKET))]
    tokens = np.array([batch.attention_mask.sum() for batch in first])
    assert tokens.max() - tokens.min() <= 2 * 64                       # the sequences at both ends of a batch
    assert len({len(batch.input_ids) for batch in first}) > 1


def test_a_bucketed_batch_has_a_sequence_and_the_tokens_of_batch_size_full_ones(corpus):
    batches = MLMBatches(corpus, max_seq_length=64, batch_size=1, mode="sentences", bucket=True)
    assert all(len(batches.numbers(step)[1]) >= 1 for step in range(len(batches)))
    for size in (4, 8):
        batches = MLMBatches(corpus, max_seq_length=32, batch_size=size, mode="sentences", bucket=True)
        tokens = [batches[step].attention_mask.sum() for step in range(len(batches))]
        assert np.mean(tokens[:-1]) == pytest.approx(size * 32, rel=0.15)


@pytest.mark.parametrize("unit", ["token", "word", "span"])
@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_masks_have_the_exact_count_and_the_80_10_10_shares(corpus, unit, rate):
    batches = MLMBatches(corpus, max_seq_length=32, batch_size=16, masking=Masking(rate, unit))
    chosen = masked = same = 0
    for step in range(len(batches) * 4):
        batch = batches[step]
        ordinary = (batch.target_ids > MASK).sum(axis=1)
        wanted = np.minimum(np.maximum(np.rint(rate * ordinary), 1), ordinary)
        assert np.array_equal(batch.mask_positions.sum(axis=1), wanted)
        assert (batch.target_ids[batch.mask_positions] > MASK).all()
        assert np.array_equal(batch.input_ids[~batch.mask_positions], batch.target_ids[~batch.mask_positions])
        chosen += batch.mask_positions.sum()
        masked += (batch.input_ids[batch.mask_positions] == MASK).sum()
        same += (batch.input_ids == batch.target_ids)[batch.mask_positions].sum()
    assert abs(masked / chosen - 0.8) < 5 * math.sqrt(0.16 / chosen)
    assert abs(same / chosen - 0.1) < 5 * math.sqrt(0.09 / chosen) + 0.1 / 75   # a random piece may be equal


def test_whole_words_are_masked_together():
    pieces = [*SPECIAL_TOKENS, "a", "##b", "##c", "d"]
    vocabulary = WordPieceTokenizer(pieces).vocabulary
    ids = np.array([[CLS, 5, 6, 7, 8, 5, 6, 7, 8, 5, 6, 7, SEP]] * 200)
    _, chosen = Masking(0.3, "word")(ids, vocabulary, seed=0, epoch=0, sequences=np.arange(200))
    words = [(1, 4), (5, 8), (9, 12)]
    partly = sum(0 < chosen[row, a:b].sum() < b - a for row in range(200) for a, b in words)
    wholly = sum(chosen[row, a:b].all() for row in range(200) for a, b in words)
    assert wholly > 0
    assert partly <= 200                        # at most the last word of a sequence is masked in part


def test_spans_are_runs_of_tokens():
    vocabulary = WordPieceTokenizer([*SPECIAL_TOKENS, *(chr(97 + i) for i in range(26))]).vocabulary
    ids = np.random.default_rng(0).integers(5, 31, (500, 64))
    counts = {}
    for unit in ("token", "span"):
        _, chosen = Masking(0.15, unit)(ids, vocabulary, seed=0, epoch=0, sequences=np.arange(500))
        counts[unit] = (np.diff(chosen.astype(int), prepend=0, axis=1) == 1).sum()
    assert counts["span"] < counts["token"] / 2


def test_a_mask_depends_only_on_seed_epoch_and_sequence():
    vocabulary = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b"]).vocabulary
    ids = np.full((6, 30), 5)
    numbers = np.array([3, 1, 4, 15, 9, 2])
    masking = Masking()
    _, whole = masking(ids, vocabulary, seed=0, epoch=2, sequences=numbers)
    for row in range(6):
        _, alone = masking(ids[row : row + 1], vocabulary, seed=0, epoch=2, sequences=numbers[row : row + 1])
        assert np.array_equal(alone[0], whole[row])
    for other in ({"seed": 1, "epoch": 2}, {"seed": 0, "epoch": 3}):
        assert not np.array_equal(masking(ids, vocabulary, sequences=numbers, **other)[1], whole)


def test_a_schedule_sets_the_rate_by_step(corpus):
    batches = MLMBatches(corpus, batch_size=16, masking=Masking(lambda step: 0.4 if step == 0 else 0.1))
    shares = [batches[step].mask_positions.sum() / (batches[step].target_ids > MASK).sum() for step in (0, 1)]
    assert shares == pytest.approx([0.4, 0.1], abs=0.03)


def test_the_generator_takes_a_text_file(tmp_path, text, tokenizer):
    (tmp_path / "sample.txt").write_text(text)
    data_generator = MLMDataGenerator(data_path=str(tmp_path / "sample.txt"), tokenizer=tokenizer,
                                      max_seq_length=32, batch_size=4)
    batch = data_generator[0]
    assert batch.input_ids.shape[0] == 4
    assert batch.input_ids.shape[1] <= 32
    assert sum(len(batch.input_ids) for batch in data_generator) == len(data_generator.sequences)


def test_the_generator_refuses_a_corpus_of_another_vocabulary(corpus, tokenizer):
    assert len(MLMDataGenerator(corpus.directory, corpus.tokenizer, batch_size=8)) > 0
    with pytest.raises(CorpusError, match="another vocabulary"):
        MLMDataGenerator(corpus.directory, WordPieceTokenizer([*tokenizer.vocabulary.pieces, "zebra"]))


def test_invalid_settings_are_refused(corpus):
    for settings, words in [({"batch_size": 0}, "batch_size"), ({"max_seq_length": 2}, "room"),
                            ({"split": "dev"}, "'dev'"), ({"mode": "pairs", "max_seq_length": 4}, "room")]:
        with pytest.raises(CorpusError, match=words):
            MLMBatches(corpus, **settings)
    for settings in ({"rate": 0}, {"rate": 1.5}):
        with pytest.raises(InputError, match=r"mask"):
            Masking(**settings)
    with pytest.raises(ConfigError, match="sequences: 'packd' is not a choice; the nearest is 'packed'"):
        MLMBatches(corpus, mode="packd")


def test_sequences_of_a_users_own_are_read_by_their_word_alone_and_in_a_schedule(corpus):
    with restored_registry():
        @register("sequences", "first_sentences")
        class FirstSentences(SentenceSequences):
            def count(self):
                return np.minimum(super().count(), 1)

        batches = MLMBatches(corpus, mode="first_sentences until 0.5, packed", max_seq_length=32, batch_size=4)
        assert batches.kind == "first_sentences"
        assert len(batches.sequences) == len(corpus.split("train"))
        assert batches.stage(Step(9, 10)).kind == "packed"
        settings = TrainingConfig(objective="masked + token_order", sequences="first_sentences")
        assert settings.sequences == "first_sentences"
    with pytest.raises(ConfigError, match="sequences: 'first_sentences' is not a choice"):
        TrainingConfig(sequences="first_sentences")


def test_iterating_again_gives_the_next_epoch(corpus):
    batches = MLMBatches(corpus, max_seq_length=16, batch_size=7)
    first, second = list(batches), list(batches)
    assert len(first) == len(second) == len(batches)
    assert not np.array_equal(first[0].target_ids, second[0].target_ids)
    assert np.array_equal(second[0].input_ids, next(batches.epoch(1)).input_ids)


def test_spans_cover_all_positions_evenly(corpus):
    batches = MLMBatches(corpus, max_seq_length=32, batch_size=64, masking=Masking(0.15, "span"))
    full = [batch for step in range(len(batches) * 30) if (batch := batches[step]).attention_mask.shape[1] == 32]
    chosen = np.concatenate([batch.mask_positions[batch.attention_mask.all(axis=1)] for batch in full])
    shares = chosen[:, 1:31].mean(axis=0)
    assert shares.min() > 0.1
    assert shares.max() < 0.2
