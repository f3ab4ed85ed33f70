"""Attention in a real browser: all heads, one head, one pair, by mouse and by keyboard."""

import pytest
from browsing import MASK, TEXT, Keys

from mini_bert.analysis.attention.heads import query_key_terms


def test_all_heads_one_head_and_one_pair_are_shown(page, model, words):
    page.open("attention")
    assert len(page.all("button.head")) == 12
    page.find("[data-head='0,1']").click()
    page.until(lambda: page.find("#head-name").text.startswith("Layer 0, head 1"))
    page.script("document.querySelectorAll('g.word')[4].dispatchEvent(new MouseEvent('click'))")
    page.until(lambda: page.all("g.word.chosen"))
    assert len(page.all(".arc")) >= 1
    page.find(".head-detail canvas").click()
    page.walk_to(4, 5)
    page.press(Keys.ENTER)
    found = query_key_terms(model, words, TEXT, 0, 1, 4, 5, mask=[MASK])
    page.until(lambda: page.number("#pair-score") == pytest.approx(found.score, rel=1e-6))
    assert page.number("#pair-weight") == pytest.approx(found.weight, rel=1e-6)
    assert len(page.all(".bars-box")) == 3
    assert len(page.all(".bars-box:last-of-type rect")) == len(found.terms)
    assert "query=4" in page.driver.current_url


def test_the_focus_stays_where_something_was_chosen(page):
    page.open("attention", query=3, key=4)
    page.focus("#pair-looked-at")
    page.press(Keys.ARROW_DOWN)
    page.until(lambda: "key=5" in page.driver.current_url and "“time”" not in page.find("#pair").text
               and page.find("#pair-looked-at").get_attribute("value") == "5")
    assert page.focused == "pair-looked-at"
    page.focus("[data-head='1,2']")
    page.press(Keys.ENTER)
    page.until(lambda: page.find("#head-name").text.startswith("Layer 1, head 2"))
    assert page.script("return document.activeElement.dataset.head") == "1,2"
    page.script("document.querySelectorAll('g.word')[4].focus()")
    page.press(Keys.ENTER)
    page.until(lambda: "query=4" in page.driver.current_url)
    assert page.script("return [...document.querySelectorAll('g.word')].indexOf(document.activeElement)") == 4


@pytest.mark.parametrize("state", [{"layer": -1, "head": "x", "query": -3, "key": 99}, {"query": "1.5"}])
def test_an_odd_address_is_brought_to_what_there_is(page, state):
    page.open("attention", **state)
    assert page.number("#pair-weight") <= 1
