"""How a model compares texts, by what it can do.

    it fills masks              pseudo-log-likelihood: each piece from all others          pseudo_likelihood.py
    it predicts in any order    the same: the piece last in the order, nothing masked      pseudo_likelihood.py
    it is causal                log-likelihood: each piece from those before it            causal_likelihood.py
    it finds replaced tokens    log-odds that each piece is original                       original_tokens.py
"""

from collections.abc import Sequence

from ...core.model import MiniBERT
from ...errors import InputError
from ...text.tokenizer import Tokenizer
from .causal_likelihood import causal_log_likelihoods
from .original_tokens import original_log_odds
from .pseudo_likelihood import Likelihoods, ProgressCallback, pseudo_log_likelihoods


def text_scores(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, variants: Sequence[str] = ("token",),
                threads: int = 0, progress: ProgressCallback | None = None) -> Likelihoods:
    """A score for each text, higher for the more likely one. Variants other than `token` are for models that fill
    masks."""
    modules = model.modules
    if not modules.has_logits:
        raise InputError("This model has no head, so it cannot compare texts; it needs one for words or for replaced "
                         "tokens.")
    if not (modules.causal or modules.finds_replaced):
        return pseudo_log_likelihoods(model, tokenizer, texts, variants=variants, threads=threads, progress=progress)
    if list(variants) != ["token"]:
        raise InputError("Whole words can be masked only if the model fills masks; this one does not.")
    score = original_log_odds if modules.finds_replaced else causal_log_likelihoods
    return score(model, tokenizer, texts, threads=threads, progress=progress)


def way_of_scoring(model: MiniBERT) -> str:
    """What `text_scores` does with this model, in words."""
    modules = model.modules
    if modules.finds_replaced:
        return "log-odds of original tokens"
    if modules.causal:
        return "log-likelihood"
    return "pseudo-log-likelihood by an order" if modules.stack.orders else "pseudo-log-likelihood"
