"""The session: passes, steps of training and their undoing, runs."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from mini_bert import MiniBERT
from mini_bert.core.gradients import MiniBERTGradients
from mini_bert.errors import CheckpointError, ConfigError, InputError
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.opening import fragment, open_session, opening_query
from mini_bert.explorer.queries import LONGEST_TEXT, Query, learning_rate, read_query
from mini_bert.explorer.runs import Run
from mini_bert.explorer.session import Session

QUERY = Query("the cat sat on a mat .", (2,))

def test_passes_are_made_once_and_anew_when_the_model_has_changed(session):
    first = session.passes(QUERY)
    assert session.passes(QUERY) is first
    session.step(QUERY, 0.01, "sgd")
    assert session.passes(QUERY) is not first

def test_a_step_of_plain_descent_moves_by_the_gradient_of_the_mean_loss(session):
    before = session.model.params.flat.copy()
    ids = session.passes(QUERY).sentence.ids[None]
    targets = np.array([session.tokenizer.encode(QUERY.text)])
    grads = MiniBERTGradients(session.model)
    grads.accumulate_mlm(ids, targets, np.arange(ids.shape[1])[None] == 2)
    session.step(QUERY, 0.5, "sgd")
    assert session.model.params.flat == pytest.approx(before - 0.5 * grads.gradients.flat, abs=1e-6)

def test_undo_restores_every_bit(session):
    flat = session.model.params.flat
    states = [flat.copy()]
    for optimiser in ("adamw", "sgd", "adamw"):
        session.step(QUERY, 0.01, optimiser)
        states.append(flat.copy())
    session.undo()
    session.step(QUERY, 0.01, "adamw")                    # the same step again does the same
    assert flat.tobytes() == states[3].tobytes()
    for state in reversed(states[:3]):
        session.undo()
        assert flat.tobytes() == state.tobytes()
    assert (session.taken, len(session.history)) == (0, 0)
    with pytest.raises(InputError, match="no step to undo"):
        session.undo()

def test_reset_goes_back_behind_what_undo_remembers(session):
    before = session.model.params.flat.copy()
    for _ in range(20):
        session.step(QUERY, 0.001, "adamw")
    assert 0 < session.undoable < 20
    session.reset()
    assert session.model.params.flat.tobytes() == before.tobytes()
    assert (session.undoable, session.taken, len(session.history)) == (0, 0, 0)

def test_a_step_whose_gradients_are_infinite_is_refused_and_leaves_no_trace(session, monkeypatch):
    before = session.model.params.flat.copy()
    monkeypatch.setattr("mini_bert.objectives.masked.mlm_gradients", lambda model, grads, *batch, **options: (
        grads.add("mlm_head_b", np.full(model.config.vocab_size, np.inf, model.dtype)), (1.0, np.ones(1, bool)))[1])
    with pytest.raises(InputError, match="infinite"):
        session.step(QUERY, 1.0, "sgd")
    assert session.model.params.flat.tobytes() == before.tobytes()
    assert (session.taken, len(session.history)) == (0, 0)

def test_a_step_after_which_the_model_has_no_numbers_is_taken_back(session):
    """Finite parameters, but so large that the pass overflows: the model of before answers again, with its undo."""
    session.step(QUERY, 0.01, "sgd")
    before, loss = session.model.params.flat.copy(), session.passes(QUERY).backward.loss
    with pytest.raises(InputError, match=r"learning rate 1e\+30 .* infinite, so it is undone; try a smaller rate\.$"):
        session.step(QUERY, 1e30, "sgd")
    assert session.model.params.flat.tobytes() == before.tobytes()
    assert session.passes(QUERY).backward.loss == loss
    assert (session.taken, session.undoable, session.version, len(session.history)) == (1, 1, 1, 1)
    session.undo()
    assert session.taken == 0

def test_the_loss_after_a_step_is_that_of_the_logits_however_unlikely_the_word(session):
    """The likeliest word made thousands of nats less likely: its probability in float32 is zero, its loss is not."""
    session.model.params["mlm_head_b"][7] = -3000.0
    query = Query("the cat sat on a mat .", (2,), ((2, session.tokenizer.vocabulary[7]),))
    passes = session.passes(query)
    assert passes.probabilities[2, 7] == 0
    assert passes.loss(passes.targets) == passes.backward.loss > 2900
    assert session.step(query, 1e-6, "sgd")["loss_after"] == pytest.approx(passes.backward.loss, rel=1e-3)

def test_many_steps_leave_a_short_history(session):
    for _ in range(105):
        session.step(QUERY, 1e-5, "sgd")
    assert session.taken == 105
    assert len(session.history) == 100
    session.undo()
    assert (session.taken, len(session.history)) == (104, 99)

def test_a_causal_model_is_asked_for_a_word_by_the_row_before_it(session):
    causal = Session(MiniBERT(replace(session.model.config, score_terms="causal")), session.tokenizer)
    passes = causal.passes(QUERY)
    assert passes.masks == [2]
    assert passes.sentence.tokens == passes.original                       # nothing is hidden
    answer = ANSWERS["sentence"](causal, {"text": QUERY.text, "mask": "2"})
    (found,) = answer["predictions"]
    assert (found["position"], found["row"], found["target"]) == (2, 1, "cat")
    assert found["probability"] == pytest.approx(passes.probabilities[1, passes.sentence.ids[2]])
    assert ANSWERS["saliency"](causal, {"text": QUERY.text, "mask": "2", "position": "2"})["target"] == "cat"
    causal.step(QUERY, 0.5, "sgd")
    assert causal.passes(QUERY).probabilities[1, passes.sentence.ids[2]] > found["probability"]


def test_without_a_target_the_models_first_choice_is_the_target(session):
    passes = session.passes(Query("the [MASK] sat ."))
    assert passes.targets == {2: int(passes.probabilities[2].argmax())}
    assert passes.sentence.targets == {}

def test_what_cannot_be_masked_or_found_is_refused(session):
    for query, words in ((Query("the cat", (0,)), r"\[CLS\]"), (Query("the cat", (9,)), "no position 9"),
                         (Query("the cat " * 20), "takes 16"), (Query("the cat", (), ((1, "zebra"),)), "zebra")):
        with pytest.raises(InputError, match=words):
            session.passes(query)
    with pytest.raises(InputError, match="Nothing is masked"):
        _ = session.passes(Query("the cat")).backward
    with pytest.raises(ConfigError, match="adamw, ema, lion, lookahead, muon, sgd"):
        session.step(QUERY, 0.1, "newton")

@pytest.mark.parametrize(("parameters", "words"), [
    ({}, "no text"), ({"text": "  "}, "no text"), ({"text": "a" * (LONGEST_TEXT + 1)}, "characters"),
    ({"text": "a", "mask": "1,x"}, "whole numbers"), ({"text": "a", "mask": "-1"}, "whole numbers"),
    ({"text": "a", "mask": "٣"}, "whole numbers"), ({"text": "a", "target": "cat"}, "such as 3:cat"),
    ({"text": "a", "target": "1:" + "x" * 200}, "no word")])
def test_a_bad_query_is_refused_in_one_sentence(parameters, words):
    with pytest.raises(InputError, match=words):
        read_query(parameters)

@pytest.mark.parametrize("rate", ["", "x", "nan", "inf", "0", "-1", "1000"])
def test_a_learning_rate_is_a_positive_number(rate):
    with pytest.raises(InputError, match="learning rate"):
        learning_rate(rate)

# -------------------------------------------------------------------- runs

def test_a_run_lists_its_checkpoints_in_order_with_its_curve(finished_run):
    described = Run(finished_run).describe()
    assert [c["step"] for c in described["checkpoints"]] == sorted(c["step"] for c in described["checkpoints"])
    assert {"step-0", "step-4", "step-8", "step-12", "final"} <= {c["name"] for c in described["checkpoints"]}
    assert described["finished"]
    assert len(described["training"]["steps"]) == len(described["training"]["losses"]) > 2
    assert described["baselines"].keys() == {"uniform_loss", "unigram_loss"}

def test_a_new_checkpoint_of_a_run_that_goes_on_appears(finished_run, tmp_path):
    going = tmp_path / "run"
    shutil.copytree(finished_run, going)
    run = Run(going)
    hidden = going / "checkpoints" / ".step-12.partial"
    (going / "checkpoints" / "step-12").rename(hidden)
    assert "step-12" not in {c["name"] for c in run.describe()["checkpoints"]}
    hidden.rename(going / "checkpoints" / "step-12")
    assert "step-12" in {c["name"] for c in run.describe()["checkpoints"]}

@pytest.mark.parametrize("state", ['{"step": 1e999}', '{"step": NaN}', '{"step": "four"}', "{}", "{"])
def test_a_checkpoint_whose_state_makes_no_sense_is_left_out_with_a_note(finished_run, tmp_path, state):
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    (run / "checkpoints" / "step-4" / "state.json").write_text(state)
    described = Run(run).describe()
    assert "step-4" not in {c["name"] for c in described["checkpoints"]}
    assert any("step-4" in note for note in described["notes"])
    assert "step-8" in {c["name"] for c in described["checkpoints"]}


def test_names_that_are_no_checkpoints_are_refused(finished_run):
    for name in ("step-5", "../run/best", "..", ""):
        with pytest.raises(InputError, match="no checkpoint"):
            Run(finished_run).model(name, lambda path: pytest.fail("nothing is loaded"))

def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not a run"):
        Run(tmp_path)

def test_the_directory_one_stands_in_has_its_own_name(finished_run, monkeypatch):
    monkeypatch.chdir(finished_run)
    session = open_session(run=".")
    assert (session.name, session.run.name, session.run.describe()["name"]) == ("run", "run", "run")
    monkeypatch.chdir(finished_run / "best")
    assert open_session(".").name == "best"


def test_a_session_opens_a_runs_best_model_with_its_own_tokenizer(finished_run):
    session = open_session(run=finished_run)
    assert session.name == "run"
    assert len(session.tokenizer) == session.model.config.vocab_size
    with pytest.raises(ConfigError, match="different vocabularies"):
        open_session("mini", finished_run)

def test_the_opening_sentence_is_in_the_address(session):
    query = opening_query(session, "the cat sat .", "2", ["2:dog"])
    assert query == Query("the cat sat .", (2,), ((2, "dog"),))
    assert fragment(query) == "#/forward?text=the+cat+sat+.&mask=2&target=2%3Adog"
    assert fragment(None) == ""

def test_for_an_export_something_is_masked(session):
    assert opening_query(session, "the cat sat on a mat .", choose=True).mask
    assert opening_query(session, "the [MASK] sat", choose=True).mask == ()
    assert opening_query(session, "the cat sat on a mat .").mask == ()

