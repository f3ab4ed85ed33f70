"""Text from a causal model, or from one that can be asked to be causal, token by token.

The keys and values of all tokens so far are kept, so that each new token costs one row of every layer instead of a pass
over the whole text. A text longer than the model's window goes on from its second half.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.model import MiniBERT
from ..core.ops.softmax import softmax_forward
from ..errors import InputError
from ..randomness import generator
from ..text.tokenizer import Tokenizer
from .inputs import require_vocabulary


@dataclass
class KeyValues:
    """Keys and values of earlier tokens (B, A, length, d_k), layer by layer: a Memory of core/context.py."""

    capacity: int
    length: int = 0
    kept: dict[int, tuple[Array, Array]] = field(default_factory=dict)
    layer: int = 0

    def in_layer(self, layer: int) -> Self:
        return type(self)(self.capacity, self.length, self.kept, layer)

    def rows(self, x: Array) -> Array:
        return x                              # their keys are kept, so they need not be computed again

    def keys_values(self, K: Array, V: Array) -> tuple[Array, Array]:
        B, A, T, d_k = K.shape
        if self.layer not in self.kept:
            shape = (B, A, self.capacity, d_k)
            self.kept[self.layer] = np.empty(shape, K.dtype), np.empty(shape, V.dtype)
        keys, values = self.kept[self.layer]
        keys[:, :, self.length : self.length + T], values[:, :, self.length : self.length + T] = K, V
        return keys[:, :, : self.length + T], values[:, :, : self.length + T]


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn: from softmax(logits / temperature), among the likeliest alone.

    At temperature 0 it is the likeliest one. `top_k` keeps that many tokens, `top_p` the fewest whose probabilities sum
    to at least p; 0 and 1 keep all.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 100:
            raise InputError(f"temperature must be between 0 and 100, not {self.temperature}.")
        if self.top_k < 0:
            raise InputError(f"top_k must be 0 (all) or more, not {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must be above 0 and at most 1, not {self.top_p}.")

    def draw(self, logits: Array, *key: int) -> IntArray:
        """logits (B, n) -> the number of the chosen token of each row; `key` says which draw it is."""
        if self.temperature == 0:
            best: IntArray = logits.argmax(axis=1)
            return best
        probabilities = softmax_forward(logits.astype(np.float64) / self.temperature)[0]
        order = np.argsort(-probabilities, axis=1, kind="stable")
        ranked = np.take_along_axis(probabilities, order, axis=1)
        before = np.cumsum(ranked, axis=1) - ranked               # the sum of what is likelier
        dropped = before >= self.top_p
        if self.top_k:
            dropped[:, self.top_k :] = True
        sums = np.cumsum(np.where(dropped, 0.0, ranked), axis=1)
        at = generator(self.seed, "generate", *key).random((len(sums), 1)) * sums[:, -1:]
        chosen = np.minimum((sums <= at).sum(axis=1, keepdims=True), (~dropped).sum(axis=1, keepdims=True) - 1)
        drawn: IntArray = np.take_along_axis(order, chosen, axis=1)[:, 0]
        return drawn


def generate_ids(model: MiniBERT, prompts: IntArray, tokens: int, sampling: Sampling | None = None,
                 words: IntArray | None = None) -> Iterator[IntArray]:
    """The next tokens of prompts (B, T) of one length: (B,) ids at a time, `words` alone if they are given."""
    if not model.modules.can_be_causal or not model.modules.predicts_words:
        raise InputError("This model cannot generate: its tokens see what comes after them, or it has no head for "
                         "words; a causal model is mini-gpt, a GPT-2, or one that has learned the objective hybrid.")
    if tokens < 1:
        raise InputError(f"At least one token must be asked for, not {tokens}.")
    sampling, window = sampling or Sampling(), model.config.max_seq_length
    known = np.asarray(prompts)
    memory, fresh = KeyValues(window), known[:, -window:]
    causal = None if model.modules.causal else np.ones(len(known), bool)
    for number in range(tokens):
        if memory.length + fresh.shape[1] > window:               # the window is full: go on from its second half
            memory, fresh = KeyValues(window), known[:, -max(window // 2, 1) :]
        last = np.zeros(fresh.shape, bool)
        last[:, -1] = True
        logits, _ = model.forward(fresh, positions=last, memory=memory, causal=causal,
                                  forward_only=True)                                              # (B, V)
        memory.length += fresh.shape[1]
        drawn = sampling.draw(logits if words is None else logits[:, words], number)
        fresh = (drawn if words is None else words[drawn])[:, None]
        known = np.concatenate([known, fresh], axis=1)
        yield fresh[:, 0]


def generate(model: MiniBERT, tokenizer: Tokenizer, prompt: str = "", tokens: int = 100,
             **sampling: Any) -> Iterator[str]:
    """The text that continues the prompt, in parts as they become known; `"".join(...)` is all of it.

    `sampling` has temperature, top_k, top_p and seed: see Sampling. Special tokens are never drawn.
    """
    require_vocabulary(model, tokenizer)
    ids = [*tokenizer.template.before, *tokenizer.encode(prompt, add_special_tokens=False)]
    if not ids:
        roles = tokenizer.vocabulary.roles
        ids = [next((roles[role] for role in ("cls", "sep", "unk") if role in roles), 0)]    # a text begins with it
    shown = tokenizer.decode(ids, skip_special_tokens=True)
    for drawn in generate_ids(model, np.array([ids]), tokens, Sampling(**sampling), tokenizer.vocabulary.ordinary_ids):
        ids.append(int(drawn[0]))
        text = tokenizer.decode(ids, skip_special_tokens=True)
        if text.startswith(shown):            # the text of pieces can still change while a word is under way
            yield text[len(shown) :]
            shown = text
