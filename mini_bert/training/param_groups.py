"""Groups of parameters that training treats apart: embeddings, each layer, and the heads on top."""

from ..core.params import Parameters
from ..errors import ConfigError


def groups_of(params: Parameters) -> dict[str, str]:
    """The group of each parameter: embeddings, layer_0, layer_1, ..., head."""
    return {name: spec.group for name, spec in params.specs.items()}


def rate_factors(params: Parameters, layer_decay: float = 1.0, freeze: str = "") -> dict[str, float]:
    """The factor of the learning rate for each parameter: less for each layer further down, 0 for what is frozen."""
    groups = groups_of(params)
    layers: dict[str, int] = {}                   # of each model, by its prefix
    for spec in params.specs.values():
        layers[spec.prefix] = max(layers.get(spec.prefix, 0), 0 if spec.layer is None else spec.layer + 1)
    depth = {spec.group: layers[spec.prefix] - spec.layer if spec.layer is not None
             else layers[spec.prefix] + 1 if spec.component == "embeddings" else 0 for spec in params.specs.values()}
    factors = {name: layer_decay ** depth[group] for name, group in groups.items()}
    for word in freeze.replace(",", " ").split():
        chosen = [name for name, group in groups.items() if word in (name, group)]
        if not chosen:
            raise ConfigError(f"freeze: there is no group or parameter {word!r}; the groups are {', '.join(depth)}.")
        factors |= dict.fromkeys(chosen, 0.0)
    return factors
