"""What holds for every view: keys, addresses, narrow windows, light and dark."""

import pytest
from browsing import MASK, TEXT, VIEWS, Keys

from mini_bert.analysis.passes.forward_steps import step_through_forward_pass


def test_keys_lead_to_the_views(page):
    page.open("forward")
    body = page.find("body")
    for number, view in [*enumerate(VIEWS, 1), (1, "forward")]:
        body.send_keys(str(number))
        page.settle(view)
        assert page.find("#views [aria-current]").text.lower().endswith(view)


def test_a_sentence_is_typed_and_masked_by_keyboard(page):
    page.open("forward")
    page.find("body").send_keys("/")
    assert page.focused == "text"
    page.press(Keys.CONTROL, "a")
    page.press("The cat sat on the mat.", Keys.ENTER)
    page.settle("forward")
    assert len(page.all(".token")) == 9
    page.press(Keys.ESCAPE)
    page.press("m")
    page.press(Keys.TAB, Keys.ENTER)
    page.settle("forward")
    assert page.all(".token.masked")
    page.press("j")
    assert page.focused == "forward-tokens"


def test_the_list_of_keys_opens_and_closes_and_t_changes_the_look(page):
    page.open("step")
    page.press("?")
    assert page.find("#help").get_attribute("open") is not None
    page.press(Keys.ESCAPE)
    page.until(lambda: page.find("#help").get_attribute("open") is None)
    body = page.find("body")
    body.send_keys("t", "t")
    page.settle("step")
    assert page.script("return document.documentElement.dataset.look") == "dark"
    body.send_keys("t")
    page.settle("step")


def test_the_focus_stays_on_a_link_to_a_view_and_on_a_word_that_was_chosen(page):
    page.open("step")
    page.script("document.querySelectorAll('#views a')[5].focus()")
    page.press(Keys.TAB, Keys.ENTER)
    page.settle("layers")
    assert page.script("return document.activeElement.textContent") == "7Layers"
    page.focus(".prediction li:nth-child(2) button")
    chosen = page.focused
    assert chosen.startswith(f"candidate-{MASK}-")
    page.press(Keys.ENTER)
    page.settle("layers")
    assert f"target={MASK}" in page.driver.current_url
    assert page.focused == chosen


def test_another_sentence_takes_nothing_along_from_the_last(page):
    page.open("layers", step="Q_0", cell="0,1,2", grad="dQ_0", entry="0,1,2", query=3, key=4, position=9)
    field = page.find("#text")
    field.clear()
    field.send_keys("The cat sat.", Keys.ENTER)
    page.settle("layers")
    assert page.driver.current_url.endswith("#/layers?text=The+cat+sat.")


def test_an_address_brings_back_what_was_seen(page, model, words):
    page.open("forward", step="ffn_hidden_2", cell="6,11")
    passed = step_through_forward_pass(model, words, TEXT, mask=[MASK])
    assert page.number("#forward-ffn_hidden_2 [data-value]") == float(passed["ffn_hidden_2"].array[6, 11])
    page.open("attention", layer=1, head=2, query=3, key=4)
    assert page.find("#head-name").text.startswith("Layer 1, head 2")
    page.driver.back()
    page.driver.back()
    page.settle("forward")


@pytest.mark.parametrize(("view", "name"), [("forward", "Q_0"), ("backward", "dQ_2")])
def test_a_bookmark_of_a_cell_in_an_opened_map_brings_back_both(page, view, name):
    card, switch = f"#{view}-{name}", "document.querySelector(`${arguments[0]} header button`).click()"
    page.open(view, part=f"layer-{name[-1]}-attention")
    page.script(switch, card)
    page.map(f"{view}-{name}").click()
    cell = page.find(f"{card} .expression").text
    bookmark = page.script("return location.hash")
    page.driver.get("about:blank")
    page.driver.get(page.address + bookmark)
    page.settle(view)
    assert "wide" in page.find(card).get_attribute("class")
    assert page.find(f"{card} header button").text == "Close"
    assert page.find(f"{card} .expression").text == cell
    page.script(switch, card)                             # closed, it still has its cell
    assert page.script("return location.hash") == bookmark.replace(f"&open={name}", "") != bookmark


@pytest.mark.parametrize(("view", "state", "card"), [
    ("forward", {"step": "ffn_hidden_2", "cell": "6,11"}, "#forward-ffn_hidden_2"),
    ("forward", {"step": "scores_1"}, "#forward-scores_1"),
    ("backward", {"grad": "dhidden_0", "entry": "6,3"}, "#backward-dhidden_0")])
def test_an_address_leads_to_its_card(page, view, state, card):
    """And stays there when the maps above it are drawn, without the browser's own help as with it."""
    page.open(view, **state)
    all_near_maps_are_drawn(page, card)
    assert 0 <= page.top_of(card) < 100
    address = page.script("return location.hash")
    page.open(view)
    page.script("document.documentElement.style.overflowAnchor = 'none'; location.hash = arguments[0]", address)
    page.settle(view)
    all_near_maps_are_drawn(page, card)
    assert 0 <= page.top_of(card) < 100


def all_near_maps_are_drawn(page, card):
    page.find(f"{card} canvas")
    page.until(lambda: page.script("return [...document.querySelectorAll('.card > .numbers')].every((place) => {"
                                   " const { top, bottom } = place.getBoundingClientRect();"
                                   " return bottom < -290 || top > innerHeight + 290 || place.querySelector('canvas');"
                                   "})"))


def test_a_link_to_a_part_of_the_pass_arrives(page):
    page.open("forward")
    page.script("scrollTo(0, document.body.scrollHeight)")
    page.find("#map-layer-2-attention").click()
    page.settle("forward")
    all_near_maps_are_drawn(page, "#forward-Q_2")
    assert page.focused == "map-layer-2-attention"
    assert 0 <= page.top_of("#group-layer-2-attention") < 400


def test_whoever_scrolls_away_is_not_brought_back(page):
    page.open("forward", step="scores_1")
    page.script("scrollTo(0, 0)")
    page.find("#forward-attention_input_1 canvas")        # the page grows where it is now
    page.script("document.getElementById('forward-attention_input_1').style.height = '900px'")
    page.script("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.script("return scrollY") == 0


@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_window_needs_no_scrolling_sideways(page, view):
    page.width(360)
    page.open(view)
    if view == "forward":
        page.map("forward-token_vectors").click()
        page.find("#forward-token_vectors .explanation")
    if view == "backward":
        page.open(view, grad="dQ_1")
        page.map("backward-dQ_1").click()
        page.find("#backward-dQ_1 .explanation")
    if view == "change":
        page.find("[data-switch='0.1']").click()
        page.until(lambda: page.number("#loss-after") != page.number("#loss-before"))
    if view == "step":
        page.find("#take-step").click()
        page.find("#loss-after")
    wide = page.script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]


def test_light_and_dark_follow_the_system_and_the_switch(page):
    def paper():
        return page.script("return getComputedStyle(document.body).backgroundColor")

    seen = []
    for scheme in ("light", "dark"):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme}]})
        page.open("step")
        seen.append(paper())
    page.find("#theme").click()                           # light, though the system is dark
    page.settle("step")
    assert paper() == seen[0] != seen[1]
    page.find("#theme").click()
    page.find("#theme").click()
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_text_that_is_too_long_is_refused_on_the_page(page):
    page.open("forward")
    field = page.find("#text")
    field.clear()
    field.send_keys("word " * 80, Keys.ENTER)
    page.settle()
    assert "the model takes 64" in page.find("#sentence .refused").text
    page.refusals = 1


def test_a_refused_target_is_left_behind_by_showing_the_sentence_again(page):
    page.open("layers")
    field = page.find(f"#target-{MASK}")
    field.clear()
    field.send_keys("no-such-word", Keys.ENTER)
    page.settle()
    assert "no-such-word" in page.find("#sentence .refused").text
    assert page.find(f"#{page.find('#text').get_attribute('aria-describedby')}").text
    page.find("#sentence button[type=submit]").click()
    page.settle("layers")
    assert page.all("#sentence .refused") == []
    assert "target=" not in page.driver.current_url
    assert page.find(f"#{page.find('#text').get_attribute('aria-describedby')}").text.startswith("Click a word")
    page.refusals = 1


def test_a_server_that_is_gone_is_told_in_a_sentence(page):
    """Wherever something is asked for after the view is drawn; nothing is thrown into the console."""
    for view, click, place in (("forward", "#forward-Q_0 button.source", "#forward-Q_0 .sources .refused"),
                               ("attention", "[data-head='1,1']", "#pair .refused"),
                               ("change", "[data-switch='0.1']", "#outcome .refused"),
                               ("step", "#take-step", ".view-step .refused")):
        page.open(view, **({"step": "Q_0"} if view == "forward" else {}))
        page.script("window.fetch = () => Promise.reject(new TypeError('gone'))")
        page.script("document.querySelector(arguments[0]).click()", click)
        assert "does not answer" in page.find(place).text


def test_the_ticks_of_a_chart_end_with_it_however_small_its_numbers(page):
    page.open("step")
    for top in (3e-12, 7.0, 1e9):
        ticks = page.script("""
            const [top] = arguments;
            return import("/charts.js").then(({ lineChart }) => {
                const chart = lineChart([{ name: "p", x: [0, 1], y: [0, top] }]);
                return chart.querySelectorAll(".grid").length;
            });""", top)
        assert 3 <= ticks <= 8
