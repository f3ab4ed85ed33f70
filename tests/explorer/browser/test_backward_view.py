"""Backward in a real browser: every gradient with the numbers of the Python API, an entry verified."""

import pytest
from browsing import MASK, TEXT, Keys

from mini_bert.analysis.passes.backward_steps import step_through_backward_pass, verify_entry


@pytest.fixture(scope="module")
def passed(model, words):
    return step_through_backward_pass(model, words, TEXT, mask=[MASK])


def names(page):
    return page.script("return [...document.querySelectorAll('.card')].map((card) => card.dataset.name)")


def test_the_gradients_are_shown_in_their_order(page, passed):
    page.open("backward")
    assert page.number("#loss") == passed.loss
    shown = [name for _ in page.blocks() for name in names(page)]
    assert shown == [s.name for s in passed if not s.is_parameter or s.component == "embeddings"]
    landmarks = ("dlogits", "dfinal_hidden", "dffn_hidden_2", "dcontext_2", "dattention_weights_2", "dscores_2",
                 "dhidden_1", "dhidden_0", "dembeddings", "dtoken_embeddings")
    assert [name for name in shown if name in landmarks] == list(landmarks)
    assert len(page.all(".norms li")) == sum(not step.is_parameter for step in passed)


def test_an_entry_is_verified(page, passed):
    page.open("backward", grad="dK_1")
    page.map("backward-dK_1").click()
    page.walk_to(5, 7)
    page.press(Keys.ENTER)
    entry = verify_entry(passed["dK_1"], (0, 5, 7))
    page.until(lambda: "K_1[0,5,7]" in page.find("#backward-dK_1 .expression").text)
    for name in ("shown", "analytic", "numeric", "error"):
        assert page.number(f"#backward-dK_1 .{name}") == pytest.approx(getattr(entry, name), rel=1e-6)
    assert page.find("#backward-dK_1 .good").text == "They agree."


def test_the_gradients_of_all_parameters_are_shown_on_request_and_the_focus_stays(page, passed):
    page.open("backward")
    page.focus("#parameters")
    page.press(Keys.SPACE)
    page.settle("backward")
    assert page.focused == "parameters"
    shown = [name for _ in page.blocks() for name in names(page)]
    assert sorted(shown) == sorted(passed.names)


def test_a_name_in_the_list_of_norms_leads_to_its_card(page):
    page.open("backward")
    page.script("[...document.querySelectorAll('.norms button')].find((b) => b.textContent === 'dQ_0').click()")
    page.settle("backward")
    page.find("#backward-dQ_0 canvas")
    page.until(lambda: 0 <= page.top_of("#backward-dQ_0") < 100)
