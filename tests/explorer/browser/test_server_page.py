"""The page of `mini-bert serve`: it lists the addresses of OpenAPI, and sends what is written there."""

import json

import pytest
from browsing import By, WebDriverWait

import mini_bert
from mini_bert.serve.app import Keys
from mini_bert.serve.routes import ROUTES
from mini_bert.serve.run import serving


@pytest.fixture(scope="module")
def served():
    with serving([mini_bert.pipeline("mini", threads=1)], keys=Keys(["a-long-key"])) as (address, _):
        yield address


@pytest.fixture
def entries(driver, served):
    """The entries of the page, by method and address."""
    driver.get_log("browser")
    driver.get(f"{served}docs")
    found = until(driver, lambda: driver.find_elements(By.TAG_NAME, "details"))
    yield {entry.find_element(By.TAG_NAME, "summary").text.split("\n")[0]: entry for entry in found}
    assert [line["message"] for line in driver.get_log("browser") if "status of 4" not in line["message"]] == []


def until(driver, true):
    return WebDriverWait(driver, 30, 0.05).until(lambda _: true())


def entry_of(entries, path):
    entry, = (entry for entry in entries.values() if entry.find_element(By.TAG_NAME, "code").text == path)
    entry.find_element(By.TAG_NAME, "summary").click()
    return entry


def answer_of(driver, entry):
    output = entry.find_element(By.TAG_NAME, "pre")
    driver.execute_script("arguments[0].textContent = ''", output)
    entry.find_element(By.TAG_NAME, "button").click()
    status, _, content = until(driver, lambda: output.text).partition("\n")
    return status, content


def test_it_lists_every_address_and_answers_an_example(driver, entries):
    shown = [entry.find_element(By.TAG_NAME, "code").text for entry in entries.values()]
    assert shown == [*dict.fromkeys(route.path for route in ROUTES), "/metrics"]
    filled = entry_of(entries, "/fill-mask")
    assert "top" in filled.find_element(By.TAG_NAME, "table").text
    assert answer_of(driver, filled)[0].startswith("401")
    driver.find_element(By.CSS_SELECTOR, "#key input").send_keys("a-long-key")
    status, content = answer_of(driver, filled)
    assert status.startswith("200")
    assert json.loads(content)[0]["masks"][0][0]["token"] == "time"


def test_what_is_sent_is_shown_as_text(driver, entries):
    driver.find_element(By.CSS_SELECTOR, "#key input").send_keys("a-long-key")
    entry = entry_of(entries, "/embed")
    text = entry.find_element(By.TAG_NAME, "textarea")
    text.clear()
    text.send_keys('{"inputs": "a", "model": "<img src=x onerror=alert(1)>"}')
    status, content = answer_of(driver, entry)
    assert status.startswith("404")
    assert "<img src=x onerror=alert(1)>" in content
    assert driver.find_elements(By.TAG_NAME, "img") == []
