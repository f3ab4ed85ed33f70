"""No head: an empty slot, with a clear error for whoever asks for its output."""

from typing import Any, NoReturn

from ....errors import InputError
from ...arrays import BoolArray
from ...config import ModelConfig
from ...formulas import Steps
from ...module import Layout, Sizes
from ...registry import register


class NoHead:
    """Has no parameters and no output."""

    def __init__(self, refusal: str):
        self.refusal = refusal

    def layout(self) -> Layout:
        return iter(())

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        raise InputError(self.refusal)

    def forward(self, *_: Any) -> NoReturn:
        raise InputError(self.refusal)

    def backward(self, *_: Any) -> NoReturn:
        raise InputError(self.refusal)

    def steps(self, h: str) -> Steps:
        return iter(())

    def floats(self, sizes: Sizes) -> int:
        return 0


@register("mlm_head", "none")
def no_mlm_head(config: ModelConfig) -> NoHead:
    """An encoder alone, such as Hugging Face's BertModel."""
    return NoHead("This model has no MLM head, so it has no logits; use encode() for hidden states, and "
                  "relate(pool(hidden, mask)[0]) for the scores of a head for pairs of sentences.")


@register("pooler", "none")
def no_pooler(config: ModelConfig) -> NoHead:
    return NoHead("This model has no pooler; take hidden[:, 0], or a mean over the tokens.")
