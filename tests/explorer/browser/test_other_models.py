"""Models whose attention is not BERT's, in a real browser: score terms, hidden keys, and words that come next."""

import numpy as np
import pytest
from browsing import MASK, TEXT, Page

from mini_bert import MiniBERT, load_preset
from mini_bert.analysis.attention.heads import query_key_terms
from mini_bert.analysis.passes.forward_steps import step_through_forward_pass
from mini_bert.core.config import ModelConfig
from mini_bert.explorer.session import Session

SMALL = {"num_layers": 2, "hidden_size": 32, "intermediate_size": 48}


@pytest.fixture(scope="module", params=["mini-deberta", "mini-xlnet", "mini-gpt"])
def session(request, words):
    """A model with the slots of a preset, and weights that are large enough to tell pairs apart."""
    model = MiniBERT(ModelConfig.from_dict({**load_preset(request.param).to_dict(), **SMALL}), seed=1)
    noise = np.random.default_rng(1).standard_normal(model.params.flat.size)
    model.params.flat += (0.2 * noise).astype(np.float32)
    return Session(model, words, name=request.param)


@pytest.fixture
def other(driver, session):
    """A page that shows it; afterwards the console is empty."""
    from mini_bert.explorer.server import serving

    with serving(session) as address:
        page = Page(driver, address)
        page.width(1300)
        yield page
        page.check_quiet()


def test_the_parts_of_a_pairs_score_are_the_models(other, session, words):
    other.open("attention", layer=1, head=1, query=5, key=2)
    found = query_key_terms(session.model, words, TEXT, 1, 1, 5, 2, mask=[MASK])
    assert other.number("#pair-score") == pytest.approx(found.score, rel=1e-4)
    assert other.number("#pair-weight") == pytest.approx(found.weight, rel=1e-4)
    assert len(other.all("#pair-parts")) == bool(found.biases)


def test_every_step_of_the_pass_has_a_title_and_a_formula(other, session, words):
    other.open("forward")
    passed = step_through_forward_pass(session.model, words, TEXT, mask=[MASK])
    titles, formulas = [], 0
    for _ in other.blocks():
        titles += other.script("return [...document.querySelectorAll('.card h3')].map(title => title.textContent)")
        formulas += len(other.all(".card math"))
    assert titles == [step.title for step in passed]
    assert formulas == len(passed) - 1                                     # the tokens have none
    for width in (1300, 400):
        other.width(width)
        other.until(lambda: other.script("return document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("session", ["mini-gpt"], indirect=True)
def test_a_causal_model_is_asked_for_the_word_that_comes_next(other):
    other.open("attention", layer=0, head=0, query=3, key=6)
    assert other.find(f"#token-{MASK}").text == "time"                     # it stays as it is
    assert other.find(".prediction p span").text == f"After “first”, at position {MASK}, the model expects"
    other.until(lambda: other.find("#pair-score").text == "−∞")
    assert "this key is hidden" in other.find("#pair").text
    other.open("backward")
    assert f"(“time”) at position {MASK}" in other.find(".loss").text
    other.open("layers")
    assert f"After position {MASK - 1}, “first”" in other.find("#lens").text
