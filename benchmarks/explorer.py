"""How long the explorer's page takes to answer a click, in a real browser, and how large the page is.

    python benchmarks/explorer.py [--repeats 9] [--json]

Mini-BERT with a sentence of 32 tokens; a time runs from the click to the change of the page, the median over repeats.
Fails if a time is above 150 ms, or if the page is larger than 300 kB.
Needs chromium with chromedriver, and selenium: pip install -e '.[explorer,browser]'.
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

from selenium.webdriver import Chrome

from mini_bert.explorer.assets import FILES
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.server import serving

# the browser is started as in the tests
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "explorer" / "browser"))
from chromium import open_view, start_chromium

MOST_MS = 150
MOST_BYTES = 300_000
TEXT = ("The old man walked slowly along the river every morning because he wanted to see the birds, and his dog "
        "always ran before him through the high grass.")
# what is clicked: view, its state, the element, and where the answer appears; {n}, {l} and {a} change each time
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
    "a head switched off": ("change", {}, "[data-switch='{l}.{a}']", "#outcome"),
    "a block of the map": ("forward", {}, "#map-{block}", ".view-forward, #view"),
    "a step of AdamW": ("step", {}, "#take-step", ".view-step [aria-live]"),
    "undo": ("step", {}, "#undo", ".view-step [aria-live]"),
}
# resolves with the milliseconds until the answer's text has changed and is no longer the placeholder …
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


def measure(driver: Chrome, address: str, view: str, state: dict[str, str], element: str, answer: str,
            repeats: int) -> list[float]:
    open_view(driver, address, view, {"text": TEXT, "mask": 5, **state})
    first = element.format(n=7, l=0, a=0)
    while not driver.execute_script("return document.querySelector(arguments[0]) !== null", first):
        sleep(0.05)                                       # a heat map is drawn when it scrolls into view
    sleep(2)                                              # for what the page loads in advance
    times = []
    for n in range(repeats):
        if element == "#undo":
            driver.execute_async_script(MEASURE, "#take-step", answer, n)
        times.append(driver.execute_async_script(MEASURE, element.format(n=7 + n, l=n % 3, a=n // 3 % 4), answer, n))
        sleep(0.3)
    return times


def faults(result: dict[str, Any]) -> list[str]:
    """One sentence for each value above its limit."""
    found = [f"{name} takes {milliseconds:.0f} ms; at most {MOST_MS} ms are allowed."
             for name, milliseconds in result["ms"].items() if milliseconds > MOST_MS]
    if result["page_bytes"] > MOST_BYTES:
        found.append(f"The page has {result['page_bytes']:,} bytes; at most {MOST_BYTES:,} are allowed.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    result: dict[str, Any] = {"page_bytes": sum(path.stat().st_size for path in FILES.values()), "ms": {}}
    driver = start_chromium("--force-prefers-reduced-motion")
    driver.set_script_timeout(30)
    try:
        with serving(open_session()) as address:
            for name, click in CLICKS.items():
                result["ms"][name] = median(measure(driver, address, *click, given.repeats))
    finally:
        driver.quit()
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"the page: {result['page_bytes'] / 1000:.0f} kB")
        for name, milliseconds in result["ms"].items():
            print(f"{name}: {milliseconds:.0f} ms")
    if found := faults(result):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
