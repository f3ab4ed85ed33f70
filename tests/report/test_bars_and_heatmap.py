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


def test_nothing_is_written_over_the_lines_of_a_chart():
    lines = [Line("one", [0, 1], [0, 1]), Line("two", [0, 1], [1, 0])]
    root = ElementTree.fromstring(line_chart(lines, x_label="x", y_label="y", levels={"a": 0.5, "b": 0.52, "c": 9.0}))
    (drawing,) = (part for part in root.iter("svg") if part.get("class") == "chart lines")
    assert [item[0].tail for item in root.iter("li")] == ["one", "two"]           # the legend is before the drawing
    places = [tuple(map(float, point.split(","))) for line in drawing.iter("polyline")
              for point in line.get("points").split()]
    right = max(x for x, _ in places)
    labels = {text.text: text for text in drawing.iter("text")}
    assert all(float(labels[name].get("x")) > right for name in ("a 0.50", "b 0.52"))
    assert abs(float(labels["a 0.50"].get("y")) - float(labels["b 0.52"].get("y"))) >= 19        # not over each other
    assert "c 9.00" not in labels                             # far away, it would flatten the lines
    assert "Beyond this scale: c 9.00." in [part.text for part in root.iter("figcaption")]
