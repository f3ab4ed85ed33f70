"""The parts of a model that training treats apart: embeddings, each layer, and what stands on them."""

from ..core.model import MiniBERT
from ..errors import ConfigError


def parts_of(model: MiniBERT) -> dict[str, str]:
    """The part of each parameter: embeddings, layer_0, layer_1, ..., head."""
    found = dict.fromkeys(model.params, "head")
    found |= {spec.name: "embeddings" for spec in model.parts.embed.layout()}
    for i, layer in enumerate(model.parts.layers):
        found |= {spec.name: f"layer_{i}" for spec in layer.layout()}
    return {name: found[name] for name in model.params}


def rate_factors(model: MiniBERT, layer_decay: float = 1.0, freeze: str = "") -> dict[str, float]:
    """The factor of the learning rate for each parameter: less for each layer further down, 0 for what is frozen."""
    parts, L = parts_of(model), len(model.parts.layers)
    depth = {"head": 0, "embeddings": L + 1, **{f"layer_{i}": L - i for i in range(L)}}
    factors = {name: layer_decay ** depth[part] for name, part in parts.items()}
    for word in freeze.replace(",", " ").split():
        chosen = [name for name, part in parts.items() if word in (name, part)]
        if not chosen:
            raise ConfigError(f"freeze: there is no part or parameter {word!r}; the parts are {', '.join(depth)}.")
        factors |= dict.fromkeys(chosen, 0.0)
    return factors
