"""What a model knows at each snapshot of its run: the entries (a file for each kind), their data, and the record.

Here belongs what is followed over a run. How a figure is measured belongs to `evaluation`, or elsewhere in `analysis`.
"""

from . import losses, grammar, syntax, units  # noqa: F401, I001  (they fill the registry, in the order of the panels)
