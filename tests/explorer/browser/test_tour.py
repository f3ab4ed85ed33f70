"""The guided tour, live training, and the page inside a notebook, in a real browser."""

from html import unescape

from browsing import TEXT, Page

import mini_bert


def test_the_tour_leads_through_the_views_and_ends(page):
    page.open("step")
    page.find("#tour-button").click()
    page.script("document.getElementById('tour-play').click()")      # pause: a slow machine would be left behind
    seen = []
    for _ in range(8):
        page.settle()
        page.until(lambda: page.all(".toured"))
        seen.append((page.script("return location.hash.split('?')[0]"), page.find("#tour p").text))
        if page.all("#tour-next"):
            page.find("#tour-next").click()
    assert [view.removeprefix("#/") for view, _ in seen] == [
        "forward", "forward", "forward", "attention", "backward", "step", "change", "layers"]
    assert len({text for _, text in seen}) == 8
    assert sum(len(text.split()) for _, text in seen) < 300          # a minute or two of reading
    page.find("#tour-end").click()
    assert page.find("#tour").get_attribute("hidden") is not None
    assert page.all(".toured") == []


def test_training_without_a_run_trains_on_the_sentence_and_puts_the_model_back(page, shown):
    before = shown.model.params.flat.copy()
    page.open("training")
    assert len(page.all(".chart")) == 2                   # there is something to see before anything is done
    page.until(lambda: len(page.all(".view .head canvas")) == 12)
    page.find("#live-start").click()
    page.until(lambda: page.find("#live-status").text.startswith("3 steps"))
    page.find("#live-start").click()                      # stop
    page.until(lambda: page.find("#live-start").text == "Train on this sentence")
    assert shown.taken >= 3
    page.find("#live-reset").click()
    page.until(lambda: "before any step" in page.find("#live-status").text)
    assert shown.taken == 0
    assert shown.model.params.flat.tobytes() == before.tobytes()


def test_a_cell_of_a_notebook_shows_the_views(driver, tmp_path):
    view = mini_bert.explore(TEXT, mask=[6])
    frame = view._repr_html_()
    assert 'sandbox="allow-scripts"' in frame
    assert unescape(frame.split('srcdoc="', 1)[1].split('"', 1)[0]) == view.html
    assert len(frame) < 5_000_000
    cell = tmp_path / "cell.html"
    cell.write_text(f"<!doctype html><meta charset='utf-8'><body><h1>A notebook</h1>{frame}</body>", "utf-8")
    page = Page(driver, cell.as_uri())
    driver.get("about:blank")
    page.check_quiet()
    page.width(1300)
    driver.get(page.address)
    driver.switch_to.frame(driver.find_element("tag name", "iframe"))
    try:
        page.find(".view-forward .card")
        page.script("document.querySelectorAll('#views a')[1].click()")
        page.find(".view-attention .head canvas")
        page.script("document.querySelectorAll('#views a')[0].click()")
        page.find("#map-layer-1-attention").click()
        page.until(lambda: page.find(".group h2").text == "Layer 1: attention")
    finally:
        driver.switch_to.default_content()
    assert driver.current_url == page.address
    page.check_quiet(schemes=("file",), hosts=(None, ""))
    view.save(tmp_path / "view.html")
    assert (tmp_path / "view.html").read_text("utf-8") == view.html
