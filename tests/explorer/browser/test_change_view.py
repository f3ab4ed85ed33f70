"""Change in a real browser: heads off, a weight edited, the prediction moves, and the model stays as it is."""

import numpy as np
import pytest
from browsing import MASK, TEXT, Keys

from mini_bert.analysis.passes.interventions import changed_probabilities


@pytest.fixture(scope="module")
def ids(model, words):
    found = np.array(words.encode(TEXT))
    found[MASK] = words.vocabulary.mask
    return found


def after(page):
    return float(page.find("#outcome tr.target [data-after]").get_attribute("data-after"))


def test_switching_heads_off_moves_the_prediction(page, model, words, ids, shown):
    target = words.vocabulary.ids["time"]
    before = shown.model.params.flat.copy()
    page.open("change")
    plain = after(page)
    assert len(page.all(".switch")) == 12
    page.focus("[data-switch='0.1']")
    page.press(Keys.ENTER)
    expected = changed_probabilities(model, ids, heads=[(0, 1)])[MASK, target]
    page.until(lambda: after(page) == pytest.approx(float(expected), rel=1e-4))
    assert expected != pytest.approx(plain, rel=1e-3)
    assert page.script("return document.activeElement.dataset.switch") == "0.1"
    page.find(".switches .link").click()                  # all heads of the last layer too
    both = changed_probabilities(model, ids, heads=[(0, 1), *((2, head) for head in range(4))])[MASK, target]
    page.until(lambda: after(page) == pytest.approx(float(both), rel=1e-4))
    assert "off=0.1" in page.driver.current_url
    assert shown.model.params.flat.tobytes() == before.tobytes()
    page.driver.refresh()                                 # the address holds what is off
    page.settle("change")
    assert after(page) == pytest.approx(float(both), rel=1e-4)


def test_editing_a_weight_moves_the_prediction_and_is_put_back(page, model, words, ids):
    page.open("change")
    plain = after(page)
    page.script("const names = document.getElementById('weight-name'); names.value = 'final_ln_gamma';"
                "names.dispatchEvent(new Event('change'))")
    page.until(lambda: len(page.all(".weight-form input[type=number]")) == 1)
    page.until(lambda: page.find("#weight-value").get_attribute("value") not in ("", None))
    slider = page.find("#weight-slider")
    slider.send_keys(Keys.HOME)                           # all the way to the left
    page.until(lambda: page.all("#edits li"))
    page.until(lambda: after(page) != plain)
    value = float(page.find("#weight-value").get_attribute("value"))
    expected = changed_probabilities(model, ids, edits={("final_ln_gamma", (0,)): value})
    page.until(lambda: after(page) == pytest.approx(float(expected[MASK, words.vocabulary.ids["time"]]), rel=1e-3))
    page.find("#edits button").click()
    page.until(lambda: not page.all("#edits li"))
    page.until(lambda: after(page) == plain)


def test_without_a_mask_the_view_says_what_to_do(page):
    page.open("change", mask="")
    assert "Nothing is masked" in page.find(".view .panel").text
