"""Step in a real browser: the prediction changes, undo brings it back, a step that is too long is refused."""

import pytest
from browsing import MASK, TEXT, Keys, Page

import mini_bert
from mini_bert import MiniBERT, ModelConfig
from mini_bert.analysis.passes.backward_steps import step_through_backward_pass
from mini_bert.explorer.queries import Query
from mini_bert.explorer.server import serving
from mini_bert.explorer.session import Session
from mini_bert.training.update import Update

QUERY = Query(TEXT, (MASK,))


def take_step(page, rate, optimiser="sgd"):
    field = page.find("#rate")
    field.clear()
    field.send_keys(rate)
    page.script("document.getElementById('optimiser').value = arguments[0]", optimiser)
    page.find("#take-step").click()


def test_a_step_changes_the_prediction_and_undo_brings_it_back(page, words):
    page.open("step")
    model = mini_bert.load("mini")
    before = step_through_backward_pass(model, words, TEXT, mask=[MASK])
    squared = float(before.gradients.flat.astype(float) @ before.gradients.flat)
    assert page.number("#forecast b") == pytest.approx(0.001 * squared, rel=1e-4)
    take_step(page, "0.001")
    assert page.number("#loss-before") == before.loss
    assert not page.find("#ahead").is_displayed()         # what was to be expected, until a step shows what came
    model.params.flat -= 0.001 * before.gradients.flat
    after = step_through_backward_pass(model, words, TEXT, mask=[MASK]).loss
    assert page.number("#loss-after") == pytest.approx(after, rel=1e-5)
    assert page.number("#loss-after") < before.loss
    page.until(lambda: page.all(".changed"))
    page.focus("#undo")
    page.press(Keys.ENTER)
    assert page.number("#loss-now") == pytest.approx(before.loss, rel=1e-6)
    page.until(lambda: not page.all(".changed"))
    assert page.focused == "take-step"                    # undo can do nothing more


def test_a_rate_that_is_none_is_refused(page):
    page.open("step")
    take_step(page, "-1")
    assert page.until(lambda: "learning rate" in page.find(".view .refused").text)
    page.refusals = 1


def test_a_step_that_is_too_long_is_refused_and_leaves_the_page_as_it_was(page, monkeypatch):
    page.open("step")
    before, step = page.number(".prediction li .number"), Update.step
    monkeypatch.setattr(Update, "step", lambda self, batch, key, rate: step(self, batch, key, 1e28 * rate))
    take_step(page, "100")
    assert page.until(lambda: "undone" in page.find(".view .refused").text)
    assert page.all("#steps-taken")[0].text.startswith("No step has been taken")
    page.open("forward")
    assert page.number(".prediction li .number") == before
    page.refusals = 1


def test_a_model_that_has_no_answer_can_be_put_back(page, shown):
    """Steps on one sentence may leave nothing to be said of another: the view still undoes them."""
    shown.step(QUERY, 1e-3, "sgd")
    with shown.lock:
        shown.model.params["token_embeddings"][...] = 1e38
        shown._changed()
    page.open("step")
    assert "not finite" in page.find("#sentence .refused").text
    assert "not finite" in page.find(".view .refused").text
    assert not page.find("#take-step").is_enabled()
    page.find("#undo").click()
    page.until(lambda: page.find("#take-step").is_enabled())
    page.settle("step")
    assert page.all(".refused") == []
    assert page.all(".prediction")
    page.refusals = 1


def test_without_a_mask_steps_can_still_be_taken_back(page, shown):
    shown.step(QUERY, 1e-3, "sgd")
    page.open("step", mask="")
    assert "Nothing is masked" in page.find(".view .refused").text
    page.find("#reset").click()
    page.until(lambda: page.find("#steps-taken").text.startswith("No step has been taken"))
    assert shown.taken == 0


def test_a_model_without_a_head_is_told_that_it_has_no_loss(driver, tokenizer):
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8,
                                 vocab_size=len(tokenizer), max_seq_length=16, mlm_head="none"))
    with serving(Session(model, tokenizer)) as address:
        page = Page(driver, address)
        page.open("step", text="the cat sat.", mask=2)
        assert page.find(".view .refused").text.startswith("This model has no head for words")
        assert not page.find("#take-step").is_enabled()
        page.check_quiet()
