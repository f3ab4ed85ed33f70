"""ModelConfig: the sizes of a model and the words that fill its slots.

The defaults are Mini-BERT itself. Words such as `activation: gelu` are looked up in core/registry.py and never compared
elsewhere.
"""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

from ..errors import ConfigError
from ..settings import Settings
from .registry import find, parse_words

PAD, UNK, CLS, SEP, MASK = range(5)       # the ids of the special tokens, in every vocabulary we make

SLOTS = ("embeddings", "position_embeddings", "attention", "feedforward", "activation", "norm", "block", "stack",
         "mlm_head", "pooler", "sentence_head")           # fields that are words
# sizes, and what no file may ask for: far beyond any BERT, and near enough to fail at once
_LARGEST = {"num_layers": 1000, "num_heads": 10_000, "hidden_size": 100_000, "intermediate_size": 1_000_000,
            "vocab_size": 10_000_000, "max_seq_length": 1_000_000}


@dataclass(frozen=True)
class ModelConfig(Settings):
    TITLE: ClassVar[str] = "The model config"

    # sizes
    num_layers: int = 3                   # L
    num_heads: int = 4                    # A
    hidden_size: int = 192                # H
    intermediate_size: int = 768          # I
    vocab_size: int = 8192                # V
    max_seq_length: int = 64              # T
    embedding_size: int = 0               # E, of the embeddings, if another than H; 0 for H
    token_types: int = 0                  # segments to tell apart, as BERT's sentences A and B; 0 for none
    # slots, and switches of what fills them
    embeddings: str = "sum"
    position_embeddings: str = "learned"
    embedding_layernorm: bool = False
    attention: str = "multi_head"
    attention_bias: bool = False
    score_terms: str = ""                 # joined by +, in order
    feedforward: str = "mlp"
    activation: str = "relu"
    norm: str = "layernorm"
    block: str = "post_ln"
    stack: str = "plain"
    final_layernorm: bool = True
    mlm_head: str = "plain"
    pooler: str = "none"
    sentence_head: str = "none"
    # numbers
    dropout: float = 0.0                  # of embeddings and of each sub-layer's output
    attention_dropout: float = 0.0        # of attention weights
    layernorm_eps: float = 1e-5
    init_std: float = 0.02
    scale_residual_init: bool = False     # W_O and W2 at init_std / sqrt(2 L)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _LARGEST:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
            if getattr(self, name) > _LARGEST[name]:
                raise ConfigError(f"{name} must be at most {_LARGEST[name]:,}, not {getattr(self, name)}.")
        for name, none in (("token_types", "none"), ("embedding_size", "that of the model")):
            if not 0 <= getattr(self, name) <= 100_000:
                raise ConfigError(f"{name} must be 0 ({none}) or more, up to 100,000, not {getattr(self, name)}.")
        if self.hidden_size % self.num_heads:
            raise ConfigError(f"num_heads={self.num_heads} does not divide hidden_size={self.hidden_size}: "
                              f"each head takes hidden_size / num_heads features; "
                              f"try num_heads={_nearest_divisor(self.hidden_size, self.num_heads)}.")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1), not {getattr(self, name)}.")
        for name in ("layernorm_eps", "init_std"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be a positive number, not {getattr(self, name)}.")

    @property
    def embedding_width(self) -> int:     # E
        return self.embedding_size or self.hidden_size

    @property
    def head_size(self) -> int:           # d_k
        return self.hidden_size // self.num_heads

    @property
    def residual_std(self) -> float:
        """The deviation of matrices that end a sub-layer.

        Each of the 2 L sub-layers adds to the residual path; scaling them keeps its sum at one size.
        """
        return self.init_std / sqrt(2 * self.num_layers) if self.scale_residual_init else self.init_std

    def words(self) -> list[tuple[str, str]]:
        """(slot, word) of everything that the registry is asked for."""
        return [*((slot, getattr(self, slot)) for slot in SLOTS),
                *(("score_term", str(word)) for word in parse_words(self.score_terms, "score_terms"))]

    def _check_words(self) -> None:
        from . import modules  # noqa: F401  (they fill the registry, and are built on this class)

        for slot, word in self.words():
            find(slot, word)


def _nearest_divisor(n: int, wish: int) -> int:
    return min((d for d in range(1, n + 1) if n % d == 0), key=lambda d: abs(d - wish))
