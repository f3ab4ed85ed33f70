"""Answers that look at all layers: attention of every head, the logit lens, similarity of layers, saliency."""

from typing import Any

from ..analysis.attention.heads import explore_attention_heads
from ..analysis.explorer import compare_layer_representations
from ..analysis.passes.logit_lens import logit_lens
from ..analysis.passes.saliency import gradient_times_input, integrated_gradients
from ..core.cache import of_every_layer
from ..errors import InputError
from .matrices import stacked
from .queries import Parameters, read_query, required, whole_numbers
from .session import Passes, Session


def attention(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The weights of every head (L, A, T, T), and what kind of head each is."""
    passes = session.passes(read_query(parameters))
    layers = of_every_layer(passes.forward.arrays, "attention_weights", session.model.config.num_layers)
    heads = explore_attention_heads(session.model, session.tokenizer, passes.query.text, mask=passes.query.mask,
                                    pair=passes.query.pair).heads \
        if len(passes.sentence.ids) > 2 else []
    return {"tokens": passes.sentence.tokens, "masks": passes.masks, "weights": stacked(layers),
            "heads": [head.to_dict() for head in heads]}


def layers(session: Session, parameters: Parameters) -> dict[str, Any]:
    """What each layer would predict, and how alike the layers are."""
    passes = session.passes(read_query(parameters))
    answer: dict[str, Any] = {}
    if session.model.modules.predicts_words:
        answer["lens"] = _lens(passes)
    try:
        found = compare_layer_representations(session.model, session.tokenizer, passes.query.text,
                                              mask=passes.query.mask, pair=passes.query.pair)
    except InputError as error:
        return answer | {"similarity_note": str(error)}
    return answer | {"similarity": found.similarity.tolist(), "similarity_names": found.names,
                     "cosine": found.cosine.tolist(), "cosine_tokens": found.tokens}


def _lens(passes: Passes) -> dict[str, Any]:
    lens = logit_lens(passes.model, passes.sentence.ids, types=passes.sentence.types)
    wanted = [passes.targets.get(row, int(number)) for row, number in enumerate(passes.sentence.ids)]
    chances, ranks = lens.target(wanted)
    return {**lens.to_dict(passes.tokenizer, 5), "target": {
        str(row): {"probability": chances[:, row].tolist(), "rank": ranks[:, row].tolist()} for row in passes.targets}}


def saliency(session: Session, parameters: Parameters) -> dict[str, Any]:
    """Which tokens the prediction at a position rests on; it takes some twenty passes."""
    passes = session.passes(read_query(parameters))
    (position,) = whole_numbers(required(parameters, "position"), "position")[:1]
    row = position - passes.ahead
    if row not in passes.targets:
        raise InputError(f"Position {position} has no target: mask it first.")
    target, ids, types = passes.targets[row], passes.sentence.ids, passes.sentence.types
    methods = [integrated_gradients(passes.model, ids, row, target, types=types,
                                    baseline=passes.tokenizer.vocabulary.roles.get("mask")),
               gradient_times_input(passes.model, ids, row, target, types=types)]
    return {"position": position, "target": passes.tokenizer.vocabulary[target],
            "methods": [method.to_dict() for method in methods]}
