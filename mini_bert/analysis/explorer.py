"""MathematicalExplorer: the analyses of one text, for a model and its tokenizer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from ..core.model import MiniBERT
from ..errors import InputError
from ..evaluation.probabilities import Floats
from ..evaluation.representations import geometry
from ..evaluation.result import Result
from ..inference.inputs import require_vocabulary
from ..text.tokenizer import Tokenizer
from .attention.heads import explore_attention_heads
from .dynamics.gradient_flow import analyze_gradient_flow
from .passes.backward_steps import step_through_backward_pass
from .passes.forward_steps import step_through_forward_pass
from .passes.logit_lens import lens_of_text
from .passes.saliency import explain_prediction
from .passes.sequences import masks_in, read_sentence

_FEWEST = 4                   # tokens needed to compare layers


@dataclass(frozen=True, eq=False)
class LayerComparison(Result):
    """The representations of a text's tokens from layer to layer, without [CLS] and [SEP]."""

    names: list[str]                      # embeddings, hidden_0, ..., and final_hidden if there is a final LayerNorm
    tokens: list[str]
    similarity: Floats                    # debiased linear CKA of each pair of layers; imprecise for few tokens
    cosine: Floats                        # (layers - 1, tokens): between a token's vectors in consecutive layers
    geometry: dict[str, geometry.RepresentationGeometry]


def compare_layer_representations(model: MiniBERT, tokenizer: Tokenizer, text: str, *,
                                  mask: Sequence[int] = (), pair: str = "") -> LayerComparison:
    """Compare the layers of a model on one text; the tokens at the positions `mask` are replaced by [MASK]."""
    sentence = read_sentence(model, tokenizer, text, mask=mask, pair=pair)
    words = tokenizer.vocabulary.ordinary[sentence.ids]
    words[masks_in(sentence.ids, tokenizer)] = True
    if words.sum() < _FEWEST:
        raise InputError(f"The text has {words.sum()} tokens; comparing layers needs at least {_FEWEST}.")
    _, cache = model.encode(sentence.ids[None], forward_only=True,
                            token_types=None if sentence.types is None else sentence.types[None])
    states = {name: state[0][words] for name, state in geometry.layer_states(cache).items()}
    units = [geometry.unit_rows(state.astype(np.float64)) for state in states.values()]
    cosine = np.stack([np.einsum("th,th->t", a, b) for a, b in pairwise(units)])
    tokens = [sentence.tokens[i] for i in np.flatnonzero(words)]
    return LayerComparison(list(states), tokens, geometry.compute_layer_similarity(list(states.values())), cosine,
                           {name: geometry.compute_representation_geometry(state) for name, state in states.items()})


P = ParamSpec("P")
R = TypeVar("R")


def _method(function: Callable[Concatenate[MiniBERT, Tokenizer, P], R]) \
        -> Callable[Concatenate["MathematicalExplorer", P], R]:
    """The function as a method, without its arguments `model` and `tokenizer`."""
    @wraps(function)
    def method(explorer: "MathematicalExplorer", /, *arguments: P.args, **options: P.kwargs) -> R:
        return function(explorer.model, explorer.tokenizer, *arguments, **options)

    explorer, _, *others = signature(function).parameters.values()
    method.__signature__ = signature(function).replace(             # type: ignore[attr-defined]
        parameters=[explorer.replace(name="self", annotation=explorer.empty), *others])
    return method


class MathematicalExplorer:
    """Analyses of a text: each method is the function of the same name, for this model and tokenizer."""

    def __init__(self, model: MiniBERT, tokenizer: Tokenizer):
        require_vocabulary(model, tokenizer)
        self.model, self.tokenizer = model, tokenizer

    explore_attention_heads = _method(explore_attention_heads)
    step_through_forward_pass = _method(step_through_forward_pass)
    step_through_backward_pass = _method(step_through_backward_pass)
    analyze_gradient_flow = _method(analyze_gradient_flow)
    compare_layer_representations = _method(compare_layer_representations)
    logit_lens = _method(lens_of_text)
    explain_prediction = _method(explain_prediction)
