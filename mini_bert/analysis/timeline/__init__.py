"""What a model knows at each snapshot of its run: the entries (a file for each kind), their data, and the record.

This folder is for figures that are followed over a run. How a figure is measured belongs in `evaluation`, or elsewhere
in `analysis`.
"""

from . import losses, grammar, syntax, units  # noqa: F401, I001  (they fill the registry, in the order of the panels)
