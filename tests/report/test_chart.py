"""Line charts and pages: well-formed, self-contained, and true to their data."""

import re
from datetime import datetime
from xml.etree import ElementTree

import pytest

from mini_bert.report.chart import Line, line_chart
from mini_bert.report.page import Opening, State, Step, page, paragraph, section, table, write_page


def drawn(*lines: Line, **options) -> ElementTree.Element:
    return ElementTree.fromstring(line_chart(lines, x_label="tokens", y_label="loss", **options))


def points(svg: ElementTree.Element) -> list[list[tuple[float, float]]]:
    return [[tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
            for line in svg.iter("polyline")]


def test_points_are_placed_in_proportion_to_their_values():
    (line,) = points(drawn(Line("a", [0, 50, 100], [8.0, 6.0, 4.0])))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2)
    assert y0 < y2                                    # a lower loss is drawn lower


def test_levels_bands_and_names_are_drawn():
    svg = drawn(Line("one <&>", [0, 1], [3, 2], low=[2.5, 1.5], high=[3.5, 2.5]), Line("two", [0, 1], [3, 1]),
                levels={"unigram": 2.75})
    assert [item[0].tail for item in svg.iter("li")] == ["one <&>", "two"]
    assert "unigram 2.75" in [text.text for text in svg.iter("text")]
    assert len(list(svg.iter("polygon"))) == 1
    dashes = [line.get("stroke-dasharray") for line in svg.iter("polyline")]
    assert len(set(dashes)) == 2                      # lines differ without colour


@pytest.mark.parametrize("value", [1e-3, 1.0, 3e4, -0.2])
def test_a_level_curve_has_an_axis_of_its_own_size(value):
    ticks = [float(text.text.replace(",", "")) for text in drawn(Line("a", [0, 1], [value, value])).iter("text")
             if text.get("text-anchor") == "end"]
    assert min(ticks) <= value <= max(ticks)
    assert max(map(abs, ticks)) < 3 * abs(value)


@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([1, 2], [3, 3]), ([0, 1], [float("nan"), 2.0]),
                                      ([0, 1e9], [1e-7, 2e-7]), ([0, 1], [1e30, 1e30]),
                                      ([0, 1], [1.0, 1 + 1e-15])])
def test_extreme_numbers_make_a_valid_chart(x, y):
    assert drawn(Line("a", x, y)) is not None


def test_a_page_is_one_file_that_loads_nothing_else(tmp_path):
    opening = Opening("all <well>", State.GOOD, "mini-bert fit <x>", datetime(2026, 3, 1, 9, 5), [Step("go", "a & b")])
    html = page("A & B", section("<one>", paragraph("x < y"), table(["n"], [["1"]], numbers=(0,))),
                line_chart([Line("a", [0, 1], [1, 2])], x_label="x", y_label="y"), opening=opening)
    places = [html.index(part) for part in ("<h1>A &amp; B", "all &lt;well&gt;", "mini-bert fit &lt;x&gt;",
                                            "1 March 2026, 09:05", "go: <code>a &amp; b", "&lt;one&gt;")]
    assert places == sorted(places)                           # the verdict first
    assert write_page(tmp_path / "deep" / "page.html", html).read_text("utf-8") == html
    assert "&lt;one&gt;" in html
    assert "x &lt; y" in html
    assert not re.search(r'(src|href)\s*=|@import|url\(|https?://', html)
