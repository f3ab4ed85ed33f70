"""Compare in a real browser: two sentences, two models, and pairs of sentences."""

import pytest
from browsing import MASK, TEXT, Keys, Page

import mini_bert
from mini_bert import MiniBERT, ModelConfig
from mini_bert.analysis.passes.logit_lens import lens_of_text
from mini_bert.explorer.server import serving
from mini_bert.explorer.session import Session

OTHER = "He met her for the last time in Rome."


def test_two_sentences_are_shown_side_by_side(page, model, words):
    page.open("compare")
    assert len(page.all(".side-box")) == 2
    assert page.find("#other").get_attribute("value") == " ".join(reversed(TEXT.split()))
    field = page.find("#other")
    field.clear()
    field.send_keys(OTHER, Keys.ENTER)
    page.settle("compare")
    right = ".side-box:nth-child(2)"
    place = words.encode(OTHER).index(words.vocabulary.ids["time"])        # the word that is masked on the left
    best = lens_of_text(model, words, OTHER, mask=[place]).top(words)[-1][0][0]
    assert page.number(f"{right} .number") == pytest.approx(best.probability, rel=1e-4)
    page.script("document.querySelectorAll(arguments[0] + ' .token')[2].click()", right)
    page.settle("compare")
    assert f"othermask=2%2C{place}" in page.driver.current_url
    assert len(page.all(f"{right} .prediction")) == 2
    assert len(page.all(".side-box:nth-child(1) .prediction")) == 1
    assert len(page.all(".side-box .head canvas")) == 24


def test_the_same_sentence_has_the_same_vectors(page):
    page.open("compare", other=TEXT)
    assert "How alike" in page.find(".view").text
    assert page.number(".side-box:nth-child(1) b[data-value]") == page.number(".side-box:nth-child(2) b[data-value]")


def test_two_models_are_shown_side_by_side(driver, words):
    other = MiniBERT(ModelConfig(vocab_size=len(words), num_layers=1, num_heads=2, hidden_size=16,
                                 intermediate_size=16, max_seq_length=64), seed=1)
    session = Session(mini_bert.load("mini"), words, name="mini", other=Session(other, words, name="young"))
    with serving(session) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("compare")
        assert [title.text for title in page.all(".side-box h2")] == ["mini", "young"]
        assert len(page.all(".side-box:nth-child(2) .head canvas")) == 2
        page.check_quiet()


def test_a_pair_of_sentences_is_typed(page):
    page.open("forward")
    page.find("#add-pair").click()
    assert page.focused == "pair"
    page.press("It was cold.", Keys.ENTER)
    page.settle("forward")
    assert "pair=It+was+cold." in page.driver.current_url
    assert len(page.all(".token.second")) == 5
    assert page.find(f"#token-{MASK}").text == "time"     # the mask belonged to another text
    page.find("#token-12").click()
    page.settle("forward")
    assert "mask=12" in page.driver.current_url
    for view in ("attention", "backward", "layers", "compare"):
        page.script("document.querySelectorAll('#views a')[arguments[0]].click()",
                    ["forward", "attention", "backward", "step", "change", "compare", "layers"].index(view))
        page.settle(view)
        assert len(page.all("#sentence .token.second")) == 5
