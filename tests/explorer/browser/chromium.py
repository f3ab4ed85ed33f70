"""Chromium, started and led to the explorer's page: for the tests, docs/screenshots.py and benchmarks/explorer.py."""

import shutil
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlencode

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
              "--disable-background-networking", "--window-size=1300,900")
_SHOWN = "return document.body.dataset.shown === location.hash"


def start_chromium(*arguments: str, logs: Mapping[str, str] | None = None) -> Chrome:
    """A browser without a window; `logs` are the kinds that it keeps, each with its level."""
    if CHROMIUM is None or DRIVER is None:
        raise SystemExit("There is no chromium with its chromedriver on the PATH.")
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*_ARGUMENTS, *arguments):
        options.add_argument(argument)
    if logs is not None:
        options.set_capability("goog:loggingPrefs", dict(logs))
    return Chrome(options=options, service=Service(DRIVER))


def open_view(driver: Chrome, address: str, view: str, state: Mapping[str, Any], seconds: float = 60) -> None:
    """The page at a view, loaded anew; comes back when it is drawn."""
    driver.get("about:blank")
    driver.get(f"{address}#/{view}?{urlencode(state)}")
    wait_until_shown(driver, seconds)


def wait_until_shown(driver: Chrome, seconds: float = 60) -> None:
    """Until the page says that it shows the address that it has."""
    end = monotonic() + seconds
    while not driver.execute_script(_SHOWN):
        if monotonic() > end:
            raise TimeoutError(f"The page did not come to show {driver.current_url} in {seconds:g} s.")
        sleep(0.03)
