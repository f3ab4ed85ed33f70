"""How long the explorer's page takes to answer a click, in a real browser, and what the page weighs.

    python benchmarks/explorer.py [--repeats 9] [--json]

Mini-BERT with a sentence of 32 tokens; a time is from the click to the change of the page, its median over repeats.
Needs chromium with chromedriver, and selenium: pip install -e '.[explorer,browser]'.
"""

import argparse
import json
import shutil
import sys
from statistics import median
from time import sleep
from typing import Any
from urllib.parse import urlencode

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from mini_bert.explorer.assets import FILES, STATIC
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.server import serving

TEXT = ("The old man walked slowly along the river every morning because he wanted to see the birds, and his dog "
        "always ran before him through the high grass.")
# what is clicked: view, its state, the element, and where the answer appears; {n} is another number each time
CLICKS = {
    "a cell's sum (attention scores)": ("forward", {"step": "scores_0"}, "#forward-scores_0 canvas",
                                        "#forward-scores_0 .inspector"),
    "a cell's sum (feed-forward)": ("forward", {"step": "ffn_output_1"}, "#forward-ffn_output_1 canvas",
                                    "#forward-ffn_output_1 .inspector"),
    "a head": ("attention", {}, "[data-head='{l},{a}']", ".head-detail"),
    "an entry verified (a value)": ("backward", {"grad": "dQ_1"}, "#backward-dQ_1 canvas", "#backward-dQ_1 .inspector"),
    "an entry verified (a parameter)": ("backward", {"grad": "dW_Q_1", "parameters": "1"}, "#backward-dW_Q_1 canvas",
                                        "#backward-dW_Q_1 .inspector"),
    "a word masked (its predictions)": ("step", {}, "#token-{n}", "#sentence"),
    "a step of AdamW": ("step", {}, "#take-step", ".view-step [aria-live]"),
    "undo": ("step", {}, "#undo", ".view-step [aria-live]"),
}
# resolves with the milliseconds until the answer's text has changed and is no longer the dots that stand for it
MEASURE = """
const [selector, answer, share, done] = arguments;
const element = document.querySelector(selector), place = document.querySelector(answer);
const box = element.getBoundingClientRect(), before = place.textContent, start = performance.now();
const watcher = new MutationObserver(() => {
  const now = place.textContent;
  if (now && now !== before && now !== "…") {
    watcher.disconnect();
    done(performance.now() - start);
  }
});
watcher.observe(place, { childList: true, subtree: true, characterData: true });
element.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: box.left + box.width * (0.4 + 0.05 * share),
  clientY: box.top + box.height * (0.4 + 0.05 * share) }));
"""


def browser() -> Chrome:
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or sys.exit("There is no chromium on the PATH.")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--force-prefers-reduced-motion", "--window-size=1300,900"):
        options.add_argument(argument)
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(30)
    return driver


def measure(driver: Chrome, address: str, view: str, state: dict[str, str], element: str, answer: str,
            repeats: int) -> list[float]:
    driver.get("about:blank")
    driver.get(f"{address}#/{view}?{urlencode({'text': TEXT, 'mask': 5, **state})}")
    first = element.format(n=7, l=0, a=0)
    while not driver.execute_script("return document.querySelector(arguments[0]) !== null && "
                                    "!document.body.classList.contains('busy')", first):
        sleep(0.05)
    sleep(2)                                              # what the page prepares by itself
    times = []
    for n in range(repeats):
        if element == "#undo":
            driver.execute_async_script(MEASURE, "#take-step", answer, n)
        times.append(driver.execute_async_script(MEASURE, element.format(n=7 + n, l=n % 3, a=n // 3 % 4), answer, n))
        sleep(0.3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {"page_bytes": sum((STATIC / name).stat().st_size for name in FILES.values()), "ms": {}}
    driver = browser()
    try:
        with serving(open_session()) as address:
            for name, click in CLICKS.items():
                result["ms"][name] = median(measure(driver, address, *click, given.repeats))
    finally:
        driver.quit()
    if given.json:
        print(json.dumps(result, indent=2))
        return
    print(f"the page: {result['page_bytes'] / 1000:.0f} kB")
    for name, milliseconds in result["ms"].items():
        print(f"{name}: {milliseconds:.0f} ms")


if __name__ == "__main__":
    main()
