"""MathematicalExplorer: the analyses of one text, for a model and its tokenizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.model import MiniBERT
from ..errors import InputError
from ..evaluation.probabilities import Floats
from ..evaluation.representations.geometry import (
    RepresentationGeometry,
    compute_layer_similarity,
    compute_representation_geometry,
    layer_states,
    unit_rows,
)
from ..inference.inputs import require_vocabulary
from ..text.wordpiece.tokenizer import WordPieceTokenizer
from .attention.heads import HeadReport, explore_attention_heads
from .dynamics.gradient_flow import GradientFlow, analyze_gradient_flow
from .passes.backward_steps import BackwardPass, step_through_backward_pass
from .passes.forward_steps import ForwardPass, step_through_forward_pass
from .passes.logit_lens import LogitLens, lens_of_text
from .passes.saliency import Saliency, explain_prediction
from .passes.sequences import read_sentence

_FEWEST = 4                   # tokens needed to compare layers


@dataclass(frozen=True, eq=False)
class LayerComparison:
    """The representations of a text's tokens from layer to layer, without [CLS] and [SEP]."""

    names: list[str]                      # embeddings, hidden_0, ..., and final_hidden if there is a final LayerNorm
    tokens: list[str]
    similarity: Floats                    # debiased linear CKA of each pair of layers; imprecise for few tokens
    cosine: Floats                        # (layers - 1, tokens): between a token's vectors in consecutive layers
    geometry: dict[str, RepresentationGeometry]

    def to_dict(self) -> dict[str, Any]:
        return {"names": self.names, "tokens": self.tokens, "similarity": self.similarity.tolist(),
                "cosine": self.cosine.tolist(),
                "geometry": {name: figures.to_dict() for name, figures in self.geometry.items()}}


def compare_layer_representations(model: MiniBERT, tokenizer: WordPieceTokenizer, text: str, *,
                                  mask: Sequence[int] = ()) -> LayerComparison:
    """Compare the layers of a model on one text; the tokens at the positions `mask` are replaced by [MASK]."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    words = tokenizer.vocabulary.ordinary[sentence.ids] | (sentence.ids == tokenizer.vocabulary.mask)
    if words.sum() < _FEWEST:
        raise InputError(f"The text has {words.sum()} tokens; comparing layers needs at least {_FEWEST}.")
    _, cache = model.encode(sentence.ids[None], forward_only=True)
    states = {name: state[0][words] for name, state in layer_states(cache).items()}
    units = [unit_rows(state.astype(np.float64)) for state in states.values()]
    cosine = np.stack([np.einsum("th,th->t", a, b) for a, b in pairwise(units)])
    tokens = [sentence.tokens[i] for i in np.flatnonzero(words)]
    return LayerComparison(list(states), tokens, compute_layer_similarity(list(states.values())), cosine,
                           {name: compute_representation_geometry(state) for name, state in states.items()})


class MathematicalExplorer:
    """Analyses of a text: each method is the function of the same name, for this model and tokenizer."""

    def __init__(self, model: MiniBERT, tokenizer: WordPieceTokenizer):
        require_vocabulary(model, tokenizer)
        self.model, self.tokenizer = model, tokenizer

    def explore_attention_heads(self, text: str | Sequence[str], *, mask: Sequence[int] = ()) -> HeadReport:
        """What each attention head attends to: statistics, a type, and for a single text the weights."""
        return explore_attention_heads(self.model, self.tokenizer, text, mask=mask)

    def step_through_forward_pass(self, text: str, *, mask: Sequence[int] = ()) -> ForwardPass:
        """Every step from tokens to logits, with formulas and numbers."""
        return step_through_forward_pass(self.model, self.tokenizer, text, mask=mask)

    def step_through_backward_pass(self, text: str, *, mask: Sequence[int] = (),
                                   targets: Mapping[int, str | int] | None = None, seed: int = 0) -> BackwardPass:
        """Every gradient from the loss to the embeddings, with formulas and numbers."""
        return step_through_backward_pass(self.model, self.tokenizer, text, mask=mask, targets=targets, seed=seed)

    def analyze_gradient_flow(self, text: str, *, mask: Sequence[int] = (),
                              targets: Mapping[int, str | int] | None = None, seed: int = 0) -> GradientFlow:
        """The gradient by layer and component; without masks, words are masked by the seed."""
        return analyze_gradient_flow(self.model, self.tokenizer, text, mask=mask, targets=targets, seed=seed)

    def compare_layer_representations(self, text: str, *, mask: Sequence[int] = ()) -> LayerComparison:
        """How representations change from layer to layer."""
        return compare_layer_representations(self.model, self.tokenizer, text, mask=mask)

    def logit_lens(self, text: str, *, mask: Sequence[int] = (), positions: Sequence[int] | None = None) -> LogitLens:
        """What the model would predict from each layer."""
        return lens_of_text(self.model, self.tokenizer, text, mask=mask, positions=positions)

    def explain_prediction(self, text: str, position: int, target: str | int, *, against: str | int | None = None,
                           method: str = "integrated gradients", mask: Sequence[int] = ()) -> Saliency:
        """Which tokens a prediction depends on."""
        return explain_prediction(self.model, self.tokenizer, text, position, target, against=against, method=method,
                                  mask=mask)
