"""Distillation and contrastive sentence vectors: losses, refusals, learning, threads, and runs that are killed."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from test_language_objectives import prepared
from test_objectives import SMALL, assert_same, whole_and_resumed

from mini_bert import ConfigError, MiniBERT, WordPieceTokenizer
from mini_bert.checks.heads import check_objective
from mini_bert.core.gradcheck import check_operation
from mini_bert.core.ops.cross_entropy import log_softmax
from mini_bert.inference.embed import embed
from mini_bert.objectives.distillation import matching
from mini_bert.objectives.distillation.layers import layer_pairs
from mini_bert.objectives.distillation.students import student_of
from mini_bert.objectives.distillation.teacher_vectors import BLOCK, SampledSentences, TeacherVectors
from mini_bert.objectives.distillation.vector_file import VectorFile
from mini_bert.objectives.making import objective_from
from mini_bert.objectives.vectors import contrastive, unit_rows
from mini_bert.objectives.vectors.contrastive import contrastive_forward
from mini_bert.objectives.vectors.sentences import SentenceBatch, groups
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.training.config import make_objective
from mini_bert.training.loop import Listener
from mini_bert.training.overfit import overfit
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.update import BatchGradients
from mini_bert.workers import Workers, workers

WORDS = ("distil(teacher='{}', layers=even)", "distil(teacher='{}', everywhere=true, match=squared, masked=0)",
         "contrastive(group=3, temperature=0.2)", "sentence_vectors(teacher='{}', group=3)",
         "masked + 0.5 sentence_vectors(teacher='{}', vectors=0, group=4)")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def sentences(tmp_path_factory) -> Corpus:
    """Documents of several short sentences."""
    rng, words = np.random.default_rng(1), ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "away"]
    text = "\n\n".join(" ".join(" ".join(rng.choice(words, rng.integers(3, 9))).capitalize() + "." for _ in range(4))
                       for _ in range(30))
    folder = tmp_path_factory.mktemp("sentences")
    (folder / "text.txt").write_text(text)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    prepare([str(folder / "text.txt")], WordPieceTokenizer([*special, *words, "."]), folder / "made", heldout=0.2,
            workers=1)
    return Corpus(folder / "made")


@pytest.fixture(scope="module")
def teacher(sentences, model_config, tmp_path_factory):
    """A wider and deeper model of the same words."""
    made = tmp_path_factory.mktemp("teacher") / "model"
    MiniBERT(replace(model_config, hidden_size=24, num_layers=3, init_std=0.3), seed=5).save(made)
    sentences.tokenizer.save(made)
    return made


@pytest.fixture(params=WORDS)
def words(request, teacher) -> str:
    return request.param.format(teacher)


# -------------------------------------------------------------------- gradients


@pytest.mark.parametrize(("name", "operation"), [(name, found) for file in (matching, contrastive, unit_rows)
                                                 for name, found in file.CHECKS.items()])
def test_each_distance_agrees_with_finite_differences(name, operation):
    results = check_operation(name, *operation)
    assert results
    assert max(result.error for result in results) < 1e-6


@pytest.mark.parametrize("words", [
    "distil", "distil(layers=last, masked=0)", "distil(logits=0, masked=0, match=squared)", "distil(hidden=0)",
    "distil(everywhere=true)", "distil(layers='0:2 1:0')", "contrastive(group=3)", "sentence_vectors",
    "sentence_vectors(similarities=0, match=squared)", "masked + 0.3 contrastive(temperature=0.5)"])
def test_the_gradient_of_the_whole_objective_agrees_with_finite_differences(words):
    results = list(check_objective(words, SMALL))
    assert len(results) > 10
    assert max(result.error for result in results) < 1e-6


@pytest.mark.parametrize("changes", [{"block": "pre_ln"}, {"stack": "shared"}, {"stack": "enhanced_decoder(steps=2)"},
                                     {"final_layernorm": False}])
def test_hidden_states_of_other_stacks_can_be_learned_too(changes):
    results = list(check_objective("distil(masked=0)", replace(SMALL, num_layers=3, **changes)))
    assert max(result.error for result in results) < 1e-6


def test_a_hidden_gradient_that_is_left_out_is_noticed(monkeypatch):
    monkeypatch.setattr("mini_bert.objectives.distillation.distil._adding", lambda extra: lambda name, value: value)
    assert max(result.error for result in check_objective("distil", SMALL)) > 1e-2


# -------------------------------------------------------------------- values


def test_the_loss_of_logits_is_the_divergence_times_the_squared_temperature(rng):
    ours, theirs = rng.standard_normal((2, 5, 7))
    logs, taught = log_softmax(ours / 3), log_softmax(theirs / 3)
    loss, _ = matching.soft_cross_entropy_forward(ours, theirs, 3.0)
    assert loss == pytest.approx(9 * (np.exp(taught) * (taught - logs)).sum())
    assert matching.soft_cross_entropy_forward(theirs, theirs + 4, 3.0)[0] == pytest.approx(0, abs=1e-12)


def test_a_sentence_must_be_found_among_those_of_its_group(rng):
    first, second = rng.standard_normal((2, 4, 6))
    z, others = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second))
    scores = np.exp(z @ others.T / 0.1)
    assert contrastive_forward(first, second, 0.1)[0] == pytest.approx(
        -np.log(np.diag(scores) / scores.sum(axis=1)).sum())


def test_distil_compares_logits_at_masked_positions_and_inner_layers_at_all_tokens(teacher, model_config, settings,
                                                                                  sentences):
    objective, batches, _ = prepared(f"distil(teacher='{teacher}', layers='0:1 1:2', match=squared)", model_config,
                                     settings, sentences)
    part = objective.micro_batches(batches[0])[0]
    masked, real = int(part.mask_positions.sum()), int(part.attention_mask.sum())
    assert objective.counts(part) == {"distil": masked, "distil_hidden": masked + real, "masked": masked}
    found = objective.add_gradients(part, objective.params.zeros_like(), None, dict.fromkeys(objective.losses, 1.0))
    model, taught = objective.model, objective.teacher
    logits, cache = model.forward(part.input_ids, part.attention_mask)
    theirs, their_cache = taught.forward(part.input_ids, part.attention_mask)
    logs, targets = (log_softmax(x[part.mask_positions] / 2) for x in (logits, theirs))
    assert found["distil"] == pytest.approx(4 * (np.exp(targets) * (targets - logs)).sum())
    inner = cache["hidden_0"][part.attention_mask] @ objective.params["distil.W_0"]
    last = cache["final_hidden"][part.mask_positions] @ objective.params["distil.W_1"]
    expected = ((inner - their_cache["hidden_1"][part.attention_mask]) ** 2).mean(axis=1).sum() \
        + ((last - their_cache["final_hidden"][part.mask_positions]) ** 2).mean(axis=1).sum()
    assert found["distil_hidden"] == pytest.approx(expected)


def test_a_student_of_its_teachers_width_needs_no_projection_and_can_equal_it(sentences, model_config, settings,
                                                                             tmp_path):
    MiniBERT(replace(model_config, dropout=0.0), seed=5).save(tmp_path / "same")
    made = replace(settings, objective=f"distil(teacher='{tmp_path / 'same'}', masked=0)").resolved(model_config)
    model = MiniBERT(model_config, seed=5)
    objective = make_objective(made, model)
    assert objective.params is model.params
    figures = objective.evaluate(objective.heldout(sentences, made), Workers(1))
    assert figures["distil"] == pytest.approx(0, abs=1e-5)
    assert figures["distil_hidden"] == pytest.approx(0, abs=1e-5)


def test_layers_are_mapped_as_the_option_says():
    assert layer_pairs("last", 3, 6) == [(2, 5)]
    assert layer_pairs("even", 3, 6) == [(0, 1), (1, 3), (2, 5)]
    assert layer_pairs("even", 4, 3) == [(0, 0), (1, 1), (2, 1), (3, 2)]
    assert layer_pairs("2:0 0:4", 3, 6) == [(2, 0), (0, 4)]
    for wrong, said in (("3:0", "layer 3 of the student, which has 0 to 2"), ("0:6", "layer 6 of the teacher"),
                        ("0:1 0:2", "each layer of the student once"), ("odd", "must be last, even, or pairs")):
        with pytest.raises(ConfigError, match=said):
            layer_pairs(wrong, 3, 6)


def test_a_student_can_begin_as_some_layers_of_its_teacher(teacher):
    whole = MiniBERT.load(teacher)
    student = student_of(whole, [2, 0])
    assert np.array_equal(student.params["W_Q_0"], whole.params["W_Q_2"])
    assert np.array_equal(student.params["W_Q_1"], whole.params["W_Q_0"])
    assert np.array_equal(student.params["token_embeddings"], whole.params["token_embeddings"])
    everything = student_of(whole, [0, 1, 2])
    assert np.array_equal(everything.params.flat, whole.params.flat)
    with pytest.raises(ConfigError, match="0 to 2"):
        student_of(whole, [3])


# -------------------------------------------------------------------- runs


def test_the_gradients_are_the_same_for_any_number_of_threads(words, model_config, settings, sentences):
    objective, batches, _ = prepared(words, model_config, settings, sentences)
    found = []
    for threads in (1, 2, 3):
        with workers(threads) as team:
            gradients = BatchGradients(objective, team)
            gradients.compute(batches[0], 7, 0)
            found.append(gradients.gradients.flat.copy())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.abs(found[0]).max() > 0


def test_a_killed_run_ends_with_the_same_bytes(words, model_config, settings, sentences, tmp_path):
    whole, resumed = whole_and_resumed(model_config, replace(settings, objective=words), sentences, tmp_path, threads=2)
    assert_same(whole, resumed)


def test_one_batch_is_learned_by_heart(words, model_config, settings, sentences):
    config = replace(model_config, dropout=0.0, hidden_size=24, num_heads=4)
    made = replace(settings, objective=words, steps=200, batch_size=4, learning_rate=5e-3).resolved(config)
    model = MiniBERT(config)
    objective = make_objective(made, model)
    batch = objective.batches(sentences, made)[0]
    first = BatchGradients(objective, Workers(1)).compute(batch)
    before = sum(weight * first[name].mean for name, weight in objective.losses.items())
    share = 0.6 if {"distil", "masked"} <= objective.losses.keys() else 0.1     # the teacher contradicts the labels
    loss, _ = overfit(model, batch, made, target=share * before, objective=objective)
    assert loss < share * before


def test_every_loss_is_logged_and_evaluated(teacher, model_config, settings, sentences, tmp_path):
    expected = {"distil": ({"distil", "distil_hidden", "masked"}, "masked_accuracy"),
                "sentence_vectors": ({"similarities", "vectors"}, "similarity_correlation")}
    for word, (losses, figure) in expected.items():
        start_run(model_config, replace(settings, objective=f"{word}(teacher='{teacher}')"), sentences.directory,
                  tmp_path / word).train()
        last = list(read_log(tmp_path / word))[-1]
        assert set(last["losses"]) == set(last["eval_losses"]) == losses
        assert -1 <= last[figure] <= 1
    start_run(model_config, replace(settings, objective="contrastive(group=4)"), sentences.directory,
              tmp_path / "contrastive").train()
    last = list(read_log(tmp_path / "contrastive"))[-1]
    assert last["eval_loss"] > 0
    assert 0 <= last["contrastive_accuracy"] <= 1


def test_a_run_does_not_go_on_with_another_teacher(teacher, model_config, settings, sentences, tmp_path):
    shutil.copytree(teacher, tmp_path / "teacher")
    words = f"distil(teacher='{tmp_path / 'teacher'}')"
    start_run(model_config, replace(settings, objective=words), sentences.directory, tmp_path / "run").train()
    other = MiniBERT.load(tmp_path / "teacher")
    other.params.flat += 0.1
    other.save(tmp_path / "teacher")
    with pytest.raises(ConfigError, match="the teacher has changed since the run began"):
        resume_run(tmp_path / "run")


@pytest.mark.parametrize(("words", "said"), [
    ("distil", r"distil needs a teacher: distil\(teacher=mini\)"),
    ("distil(teacher=nowhere)", "There is no directory nowhere"),
    ("distil(teacher='{0}', logits=0, hidden=0)", "nothing is learned from the teacher"),
    ("distil(teacher='{0}', temperature=0)", "temperature must be above 0, not 0"),
    ("distil(teacher='{0}', masked=-1)", "masked must be at least 0, not -1"),
    ("distil(teacher='{0}', match=near)", "match must be one of cosine, squared, not near"),
    ("distil(teacher=mini)", "predicts 8192 words and the student 60"),
    ("distil(teacher=mini, logits=0)", "has another vocabulary than .*, so their tokens are not the same"),
    ("distil(teacher={0})", "A path stands in quotation marks"),
    ("contrastive(dropout=0)", "dropout must be above 0 and below 1, as it makes the two passes differ, not 0"),
    ("contrastive(temperature=0)", "temperature must be above 0, not 0"),
    ("contrastive(group=1)", "group must be a whole number of at least 2, not 1"),
    ("sentence_vectors", "sentence_vectors needs a teacher"),
    ("sentence_vectors(teacher='{0}', sentences=-1)", "sentences must be a whole number"),
    ("sentence_vectors(teacher='{0}', vectors=0, similarities=0)", "nothing is learned")])
def test_what_cannot_be_taught_is_refused_before_anything_is_written(words, said, teacher, model_config, settings,
                                                                    sentences, run):
    with pytest.raises(Exception, match=said):
        start_run(model_config, replace(settings, objective=words.format(teacher)), sentences.directory, run)
    assert not run.exists()


def test_a_causal_model_has_no_sentence_vectors(model_config):
    with pytest.raises(ConfigError, match="needs a model whose tokens see the whole sentence"):
        objective_from("contrastive", MiniBERT(replace(model_config, score_terms="causal")))


# -------------------------------------------------------------------- sentences and their vectors


def test_a_batch_is_cut_into_groups_of_about_one_size_whatever_the_micro_batch(model_config, settings, sentences):
    batch = SentenceBatch(np.arange(35).reshape(7, 5), np.arange(5) < np.array([2, 1, 3, 5, 4, 1, 1])[:, None])
    parts = groups(batch, 3)
    assert [part.input_ids.shape for part in parts] == [(3, 3), (2, 5), (2, 1)]
    made = [prepared("contrastive(group=3)", model_config, replace(settings, micro_batch_size=size), sentences)
            for size in (1, 5)]
    for step in range(3):
        one, other = ([part.input_ids for part in objective.micro_batches(batches[step])]
                      for objective, batches, _ in made)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_teachers_vectors_are_those_of_the_same_text_and_are_computed_once(teacher, sentences, monkeypatch, rng):
    model = objective_from(f"sentence_vectors(teacher='{teacher}')", MiniBERT(replace(SMALL, vocab_size=60))).teacher
    sample = SampledSentences(sentences, "train", 16)
    said = []
    vectors = TeacherVectors(model, sample)
    vectors.complete(Workers(1), said.append)
    assert f"{len(sample)} sentences" in said[0]
    numbers = rng.permutation(len(sample))[:9]
    texts = [sentences.tokenizer.decode(sentences.tokens[a:b].tolist()) for a, b in zip(*sample.spans(numbers),
                                                                                       strict=True)]
    expected = embed(model, sentences.tokenizer, texts)
    np.testing.assert_allclose(vectors(numbers), expected, atol=2e-3)
    monkeypatch.setattr(TeacherVectors, "_compute", lambda self, block: pytest.fail("computed again"))
    again = TeacherVectors(model, SampledSentences(sentences, "train", 16, 5))
    again.complete(Workers(2), said.append)
    assert len(said) == 1
    assert np.array_equal(again(np.arange(5)), vectors(np.arange(5)))
    assert again.sentences.fill(np.arange(5), 0, 0).ids.tolist() == sample.fill(np.arange(5), 0, 0).ids.tolist()


def test_vectors_do_not_depend_on_threads_or_on_what_was_there(teacher, sentences, cache, monkeypatch):
    monkeypatch.setattr("mini_bert.objectives.distillation.teacher_vectors.BLOCK", 16)
    model = objective_from(f"sentence_vectors(teacher='{teacher}')", MiniBERT(replace(SMALL, vocab_size=60))).teacher
    found = []
    for threads, first in ((1, 0), (3, 0), (2, 20)):
        shutil.rmtree(cache, ignore_errors=True)
        for most in (first, 0) if first else (0,):            # a part of them is there already
            vectors = TeacherVectors(model, SampledSentences(sentences, "train", 16, most))
            vectors.complete(Workers(threads), lambda sentence: None)
        found.append(vectors.file.path.read_bytes())
    assert found[0] == found[1] == found[2]
    assert BLOCK > 16


def test_rows_that_are_missing_or_damaged_are_known(tmp_path, rng):
    file = VectorFile(tmp_path / "below" / "vectors.f16", 6)
    rows = rng.standard_normal((4, 6)).astype(np.float32)
    file.write(1, rows)
    assert file.present(7).tolist() == [False, True, True, True, True, False, False]
    np.testing.assert_array_equal(file.read(np.array([3, 1])), rows[[2, 0]].astype(np.float16))
    data = bytearray(file.path.read_bytes())
    data[2 * file.row.itemsize + 3] ^= 1
    file.path.write_bytes(data)
    opened = VectorFile(file.path, 6)
    assert opened.present(5).tolist() == [False, True, False, True, True]
    with pytest.raises(Exception, match="vector 2 is damaged; delete the file"):
        opened.read(np.array([1, 2]))
    (tmp_path / "file").write_text("x")
    with pytest.raises(Exception, match=r"cannot be used: .*MINI_BERT_CACHE"):
        VectorFile(tmp_path / "file" / "vectors.f16", 6)


def test_a_run_says_that_the_teacher_is_asked(teacher, model_config, settings, sentences, run):
    heard = []

    class Hearing(Listener):
        def said(self, message: str) -> None:
            heard.append(message)

    start_run(model_config, replace(settings, objective=f"sentence_vectors(teacher='{teacher}')"), sentences.directory,
              run, listener=Hearing())
    assert "Asking the teacher for the vectors of" in heard[0]
