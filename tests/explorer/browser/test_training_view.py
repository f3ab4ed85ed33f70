"""Training in a real browser: the checkpoints of a run, and a run that goes on."""

import json
import shutil

import pytest
from browsing import Keys, Page

from mini_bert.analysis.passes.logit_lens import lens_of_text
from mini_bert.core.model import MiniBERT
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.server import serving

TEXT = "the cat sat on a mat."


def test_the_slider_goes_through_the_checkpoints(driver, finished_run, tokenizer):
    with serving(open_session(run=finished_run)) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("training", text=TEXT, mask=2)
        slider = page.find("#checkpoint")
        seen = []
        slider.send_keys(Keys.HOME)
        for name in ("step-0", "step-4", "step-8"):
            page.until(lambda name=name: page.find("#checkpoint-name").text.startswith(f"{name} "))
            found = MiniBERT.load(finished_run / "checkpoints" / name)
            best = lens_of_text(found, tokenizer, TEXT, mask=[2]).top(tokenizer)[-1][0][0]
            page.until(lambda best=best: page.number(".training .prediction .number") ==
                       pytest.approx(best.probability, rel=1e-4))
            seen.append(page.number(".training .prediction .number"))
            assert len(page.all(".training .head canvas")) == 4
            slider.send_keys(Keys.ARROW_RIGHT)
        assert len(set(seen)) == 3
        assert len(page.all(".chart .line")) >= 2
        assert "checkpoint=" in driver.current_url
        page.check_quiet()


def test_a_run_that_goes_on_is_followed_though_it_removes_old_checkpoints(driver, finished_run, tmp_path):
    """As many checkpoints as before, but others: the page is at the newest one again."""
    going = tmp_path / "run"
    shutil.copytree(finished_run, going)
    lines = (going / "log.jsonl").read_text().splitlines(True)
    (going / "log.jsonl").write_text("".join(line for line in lines if json.loads(line).get("step", 0) < 12))
    for name in ("best", "final"):
        shutil.rmtree(going / name)
    newest = going / "checkpoints" / "step-12"
    kept = newest.rename(tmp_path / "step-12")
    with serving(open_session(run=going)) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("training", text=TEXT, mask=2)
        page.until(lambda: page.find("#checkpoint-name").text.startswith("step-8 "))
        kept.rename(newest)
        shutil.rmtree(going / "checkpoints" / "step-0")
        page.script("document.dispatchEvent(new Event('visibilitychange'))")          # the page looks again
        page.until(lambda: page.find("#checkpoint-name").text.startswith("step-12 "))
        page.check_quiet()
