"""Layers in a real browser: the lens, saliency and similarity with the numbers of the Python API."""

import pytest
from browsing import MASK, TEXT, By, Keys

from mini_bert.analysis.explorer import compare_layer_representations
from mini_bert.analysis.passes.logit_lens import lens_of_text
from mini_bert.analysis.passes.saliency import explain_prediction


def test_lens_similarity_and_saliency_are_shown(page, model, words):
    page.open("layers")
    top = lens_of_text(model, words, TEXT, mask=[MASK], positions=range(11)).top(words, 1)
    rows = page.all(".lens:not(.cka) tbody tr")
    assert [row.find_elements(By.TAG_NAME, "td")[MASK].text for row in reversed(rows)] == \
        [layer[MASK][0].token for layer in top]
    assert page.all(".lens-detail section")[-1].text.endswith("rank 1")
    compared = compare_layer_representations(model, words, TEXT, mask=[MASK])
    shown = page.script("return [...document.querySelectorAll('.cka td')].map((cell) => Number(cell.dataset.value))")
    assert shown == pytest.approx(compared.similarity.ravel().tolist(), abs=1e-6)
    explained = explain_prediction(model, words, TEXT, MASK, "time", mask=[MASK])
    page.find(".saliency td")
    values = page.script("return [...document.querySelectorAll('.saliency td [data-value]')]"
                         ".map((cell) => Number(cell.dataset.value))")[::2]
    assert values == pytest.approx(explained.attributions.tolist(), rel=1e-3, abs=1e-4)


def test_a_column_is_chosen_by_keyboard_and_keeps_the_focus(page):
    page.open("layers")
    page.script("document.querySelectorAll('.lens thead button')[3].focus()")
    page.press(Keys.ENTER)
    page.until(lambda: "position=3" in page.driver.current_url)
    page.settle("layers")
    assert page.find("#lens h3").text == "At position 3, “for”"
    assert page.script("return document.activeElement.textContent") == "for"


@pytest.mark.parametrize(("position", "token"), [("-3", "[CLS]"), ("99", "[SEP]"), ("x", "[CLS]")])
def test_a_position_that_is_none_is_brought_to_one(page, position, token):
    page.open("layers", position=position)
    assert f"“{token}”" in page.find("#lens h3").text
