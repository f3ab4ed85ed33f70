"""The colours and dashes of all charts, in figures (`plots`) and on HTML pages (`report`).

The colours are Okabe and Ito's, which remain distinct for colour-blind readers. Each colour has its own dash pattern,
so that lines also differ in greyscale.
"""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
# lengths of strokes and gaps in line widths; the first line is solid
DASHES: tuple[tuple[int, ...], ...] = ((), (6, 2), (2, 2), (6, 2, 2, 2), (4, 4), (1, 3), (10, 3))
