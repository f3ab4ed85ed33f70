"""The lines on the page of a run."""

import numpy as np
import pytest

from mini_bert.report.run_page import _POINTS, _line


@pytest.mark.parametrize("points", [1, 2, _POINTS, _POINTS + 1, 1999])
def test_a_thinned_line_keeps_its_ends(points):
    x = np.arange(points)
    line = _line("loss", x, 2.0 * x)
    assert len(line.x) <= _POINTS + 1
    assert (line.x[0], line.y[0]) == (0, 0)
    assert (line.x[-1], line.y[-1]) == (points - 1, 2 * (points - 1))
