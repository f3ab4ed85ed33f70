"""The exported file in a real browser: every view without a server."""

from browsing import Page

from mini_bert.explorer.export import export_page
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.queries import Query


def test_it_works_without_a_server(driver, finished_run, tmp_path):
    session = open_session(run=finished_run)
    query = Query("the cat sat on a mat.", (2,))
    file = tmp_path / "views of one sentence.html"
    done = export_page(session, query, file)
    assert done["bytes"] == file.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    page = Page(driver, file.as_uri())
    page.driver.get("about:blank")
    page.check_quiet()
    page.width(1300)
    page.open("forward", text=query.text, mask=2)
    assert page.script("return document.styleSheets.length") == 7
    page.open("forward", text=query.text, mask=2, step="Q_1")
    page.map("forward-Q_1").click()              # the nearest cell whose sum is in the file
    assert page.until(lambda: page.find("#forward-Q_1 .expression").text).startswith("Q_1[0,2,")
    page.open("attention", text=query.text, mask=2)
    assert page.number("#pair-score")
    page.open("backward", text=query.text, mask=2)
    page.map("backward-dlogits").click()
    assert page.find("#backward-dlogits .good").text == "They agree."
    page.open("step", text=query.text, mask=2)
    page.find(".embedded-step").click()
    assert page.number("#loss-after") != page.number("#loss-before")
    page.open("change", text=query.text, mask=2)
    page.find("[data-switch='1.1']").click()
    page.until(lambda: page.number("#loss-after") != page.number("#loss-before"))
    page.open("compare", text=query.text, mask=2)
    assert len(page.all(".side-box")) == 2
    page.open("layers", text=query.text, mask=2)
    page.open("training", text=query.text, mask=2)
    page.until(lambda: page.all(".training .head canvas"))
    driver.get(f"{page.address}#/forward?text=a+cat")
    assert "one sentence" in page.find("#sentence .refused").text
    page.check_quiet(schemes=("file",), hosts=(None, ""))
