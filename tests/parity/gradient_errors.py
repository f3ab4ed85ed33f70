"""How far a model's gradients are from those of transformers, as a share of their size.

The error of a parameter is max |ours - theirs| / max |exact|, where exact is the gradient in float64. A gradient that
is zero in exact arithmetic, as that of a key's bias, which moves no softmax, is what rounding leaves of it on either
side: it is compared with the largest gradient of the model.

In float32 both sides differ from the exact gradient by about as much, and most where attention is sure of one key: the
backward of its softmax, p (dp - sum(p dp)), is then a small difference of large numbers.
"""

from collections.abc import Mapping

import numpy as np

_ZERO = 1e-9                  # of the largest gradient: float64 leaves less of a gradient that is zero


def worst_gradient(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray],
                   exact: Mapping[str, np.ndarray]) -> tuple[float, str]:
    """The largest error of a parameter's gradient, and the parameter's name."""
    assert set(ours) == set(theirs) == set(exact)
    sizes = {name: float(np.abs(gradient).max()) for name, gradient in exact.items()}
    largest = max(sizes.values())
    assert largest > 0
    return max((float(np.abs(ours[name] - theirs[name]).max()) / (size if size > _ZERO * largest else largest), name)
               for name, size in sizes.items())
