"""The page in a real browser, against the real server: each view does its work, with the numbers of the Python API."""
# ruff: noqa: E402  (without a browser the imports below are not to be had)

import json
import shutil
from time import sleep
from urllib.parse import urlencode, urlsplit

import pytest

for library in ("starlette", "uvicorn", "selenium"):
    pytest.importorskip(library, reason=f"the browser tests need {library}: pip install -e '.[test,explorer,browser]'")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if CHROMIUM is None or DRIVER is None:
    pytest.skip("there is no chromium with its chromedriver on the PATH; `make browser` installs them by apt",
                allow_module_level=True)

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.analysis.attention_heads import query_key_terms
from mini_bert.analysis.backward_steps import step_through_backward_pass, verify_entry
from mini_bert.analysis.explorer import compare_layer_representations
from mini_bert.analysis.forward_steps import explain_cell, step_through_forward_pass
from mini_bert.analysis.logit_lens import lens_of_text
from mini_bert.analysis.saliency import explain_prediction
from mini_bert.core.model import MiniBERT
from mini_bert.explorer.export import export_page
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.queries import Query
from mini_bert.explorer.server import serving
from mini_bert.explorer.session import Session

TEXT, MASK = "They met for the first time in Paris.", 6
VIEWS = ("forward", "attention", "backward", "step", "layers", "training")


class Page:
    """A browser and what a test does with it."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address

    def open(self, view, **state):
        given = {"text": TEXT, "mask": MASK} | state
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#/{view}?{urlencode(given)}")
        return self.settle(view)

    def settle(self, view):
        sleep(0.05)                                       # the page hears of a new address a moment later
        self.until(lambda: self.script("return document.querySelector(arguments[0]) !== null && "
                                       "!document.body.classList.contains('busy')", f".view-{view}"))
        return self

    def until(self, true, seconds=20):
        # what is being drawn anew may be gone between being found and being read
        return WebDriverWait(self.driver, seconds, 0.03, [StaleElementReferenceException]).until(lambda _: true())

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.until(lambda: self.script("return document.querySelector(arguments[0])", selector))

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def map(self, card, selector="canvas"):
        """A heat map of a card; it is drawn when it comes into sight."""
        self.script("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", card)
        return self.find(f"#{card} {selector}")

    def number(self, selector):
        """The number behind what is written."""
        return float(self.until(lambda: self.find(selector).get_attribute("data-value")))

    def press(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def width(self, pixels, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def walk_to(self, row, column):
        """With arrow keys from the upper left cell of the heat map that has the focus."""
        self.press(Keys.HOME, *[Keys.ARROW_UP] * 12, *[Keys.ARROW_DOWN] * row, *[Keys.ARROW_RIGHT] * column)


@pytest.fixture(scope="module")
def driver():
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--force-prefers-reduced-motion", "--window-size=1300,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=Service(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def model():
    return mini_bert.load("mini")


@pytest.fixture(scope="module")
def words():
    return WordPieceTokenizer.load("mini")


@pytest.fixture(scope="module")
def address(words):
    with serving(Session(mini_bert.load("mini"), words, name="mini")) as found:
        yield found


@pytest.fixture
def page(driver, address):
    made = Page(driver, address)
    made.width(1300)
    yield made
    check_quiet(driver)


def check_quiet(driver, schemes=("http",), hosts=("127.0.0.1",)):
    """No error in the console, no request to anywhere else."""
    assert [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked = urlsplit(message["params"]["request"]["url"])
            if asked.scheme not in ("data", "about", "blob", "chrome"):
                assert asked.scheme in schemes
                assert asked.hostname in hosts


# -------------------------------------------------------------------- the six views


def test_forward_shows_every_step_and_the_sum_behind_a_cell(page, model, words):
    page.open("forward")
    passed = step_through_forward_pass(model, words, TEXT, mask=[MASK])
    assert [card.get_attribute("data-name") for card in page.all(".card")] == passed.names
    assert len(page.all(".card math")) == len(passed) - 1
    assert [found.text for found in page.all("#forward-tokens .ids span")] == passed.tokens
    page.map("forward-scores_1", "figure:nth-child(2) canvas").click()
    page.walk_to(3, 2)
    assert "head 1, “for”, “met”" in page.find("#forward-scores_1 .readout").text
    page.press(Keys.ENTER)
    cell = explain_cell(passed["scores_1"], 3, 2, head=1)
    page.until(lambda: "scores_1[1,3,2]" in page.find("#forward-scores_1 .expression").text)
    assert page.number("#forward-scores_1 [data-value]") == cell.value
    assert float(page.find("#forward-scores_1 [data-total]").get_attribute("data-total")) == cell.total
    assert len(page.all("#forward-scores_1 .terms tr")) == 13          # twelve terms, and the rest together
    page.find("#forward-scores_1 .explanation button").click()
    assert len(page.all("#forward-scores_1 .terms tr")) == len(cell.terms)


def test_a_matrix_and_a_parameter_can_be_opened(page):
    page.open("forward", step="Q_0")
    opened = page.find("#forward-Q_0")
    assert "wide" in opened.get_attribute("class")
    button = page.find("#forward-Q_0 button.source")
    button.click()
    page.until(lambda: button.get_attribute("aria-expanded") == "true" and page.all("#forward-Q_0 .sources canvas"))
    page.script("document.querySelector('#forward-Q_0 header button').click()")
    assert "wide" not in opened.get_attribute("class")
    assert "step=" not in page.driver.current_url


def test_words_are_masked_by_a_click_and_targets_chosen(page, model, words):
    page.open("forward", mask="")
    assert page.all(".prediction") == []
    page.find("#token-2").click()
    page.until(lambda: "mask=2" in page.driver.current_url and page.all(".prediction"))
    page.settle("forward")
    assert page.find("#token-2").text.split() == ["[MASK]", "met"]
    assert page.find("#target-2").get_attribute("value") == "met"
    page.find(".prediction li button").click()
    page.until(lambda: "target=2" in page.driver.current_url)
    page.settle("forward")
    lens = lens_of_text(model, words, TEXT, mask=[2])
    best = lens.top(words)[-1][0][0]
    page.until(lambda: page.find("#target-2").get_attribute("value") == best.token)
    assert page.number(".prediction li .number") == pytest.approx(best.probability, rel=1e-5)
    field = page.find("#target-2")
    field.clear()
    field.send_keys("went", Keys.ENTER)
    page.until(lambda: "2%3Awent" in page.driver.current_url)


def test_attention_shows_all_heads_one_head_and_one_pair(page, model, words):
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


def test_backward_shows_the_gradients_and_verifies_an_entry(page, model, words):
    page.open("backward")
    passed = step_through_backward_pass(model, words, TEXT, mask=[MASK])
    assert page.number("#loss") == passed.loss
    shown = [card.get_attribute("data-name") for card in page.all(".card")]
    assert shown == [s.name for s in passed if not s.is_parameter or s.component == "embeddings"]
    landmarks = ("dlogits", "dfinal_hidden", "dffn_hidden_2", "dcontext_2", "dattention_weights_2", "dscores_2",
                 "dhidden_1", "dhidden_0", "dembeddings", "dtoken_embeddings")
    assert [name for name in shown if name in landmarks] == list(landmarks)
    page.map("backward-dK_1").click()
    page.walk_to(5, 7)
    page.press(Keys.ENTER)
    entry = verify_entry(passed["dK_1"], (0, 5, 7))
    page.until(lambda: "K_1[0,5,7]" in page.find("#backward-dK_1 .expression").text)
    for name in ("shown", "analytic", "numeric", "error"):
        assert page.number(f"#backward-dK_1 .{name}") == pytest.approx(getattr(entry, name), rel=1e-6)
    assert page.find("#backward-dK_1 .good").text == "They agree."
    page.script("scrollTo(0, 0)")                         # out from under the bar of views
    page.find("#parameters").click()
    page.until(lambda: len(page.all(".card")) == len(passed))
    assert len(page.all(".norms li")) == sum(not step.is_parameter for step in passed)


def test_step_changes_the_prediction_and_undo_brings_it_back(page, model, words):
    page.open("step")
    before = step_through_backward_pass(model, words, TEXT, mask=[MASK])
    rate = page.find("#rate")
    rate.clear()
    rate.send_keys("0.001")
    page.script("const o = document.getElementById('optimiser'); o.value = 'sgd'")
    page.find("#take-step").click()
    assert page.number("#loss-before") == before.loss
    model.params.flat -= 0.001 * before.gradients.flat
    try:
        after = step_through_backward_pass(model, words, TEXT, mask=[MASK]).loss
    finally:
        model.params.flat[...] = mini_bert.load("mini").params.flat
    assert page.number("#loss-after") == pytest.approx(after, rel=1e-5)
    assert page.number("#loss-after") < before.loss
    page.until(lambda: page.all(".changed"))
    page.find("#undo").click()
    assert page.number("#loss-now") == pytest.approx(before.loss, rel=1e-6)
    page.until(lambda: not page.all(".changed"))
    rate.clear()
    rate.send_keys("-1", Keys.ENTER)
    assert page.until(lambda: "learning rate" in page.find(".view .refused").text)
    check = [entry for entry in page.driver.get_log("browser") if "400" not in entry["message"]]
    assert check == []                                    # the browser itself notes the refusal


def test_layers_show_lens_similarity_and_saliency(page, model, words):
    page.open("layers")
    lens = lens_of_text(model, words, TEXT, mask=[MASK], positions=range(11))
    top = lens.top(words, 1)
    rows = page.all(".lens:not(.cka) tbody tr")
    assert [row.find_elements(By.TAG_NAME, "td")[MASK].text for row in reversed(rows)] == \
        [layer[MASK][0].token for layer in top]
    compared = compare_layer_representations(model, words, TEXT, mask=[MASK])
    shown = [float(cell.get_attribute("data-value")) for cell in page.all(".cka td")]
    assert shown == pytest.approx(compared.similarity.ravel().tolist(), abs=1e-6)
    explained = explain_prediction(model, words, TEXT, MASK, "time", mask=[MASK])
    page.find(".saliency td")
    values = [float(value.get_attribute("data-value")) for value in page.all(".saliency td [data-value]")][::2]
    assert values == pytest.approx(explained.attributions.tolist(), rel=1e-3, abs=1e-4)
    page.all(".lens thead button")[3].click()
    page.until(lambda: "position=3" in page.driver.current_url)


def test_training_goes_through_the_checkpoints(driver, finished_run, tokenizer):
    with serving(open_session(run=finished_run)) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("training", text="the cat sat on a mat.", mask=2)
        slider = page.find("#checkpoint")
        seen = []
        slider.send_keys(Keys.HOME)
        for name in ("step-0", "step-4", "step-8"):
            page.until(lambda name=name: page.find("#checkpoint-name").text.startswith(f"{name} "))
            found = MiniBERT.load(finished_run / "checkpoints" / name)
            best = lens_of_text(found, tokenizer, "the cat sat on a mat.", mask=[2]).top(tokenizer)[-1][0][0]
            page.until(lambda best=best: page.number(".training .prediction .number") ==
                       pytest.approx(best.probability, rel=1e-4))
            seen.append(page.number(".training .prediction .number"))
            assert len(page.all(".training .head canvas")) == 4
            slider.send_keys(Keys.ARROW_RIGHT)
        assert len(set(seen)) == 3
        assert len(page.all(".chart .line")) >= 2
        assert "checkpoint=" in driver.current_url
        check_quiet(driver)


# -------------------------------------------------------------------- keys, addresses, sizes, looks


def test_the_keyboard_reaches_everything(page):
    page.open("forward")
    body = page.find("body")
    for number, view in [*enumerate(VIEWS, 1), (1, "forward")]:
        body.send_keys(str(number))
        page.settle(view)
        assert page.find("#views [aria-current]").text.lower().endswith(view)
    body.send_keys("/")
    assert page.driver.switch_to.active_element.get_attribute("id") == "text"
    page.press(Keys.CONTROL, "a")
    page.press("The cat sat on the mat.", Keys.ENTER)
    page.until(lambda: len(page.all(".token")) == 9)
    page.press(Keys.ESCAPE)
    page.press("m")
    page.press(Keys.TAB, Keys.ENTER)
    page.until(lambda: page.all(".token.masked"))
    page.press("j")
    assert page.driver.switch_to.active_element.get_attribute("id") == "forward-tokens"
    page.press("?")
    assert page.find("#help").get_attribute("open") is not None
    page.press(Keys.ESCAPE)
    page.until(lambda: page.find("#help").get_attribute("open") is None)
    body.send_keys("t", "t")
    assert page.script("return document.documentElement.dataset.look") == "dark"
    body.send_keys("t")
    page.settle("forward")


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


def test_an_address_brings_back_what_was_seen(page, model, words):
    page.open("forward", step="ffn_hidden_2", cell="6,11")
    passed = step_through_forward_pass(model, words, TEXT, mask=[MASK])
    assert page.number("#forward-ffn_hidden_2 [data-value]") == float(passed["ffn_hidden_2"].array[6, 11])
    page.open("attention", layer=1, head=2, query=3, key=4)
    assert page.find("#head-name").text.startswith("Layer 1, head 2")
    page.driver.back()
    page.driver.back()
    page.settle("forward")


@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_window_needs_no_scrolling_sideways(page, view):
    page.width(400)
    page.open(view)
    if view == "forward":
        page.map("forward-token_vectors").click()
        page.find("#forward-token_vectors .explanation")
    assert page.script("return document.documentElement.scrollWidth") <= 400


def test_a_text_that_is_too_long_is_refused_on_the_page(page):
    page.open("forward")
    field = page.find("#text")
    field.clear()
    field.send_keys("word " * 80, Keys.ENTER)
    assert page.until(lambda: "the model takes 64" in page.find("#sentence .refused").text)
    page.driver.get_log("browser")                        # the browser itself notes the refusal


# -------------------------------------------------------------------- the exported file


def test_the_exported_file_works_without_a_server(driver, finished_run, tmp_path):
    session = open_session(run=finished_run)
    query = Query("the cat sat on a mat.", (2,))
    file = tmp_path / "views of one sentence.html"
    done = export_page(session, query, file)
    assert done["bytes"] == file.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    check_quiet(driver)
    page = Page(driver, file.as_uri())
    page.width(1300)
    page.open("forward", text=query.text, mask=2)
    page.map("forward-Q_1").click()              # the nearest cell whose sum is in the file
    index = page.until(lambda: page.find("#forward-Q_1 .expression").text)
    assert index.startswith("Q_1[0,2,")
    page.open("attention", text=query.text, mask=2)
    assert page.number("#pair-score")
    page.open("backward", text=query.text, mask=2)
    page.map("backward-dlogits").click()
    assert page.find("#backward-dlogits .good").text == "They agree."
    page.open("step", text=query.text, mask=2)
    page.find(".embedded-step").click()
    assert page.number("#loss-after") != page.number("#loss-before")
    page.open("layers", text=query.text, mask=2)
    page.open("training", text=query.text, mask=2)
    page.until(lambda: page.all(".training .head canvas"))
    driver.get(f"{page.address}#/forward?text=a+cat")
    assert "one sentence" in page.find("#sentence .refused").text
    check_quiet(driver, schemes=("file",), hosts=(None, ""))
