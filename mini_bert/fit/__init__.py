"""From text to a model in one call: vocabulary, corpus, training within a budget, evaluation, report.

    OUT/tokenizer      the vocabulary, learned or grown
    OUT/corpus         the text as tokens, part of it held out
    OUT/run            the training run; its best/ is the model
    OUT/fit.json       the arguments and the results
    OUT/report.html    the results as a page

Each stage is complete or absent, so the same call continues where an earlier one stopped. The package can be called
itself: `mini_bert.fit("letters/", "letters.model")` is `mini_bert.fit.fit("letters/", "letters.model")`.
"""

import sys
from inspect import signature
from types import ModuleType

from .pipeline import fit
from .result import FitResult, Stopped

__all__ = ["FitResult", "Stopped", "fit"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(fit)
    __signature__ = signature(fit)


sys.modules[__name__].__class__ = _CallablePackage
