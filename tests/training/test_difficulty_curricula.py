"""Curricula by difficulty: what is easy, how fast a run opens to the rest, and that any step is computed directly."""

from dataclasses import replace
from math import ceil, exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from killed_runs import assert_same, whole_and_resumed

from mini_bert import ConfigError, MiniBERT, register
from mini_bert.core.registry import make, restored_registry
from mini_bert.text.batches import BUCKET, MLMBatches
from mini_bert.text.curricula.curriculum import Curriculum, Order
from mini_bert.text.schedule import Step
from mini_bert.training.config import TrainingConfig, make_objective
from mini_bert.training.curricula.difficulty import Length, Rarity
from mini_bert.training.curricula.making import curriculum_from
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import read_run, start_run

RARITY = "rarity(pacing=root, start=0.25, until=0.5)"


class Numbers:
    """Sequences that are nothing but their numbers; a sequence's length is its number plus one."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def lengths(self, numbers):
        return numbers + 1


def backwards(sequences):
    """The last sequence is the easiest."""
    return lambda numbers: -numbers


def batches_of(corpus, words=RARITY, **options):
    return MLMBatches(corpus, **{"max_seq_length": 16, "batch_size": 4, "mode": "sentences", **options},
                      curriculum=curriculum_from(words))


# -------------------------------------------------------------------- the order


@given(st.integers(1, 400), st.data())
def test_an_epoch_shows_each_open_sequence_equally_often_and_no_other(size, data):
    pool = data.draw(st.integers(1, size))
    order = Order(Numbers(size), Curriculum(backwards, lambda x: x), seed=1)
    drawn = np.concatenate([order.draw(0, first, 7, pool) for first in range(0, size, 7)])
    times = np.bincount(drawn, minlength=size)
    assert (times[: size - pool] == 0).all()
    assert set(times[size - pool :]) <= {size // pool, ceil(size / pool)}
    assert len(drawn) == size


def test_what_is_equally_hard_comes_in_an_order_of_its_own_and_not_in_that_of_the_text():
    order = Order(Numbers(1000), Curriculum(lambda sequences: lambda numbers: numbers >= 500, lambda x: x), seed=0)
    found = order.by_difficulty()
    assert set(found[:500]) == set(range(500))
    assert abs(np.corrcoef(found[:500], np.arange(500))[0, 1]) < 0.15
    other = Order(Numbers(1000), order.curriculum, seed=1).by_difficulty()
    assert not np.array_equal(found, other)
    assert found.nbytes <= 4 * 1000


def test_the_mean_length_of_the_easiest_is_known_nearly():
    order = Order(Numbers(50_000), Curriculum(backwards, lambda x: x), seed=0)
    assert order.mean_length(50_000) == pytest.approx(25_000, rel=0.001)
    assert order.mean_length(10_000) == pytest.approx(45_000, rel=0.001)
    assert order.mean_length(1) == 50_000


# -------------------------------------------------------------------- pacing


def test_pacing_functions_have_their_formulas_and_run_from_the_start_to_everything():
    halfway = {"linear": 0.5, "root": 0.5**0.5, "root(power=3)": 0.5 ** (1 / 3), "quadratic": 0.25,
               "log": 1 + log(0.5 + exp(-10)) / 10, "exponential": (exp(5) - 1) / (exp(10) - 1)}
    for word, expected in halfway.items():
        curriculum = curriculum_from(f"length(pacing={word}, start=0.2, until=0.5)")
        shares = [curriculum.share(done) for done in np.linspace(0, 1, 101)]
        assert shares[0] == pytest.approx(0.2, abs=1e-9)
        assert shares[25] == pytest.approx(0.2 + 0.8 * expected)
        assert shares[50:] == [1.0] * 51
        assert (np.diff(shares) >= 0).all()


def test_a_pacing_of_ones_own_works_and_one_that_leaves_its_range_is_refused():
    with restored_registry():
        register("pacing", "late")(lambda x: 0.0)
        register("pacing", "wild")(lambda x, times=2.0: times * x)
        assert curriculum_from("length(pacing=late, until=0.9)").share(0.89) == 0.2
        with pytest.raises(ConfigError, match=r"must stay between 0 and 1; at 0\.6 it is 1\.2"):
            TrainingConfig(curriculum="length(pacing=wild)")
        assert ("pacing", "wild") in TrainingConfig(curriculum="length(pacing=wild(times=0.5))").words()


# -------------------------------------------------------------------- what is hard


@pytest.mark.parametrize("mode", ["packed", "sentences", "pairs"])
def test_rarity_is_the_mean_cost_of_the_tokens_and_length_their_number(pair_corpus, mode):
    sequences = make("sequences", mode, pair_corpus, "train", 32)
    counts = pair_corpus.piece_counts()
    numbers = np.random.default_rng(0).permutation(len(sequences))[:40]
    rows = sequences.fill(numbers, 0, 0)
    for row, rarity, length in zip(range(len(numbers)), Rarity(sequences)(numbers), Length(sequences)(numbers),
                                   strict=True):
        tokens = [token for token in rows.ids[row].tolist() if token not in (0, 2, 3)]       # without [CLS] and [SEP]
        costs = [-log((counts[token] + 1) / (counts.sum() + len(counts))) for token in tokens]
        assert rarity == pytest.approx(sum(costs) / len(costs))
        assert length == rows.attention_mask[row].sum()


def test_a_difficulty_of_ones_own_works_like_a_built_in_one(pair_corpus):
    with restored_registry():
        @register("difficulty", "starts_with")
        def starts_with(sequences, letter="t"):
            known = np.array([piece.startswith(letter) for piece in sequences.vocabulary.pieces])
            return lambda numbers: ~known[sequences.fill(numbers, 0, 0).ids[:, 1]]

        batches = batches_of(pair_corpus, "starts_with(letter='c', start=0.01, until=1.0)")
        pieces = batches.sequences.vocabulary.pieces
        easy = [pieces[token] for token in batches[Step(0, 100)].target_ids[:, 1]]
        assert all(piece.startswith("c") for piece in easy)
        assert TrainingConfig(curriculum="starts_with").words()[-2:] == [("difficulty", "starts_with"),
                                                                        ("pacing", "linear")]


@pytest.mark.parametrize("measure", [lambda numbers: np.full(len(numbers), np.nan), lambda numbers: 3.0,
                                     lambda numbers: np.zeros((len(numbers), 2))])
def test_a_difficulty_that_gives_no_number_for_each_sequence_is_refused(corpus, measure):
    with restored_registry():
        register("difficulty", "odd")(lambda sequences: measure)
        with pytest.raises(ConfigError, match="must give a finite number for each"):
            batches_of(corpus, "odd")[0]


# -------------------------------------------------------------------- batches


@pytest.mark.parametrize("mode", ["packed", "sentences", "pairs"])
@pytest.mark.parametrize("bucket", [False, True])
def test_the_batch_of_any_step_is_computed_directly_and_is_of_the_easiest(pair_corpus, mode, bucket):
    options = {"mode": mode, "bucket": bucket, "max_seq_length": 12}
    batches, total = batches_of(pair_corpus, **options), 400
    rank = np.argsort(batches.order.by_difficulty())
    for number in (0, 57, 150, 199, 200, 399, 57):
        step = Step(number, total)
        _, drawn = batches.numbers(step)
        assert rank[drawn].max() < batches.pool(step)         # a window of buckets keeps the share of its first step
        assert len(set(drawn)) == len(drawn) > 0
        for one, other in zip(batches[step], batches_of(pair_corpus, **options)[step], strict=True):
            assert one is other is None or np.array_equal(one, other)
    assert batches.pool(Step(0, total)) == max(ceil(0.25 * len(rank)), batches._rows)
    assert batches.pool(Step(200, total)) == len(rank)


def test_a_sequence_that_comes_again_in_an_epoch_has_another_mask(pair_corpus):
    batches, masks = batches_of(pair_corpus, "length(start=0.05)", max_seq_length=16), {}
    for number in range(len(batches)):
        batch, (_, drawn) = batches[Step(number, 100_000)], batches.numbers(Step(number, 100_000))
        for row, sequence in enumerate(drawn.tolist()):
            masks.setdefault(sequence, []).append(tuple(np.flatnonzero(batch.mask_positions[row])))
    often = [found for found in masks.values() if len(found) > 5]
    assert often
    assert np.mean([len(set(found)) > 1 for found in often]) > 0.9


def test_buckets_of_short_sequences_have_as_many_tokens_as_those_of_all(pair_corpus):
    batches = batches_of(pair_corpus, "length(start=0.2, until=0.5)", bucket=True, batch_size=6)
    tokens = [[batches[Step(number, 1000)].attention_mask.sum() for number in some]
              for some in (range(12), range(600, 612))]
    assert np.mean(tokens[0]) == pytest.approx(np.mean(tokens[1]), rel=0.2)
    rows = [len(batches[Step(number, 1000)].input_ids) for number in (0, 600)]
    assert rows[0] > rows[1]


def test_batches_that_are_cut_together_are_of_what_is_open_to_the_first_of_them(pair_corpus):
    batches = batches_of(pair_corpus, bucket=True)
    together, total = min(len(batches), BUCKET), 2 * len(batches)
    rank = np.argsort(batches.order.by_difficulty())
    drawn = np.concatenate([batches.numbers(Step(number, total))[1] for number in range(together)])
    assert rank[drawn].max() < batches.pool(Step(0, total)) < batches.pool(Step(together - 1, total))


def test_every_stage_of_a_schedule_of_lengths_has_an_order_of_its_own(pair_corpus):
    batches = batches_of(pair_corpus, "length(start=0.3, until=0.9)", mode="sentences until 0.5, packed",
                         max_seq_length="8 until 0.7, 16")
    stages = [batches.stage(Step(n, 10)) for n in (0, 6, 9)]
    assert type(stages[0].sequences).__name__ == "SentenceSequences"
    assert len({len(stage.order.by_difficulty()) for stage in stages}) == 3
    assert all(len(batches[Step(n, 10)].input_ids) for n in range(10))


def test_objectives_on_sentences_see_easy_sentences_first(pair_corpus, model_config, settings):
    config = replace(settings, objective="contrastive(group=4)", curriculum="length(start=0.1)").resolved(model_config)
    objective = make_objective(config, MiniBERT(model_config))
    batches = objective.batches(pair_corpus, config)
    first, last = (np.mean([batches[Step(n + k, 1000)].attention_mask.sum(axis=1).mean() for k in range(8)])
                   for n in (0, 900))
    assert first < last - 0.5


# -------------------------------------------------------------------- runs


@pytest.mark.parametrize(("threads", "changes"), [
    (1, {}), (2, {"bucket": True, "sequences": "sentences until 0.7, packed", "masking_weights": "adaptive(every=3)"})])
def test_a_killed_run_with_a_curriculum_ends_with_the_same_bytes(model_config, settings, corpus, tmp_path, threads,
                                                                  changes):
    settings = replace(settings, curriculum=RARITY, **changes)
    assert_same(*whole_and_resumed(model_config, settings, corpus, tmp_path, threads))
    shares = [record["curriculum_share"] for record in read_log(tmp_path / "whole")]
    assert shares == pytest.approx([0.25 + 0.75 * (done / 6) ** 0.5 if done < 6 else 1.0 for done in (2, 5, 8, 11)])
    assert read_run(tmp_path / "whole")["training"]["curriculum"] == RARITY


def test_a_run_without_a_curriculum_says_nothing_of_it(model_config, settings, corpus, run):
    start_run(model_config, settings, corpus.directory, run).train()
    assert all("curriculum_share" not in record for record in read_log(run))


@pytest.mark.parametrize(("words", "reason"), [
    ("sadness", "difficulty: 'sadness' is not a choice"), ("rarity(speed=3)", "cannot be made"),
    ("rarity(start=0)", "start must be a share above 0 and at most 1, not 0"),
    ("rarity(until=1.5)", "until must be a share above 0 and at most 1, not 1.5"),
    ("rarity(start=true)", "start must be a share"), ("rarity(pacing=3)", "pacing must be a word, such as root, not 3"),
    ("rarity(pacing=jumps)", "pacing: 'jumps' is not a choice"), ("rarity(pacing=linear(power=2))", "cannot be made"),
    ("rarity(pacing=root(power=0))", "power of root must be above 0"), ("rarity(pacing=root(3))", "with their names"),
    ("rarity + length", "must be one word")])
def test_curricula_that_cannot_be_are_refused_before_anything_is_written(words, reason):
    with pytest.raises(ConfigError, match=reason.replace("(", r"\(") if "(" in reason else reason):
        TrainingConfig(curriculum=words)
