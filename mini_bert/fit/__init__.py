"""From text to a model in one call: vocabulary, corpus, training within a budget, evaluation, report.

    OUT/tokenizer      the vocabulary, learned or grown
    OUT/corpus         the text as tokens, a part of it held out
    OUT/run            the training; its best/ is the model
    OUT/fit.json       what was asked for, and what came of it
    OUT/report.html    the same for a person

Each part is whole or absent, so the same call again goes on where the last one was stopped.
"""

from .pipeline import Fitted, Stopped, fit

__all__ = ["Fitted", "Stopped", "fit"]
