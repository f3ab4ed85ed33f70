"""A real browser and what a test does with it; without chromium the tests that import this are skipped, and say why."""
# ruff: noqa: E402  (without a browser the imports below are not to be had)

import json
from urllib.parse import urlsplit

import pytest

for library in ("starlette", "uvicorn", "selenium"):
    pytest.importorskip(library, reason=f"the browser tests need {library}: pip install -e '.[test,explorer,browser]'")
from chromium import CHROMIUM, DRIVER, open_view, start_chromium, wait_until_shown

if CHROMIUM is None or DRIVER is None:
    pytest.skip("there is no chromium with its chromedriver on the PATH; `make browser` installs them by apt",
                allow_module_level=True)

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.ui import WebDriverWait

TEXT, MASK = "They met for the first time in Paris.", 6
VIEWS = ("forward", "attention", "backward", "step", "change", "compare", "layers", "training")
# errors that the page itself does not see, such as a promise that nobody waits for, are in the console's log
_LOGS = {"browser": "ALL", "performance": "ALL"}


def start_browser() -> Chrome:
    return start_chromium(logs=_LOGS)


class Page:
    """The explorer's page at an address, in a browser."""

    def __init__(self, driver, address):
        self.driver, self.address = driver, address
        self.refusals = 0                                 # of the server, that the test has provoked

    def open(self, view, **state):
        open_view(self.driver, self.address, view, {"text": TEXT, "mask": MASK} | state, seconds=20)
        return self.settle(view)

    def settle(self, view=None):
        """Until the page says that it shows the address that it has."""
        wait_until_shown(self.driver, seconds=20)
        if view is not None:
            assert self.all(f".view-{view}"), self.find("#view").text
        return self

    def blocks(self):
        """Go through the blocks of the map, from the one that is shown to the last one of the view."""
        while True:
            yield self.find(".group h2").text
            links = self.all("#next-block")
            if not links:
                return
            links[0].click()
            WebDriverWait(self.driver, 20, 0.03).until(staleness_of(links[0]))      # the next block has one of its own
            self.settle()

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

    @property
    def focused(self):
        """The id of what has the keyboard's focus."""
        return self.script("return document.activeElement.id || document.activeElement.tagName")

    def focus(self, selector):
        self.find(selector)
        self.script("document.querySelector(arguments[0]).focus()", selector)

    def width(self, pixels, height=900):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def walk_to(self, row, column):
        """With arrow keys from the upper left cell of the heat map that has the focus."""
        self.press(Keys.HOME, *[Keys.ARROW_UP] * 12, *[Keys.ARROW_DOWN] * row, *[Keys.ARROW_RIGHT] * column)

    def top_of(self, selector):
        """Where an element begins, in pixels below the upper edge of the window."""
        return self.script("return document.querySelector(arguments[0]).getBoundingClientRect().top", selector)

    def check_quiet(self, schemes=("http",), hosts=("127.0.0.1",)):
        """No error in the console, no request to anywhere else; the browser itself notes the server's refusals."""
        noted = [entry["message"] for entry in self.driver.get_log("browser")
                 if entry["level"] in ("SEVERE", "WARNING")]
        assert [message for message in noted if "status of 400" not in message] == []
        assert len(noted) == self.refusals
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked = urlsplit(message["params"]["request"]["url"])
                if asked.scheme not in ("data", "about", "blob", "chrome"):
                    assert asked.scheme in schemes
                    assert asked.hostname in hosts
