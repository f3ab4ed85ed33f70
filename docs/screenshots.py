"""The pictures of the explorer in docs/images: starts it, drives chromium through its views, writes a PNG of each.

    python docs/screenshots.py [--run DIR]

For the picture of the Training view a small run is trained, which takes half a minute; --run names one instead.
Beside the pictures it writes the digest of the page's files, by which a test tells that they show the page as it is.
"""

import argparse
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from time import sleep

from selenium.webdriver import Chrome

from mini_bert import ModelConfig, WordPieceTokenizer
from mini_bert.explorer.assets import digest
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.server import serving
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.pydocs import pydocs
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import start_run

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "explorer" / "browser"))       # what starts the browser for the tests
from chromium import open_view, start_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
DIGEST = IMAGES / "explorer.sha256"
LARGEST = 200_000             # bytes
TEXT = {"text": "They met for the first time in Paris.", "mask": 6}
RUN_TEXT = {"text": "Return the number of items in the list.", "mask": 3}
# name: view, what its address has beside the sentence, width, height, dark, and what to click
PICTURES = {
    "explorer-forward": ("forward", {"step": "scores_0", "cell": "0,6,5"}, 1200, 900, False, None),
    "explorer-attention": ("attention", {"layer": 0, "head": 0, "query": 6, "key": 5}, 1200, 1000, False, None),
    "explorer-backward": ("backward", {"grad": "dscores_0", "entry": "0,6,5"}, 1200, 720, True, None),
    "explorer-layers": ("layers", {}, 1200, 900, False, None),
    "explorer-change": ("change", {"off": "0.1,1.2"}, 1200, 800, False, None),
    "explorer-compare": ("compare", {}, 1200, 1000, False, None),
    "explorer-narrow": ("forward", {}, 400, 800, True, None),
    # the last one, since it changes the model
    "explorer-step": ("step", {"rate": "0.001", "optimiser": "sgd"}, 1200, 850, False, "#take-step"),
}


def small_run(folder: Path) -> Path:
    """A run of a minute on the documentation that is installed with Python, with many checkpoints."""
    text = "\n".join(line for line, _ in zip(pydocs(), range(6000), strict=False))
    (folder / "text.txt").write_text(text, "utf-8")
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 2000))
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", workers=1, longest_document=200)
    model = ModelConfig(num_layers=2, num_heads=4, hidden_size=64, intermediate_size=256, vocab_size=len(tokenizer),
                        max_seq_length=32)
    settings = TrainingConfig(steps=400, batch_size=32, learning_rate=3e-3, warmup_steps=40, log_every=5,
                              eval_every=40, eval_sequences=64, checkpoint_every=20, keep_checkpoints=40,
                              init="local", frequency_bias=True)
    start_run(model, settings, folder / "corpus", folder / "pydocs").train()
    return folder / "pydocs"


def picture(driver: Chrome, address: str, name: str, view: str, state: dict[str, object], width: int, height: int,
            dark: bool, click: str | None) -> None:
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    open_view(driver, address, view, state)
    if click is not None:
        driver.execute_script("document.querySelector(arguments[0]).click()", click)
    quiet(driver)
    png = b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    if len(png) > LARGEST:
        sys.exit(f"{name}.png has {len(png):,} bytes; at most {LARGEST:,} are wanted.")
    (IMAGES / f"{name}.png").write_bytes(png)
    print(f"{name}.png: {len(png):,} bytes")


def quiet(driver: Chrome) -> None:
    """Until nothing has been asked of the server for a second."""
    before = -1
    while (now := driver.execute_script("return performance.getEntriesByType('resource').length")) != before:
        before = now
        sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run for the picture of the Training view")
    chosen = parser.parse_args().run
    IMAGES.mkdir(exist_ok=True)
    driver = start_chromium("--hide-scrollbars", "--force-prefers-reduced-motion")
    try:
        with serving(open_session()) as address:
            for name, (view, state, *rest) in PICTURES.items():
                picture(driver, address, name, view, {**TEXT, **state}, *rest)
        with tempfile.TemporaryDirectory() as folder:
            run = small_run(Path(folder)) if chosen is None else chosen
            with serving(open_session(run=run)) as address:
                picture(driver, address, "explorer-training", "training", RUN_TEXT, 1200, 1000, False, None)
    finally:
        driver.quit()
    DIGEST.write_text(digest() + "\n", "ascii")


if __name__ == "__main__":
    main()
