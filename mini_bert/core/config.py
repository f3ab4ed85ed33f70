"""ModelConfig: the sizes of a model and the words that fill its slots.

The defaults are Mini-BERT itself. Words such as `activation: gelu` are looked up in core/registry.py
and are compared nowhere else.
"""

from dataclasses import dataclass
from typing import ClassVar

from ..errors import ConfigError
from ..settings import Settings

PAD, UNK, CLS, SEP, MASK = range(5)       # the ids of the special tokens, in every vocabulary we make

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
    token_types: int = 0                  # segments to tell apart, as BERT's sentences A and B; 0 for none
    # slots
    position_embeddings: str = "learned"
    embedding_layernorm: bool = False
    attention_bias: bool = False
    block: str = "post_ln"
    activation: str = "relu"
    final_layernorm: bool = True
    mlm_head: str = "plain"
    pooler: str = "none"
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
        if self.token_types < 0:
            raise ConfigError(f"token_types must be 0 (none) or more, not {self.token_types}.")
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
    def head_size(self) -> int:           # d_k
        return self.hidden_size // self.num_heads

    def _check_words(self) -> None:
        from .registry import check_words  # the table knows the words, and is built on this class

        check_words(self)


def _nearest_divisor(n: int, wish: int) -> int:
    return min((d for d in range(1, n + 1) if n % d == 0), key=lambda d: abs(d - wish))
