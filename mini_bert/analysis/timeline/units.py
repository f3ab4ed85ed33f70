"""The entry of dead units, on plain text."""

from ...core.model import MiniBERT
from ...core.registry import register
from ...text.tokenizer import Tokenizer
from ..dynamics.dead_units import dead_units
from .data import TimelineData
from .entry import TimelineEntry

ALL = "all layers"


def dead(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, float]:
    """The share of feed-forward units that are off at every token, by layer and in all."""
    shares = dead_units(model, data.tokens(model, tokenizer))
    return {ALL: sum(shares) / len(shares), **{f"layer {i}": share for i, share in enumerate(shares)}}


register("timeline", "dead_units")(TimelineEntry("Dead units", dead, ("text",), columns={"dead": ALL}))
