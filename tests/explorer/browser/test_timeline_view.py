"""The timeline in a real browser: panels with a cursor at the chosen checkpoint, and what stands there without one."""

import shutil

from browsing import Keys, Page

from mini_bert.analysis.timeline.record import Line, Panel, Timeline
from mini_bert.explorer import run_answers
from mini_bert.explorer.export import export_page
from mini_bert.explorer.opening import open_session, opening_query
from mini_bert.explorer.server import serving

TEXT = "the cat sat on a mat."
NONE = [None] * 4


def line(name: str, values: list[float | None], **levels: float) -> Line:
    return Line(name, values, NONE, NONE, levels)


MADE = Timeline("run", 9, [0, 4, 8, 12], [0, 400, 800, 1200], [
    Panel("loss", "Held-out loss", "number", False, {}, [line("held-out", [6.5, 5.25, 4.5, 4.125], uniform=7.0)]),
    Panel("agreement", "Agreement of verbs", "share", False, {}, [
        line("0 attractors", [0.5, 0.6, None, 0.9], chance=0.5, bigram=0.8),
        line("1 attractor", [0.5, 0.4, 0.3, 0.2], chance=0.5, bigram=0.3)]),
    Panel("relations", "Heads and relations", "share", True, {}, [
        line(name, [0.1, 0.2, 0.3, 0.4], place=0.3) for name in ("nsubj", "obj", "det")])], {}, 0, ["A note."])


def test_the_cursor_of_every_panel_is_at_the_chosen_checkpoint(driver, finished_run, tmp_path):
    shutil.copytree(finished_run, tmp_path / "run")
    MADE.save(tmp_path / "run")
    with serving(open_session(run=tmp_path / "run")) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("training", text=TEXT, mask=2, checkpoint="step-8")
        assert len(page.all(".timeline .multiple")) == 5
        assert len(page.all(".timeline .line")) == 6
        assert len(page.all(".timeline .now")) == 5
        assert page.find(".timeline .multiple .number").text == "4.5"
        assert "step 8, after 800 tokens. A note." in page.find(".timeline").text
        assert [span.text for span in page.all(".timeline .key span:not(.level-key)")] == \
            ["0 attractors –", "1 attractor 30.0 %"]
        before = page.find(".timeline .now").get_attribute("x1")
        page.find("#checkpoint").send_keys(Keys.ARROW_LEFT)
        page.until(lambda: page.find(".timeline .multiple .number").text == "5.25")
        assert float(page.find(".timeline .now").get_attribute("x1")) < float(before)
        page.find("#checkpoint").send_keys(Keys.HOME)
        page.until(lambda: page.find(".timeline .multiple .number").text == "6.5")
        page.find(".timeline .chart").click()                 # its middle is at 35 tokens: nearest to 400, by a factor
        page.until(lambda: page.find("#checkpoint-name").text.startswith("step-4 "))
        page.check_quiet()


def test_without_a_run_the_shipped_timeline_is_shown_or_a_sentence_says_how_to_make_one(driver, session, tmp_path,
                                                                                       monkeypatch):
    monkeypatch.setattr(run_answers, "shipped_timelines", lambda first: {"mini": tmp_path})
    with serving(session) as address:
        page = Page(driver, address)
        page.width(1300)
        page.open("training", text=TEXT)
        assert "training.snapshots=20" in page.find("main").text
        assert "mini-bert timeline RUN --tasks DIR" in page.find("main").text
        assert page.all(".timeline") == []
        MADE.save(tmp_path)
        page.open("training", text=TEXT)
        assert "When mini learned what" in page.find(".timeline h2").text
        assert "step 12, after 1,200 tokens" in page.find(".timeline").text
        page.script("document.querySelector('.timeline .chart').dispatchEvent(new MouseEvent('click', {clientX: 0}))")
        page.until(lambda: "step 0, after 0 tokens" in page.find(".timeline").text)
        page.check_quiet()


def test_the_exported_file_has_the_timeline(driver, session, tmp_path, monkeypatch):
    monkeypatch.setattr(run_answers, "shipped_timelines", lambda first: {"mini": tmp_path})
    MADE.save(tmp_path)
    export_page(session, opening_query(session, TEXT, "2"), tmp_path / "page.html")
    driver.get("about:blank")
    driver.get(f"{(tmp_path / 'page.html').as_uri()}#/training?text={TEXT}&mask=2".replace(" ", "%20"))
    page = Page(driver, "")
    page.until(lambda: len(page.all(".timeline .multiple")) == 5)
    page.check_quiet(schemes=("file",), hosts=(None, ""))
