"""The picture of a timeline: what is drawn is read back from the figure."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the extra viz")

from mini_bert import plots


def line(name, values, **levels):
    return {"name": name, "values": values, "low": [None] * len(values), "high": [None] * len(values), "levels": levels}


def panel(name, *lines, apart=False, unit="share"):
    return {"name": name, "title": name, "unit": unit, "apart": apart, "columns": {}, "lines": list(lines)}


TIMELINE = {"tokens": [0, 1000, 10_000, 1_000_000], "panels": [
    panel("loss", line("held-out", [9.0, 7.5, None, 4.0], uniform=9.5), unit="number"),
    panel("agreement", line("0 attractors", [0.5, 0.6, 0.8, 0.9], chance=0.5, bigram=0.8),
          line("1 attractor", [0.5, 0.4, 0.3, 0.2], chance=0.5, bigram=0.3)),
    panel("relations", *(line(f"relation {i}", [0.1, 0.2, 0.3, 0.4], place=0.3) for i in range(12)), apart=True)]}


def drawn(axes):
    """The lines with points; levels have none."""
    return [found for found in axes.lines if found.get_marker() == "o"]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_each_panel_has_its_lines_on_one_axis_of_tokens():
    figure = plots.plot_timeline(TIMELINE)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == 2 + 12                   # small multiples, one for each relation
    assert {axes.get_xscale() for axes in shown} == {"log"}
    assert len({axes.get_xlim() for axes in shown}) == 1
    loss, agreement, *relations = shown
    (held_out,) = drawn(loss)
    assert list(held_out.get_xdata()) == [500, 1000, 10_000, 1_000_000]       # nothing seen: before the first
    np.testing.assert_array_equal(held_out.get_ydata(), [9.0, 7.5, np.nan, 4.0])
    assert [list(found.get_ydata()) for found in drawn(agreement)] == [[50, 60, 80, 90], [50, 40, 30, 20]]
    assert [axes.get_title(loc="left") for axes in relations] == [f"relation {i}" for i in range(12)]
    assert len({axes.get_ylim() for axes in relations}) == 1


def test_levels_are_drawn_and_named_and_lines_are_labelled_at_their_ends():
    figure = plots.plot_timeline(TIMELINE)
    loss, agreement, *_ = (axes for axes in figure.axes if axes.get_visible())
    assert texts(loss) == ["uniform"]
    assert texts(agreement) == ["chance", "1 attractor", "0 attractors"]
    assert agreement.get_title(loc="left") == "agreement (%)   dashed: bigram"        # one for each line
    levels = sorted(found.get_ydata()[0] for found in agreement.lines if found.get_marker() != "o")
    assert levels == [30, 50, 80]
    assert "dotted: place" in [part.get_suptitle() for part in figure.subfigs][-1]


def test_labels_at_the_same_height_do_not_overlap():
    lines = [line(f"layer {i}", [0.0, 0.0]) for i in range(6)]
    figure = plots.plot_timeline({"tokens": [1, 2], "panels": [panel("dead", *lines)]})
    heights = sorted(text.xy[1] for text in figure.axes[0].texts)
    assert min(np.diff(heights)) > 0.09
    assert heights[-1] <= 1
    assert figure.axes[0].get_ylim()[1] >= 1      # noughts do not fill the panel


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.plot_timeline({"tokens": [1], "panels": [panel("loss")]})
