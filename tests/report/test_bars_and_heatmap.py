"""Bar charts and heat maps: lengths and colours follow the values, and names are escaped."""

from xml.etree import ElementTree

import pytest

from mini_bert.report.bars import Bar, bar_chart
from mini_bert.report.chart import Line, line_chart
from mini_bert.report.heatmap import heat_map


def test_the_length_of_a_bar_is_proportional_to_its_value():
    svg = bar_chart({"a <&>": {"model": Bar(0.5, 0.4, 0.6), "other": Bar(0.25)}}, x_label="right",
                    levels={"chance": 0.5})
    root = ElementTree.fromstring(svg)
    one, two = (float(bar.get("width")) for bar in root.iter("rect") if bar.find("title") is not None)
    assert one == pytest.approx(2 * two, abs=0.2)
    assert len(list(root.iter("path"))) == 1                  # the one interval
    assert {"a <&>", "chance", "50.0", "25.0", "model", "other"} <= {text.text for text in root.iter("text")}


def test_bars_are_clipped_to_the_axis():
    root = ElementTree.fromstring(bar_chart({"a": {"x": Bar(1.5)}, "b": {"x": Bar(-1)}}, x_label=""))
    widths = [float(bar.get("width")) for bar in root.iter("rect") if bar.find("title") is not None]
    assert widths[0] > 400
    assert widths[1] == 0


def test_greater_numbers_have_deeper_colours():
    root = ElementTree.fromstring(heat_map([[0.0, 0.5], [1.0, 2.0]], ["r<", "s"], ["c", "d"], title="t"))
    depths = [float(cell.get("fill-opacity")) for cell in root.iter("rect")]
    assert depths[0] == 0
    assert depths == sorted(depths)
    assert depths[2] == depths[3]                             # above the end of the scale
    assert {"r<", "s", "c", "d", "t", "0.50"} <= {text.text for text in root.iter("text")}


def test_a_legend_above_does_not_cover_the_plot():
    lines = [Line("one", [0, 1], [0, 1]), Line("two", [0, 1], [1, 0])]
    above = ElementTree.fromstring(line_chart(lines, x_label="x", y_label="y", legend_above=True))
    names = {text.text: float(text.get("y")) for text in above.iter("text") if text.text in ("one", "two")}
    top = min(float(point.split(",")[1]) for line in above.iter("polyline") for point in line.get("points").split())
    assert max(names.values()) < top
