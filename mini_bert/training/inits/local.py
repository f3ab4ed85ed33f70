"""A model whose heads look at a token's neighbours from the first step.

At N(0, 0.02) attention is uniform: every token sees the mean of all others, the loss falls to that of guessing by
frequency, and stays there until some head has learned, position by position, to look beside it. `attend_locally` gives
the heads of the first layer that for a start. The first d_k features of the positions are waves,

    p_t = (sin w_k t, cos w_k t) a      w_k = BASE^(-2k/H),  k < d_k / 2

a head that looks `o` tokens ahead has W_Q = R(o) c and W_K = 1 c on those features, where R(o) turns each wave
by o w_k, so that p_t R(o) = p_(t+o), and its scores

    S_ts = (a c)^2 / sqrt(d_k) sum_k cos w_k (t + o - s)

are greatest, PEAK, at s = t + o. Heads take the offsets -1, 1, -2, 2, ... in turn. What is looked at must also
arrive: token embeddings are large and keep off the waves, and W_V and W_O are large enough to pass a neighbour on
at about the size of the token itself. All of it is learned from there. Measured: docs/results/recipe.md
"""

from math import sqrt

import numpy as np

from ...core.config import ModelConfig
from ...core.modules.assembly import parameter_specs
from ...core.params import Parameters
from ...core.registry import register
from ...errors import ConfigError
from .normal import Init

BASE = 1000.0             # waves of six to some tens of tokens: together they tell a neighbour from all others
PEAK = 6.0                # of the scores: the neighbour gets e^6 times the weight of a token far away
TOKENS, WAVES = 0.5, 0.3  # deviation of the token embeddings, amplitude of the positions
PASS = 0.8                # W_V and W_O keep so much of a vector's length
OFF_THE_WAVES = 0.1       # share of a token embedding's size that is left on the features of the waves


def _check(config: ModelConfig) -> None:
    names = {spec.name for spec in parameter_specs(config)}
    if "position_embeddings" not in names or config.head_size < 2:
        raise ConfigError("training.init: local needs model.position_embeddings: learned, and at least two features "
                          "per head; set training.init=normal.")


def attend_locally(config: ModelConfig, params: Parameters) -> None:
    """Let the first layer look at neighbours; the parameters have been drawn already."""
    H, A, d_k = config.hidden_size, config.num_heads, config.head_size
    _check(config)
    K = d_k // 2
    frequencies = BASE ** (-2 * np.arange(K) / H)
    angles = np.arange(config.max_seq_length)[:, None] * frequencies              # (T, K)
    waves = params["position_embeddings"][:, : 2 * K]
    waves[:, 0::2], waves[:, 1::2] = WAVES * np.sin(angles), WAVES * np.cos(angles)
    tokens = params["token_embeddings"]
    tokens *= TOKENS / config.init_std
    tokens[:, : 2 * K] *= OFF_THE_WAVES
    if "mlm_transform_ln_gamma" in params:        # a tied head: its logits too are made of the large embeddings
        params["mlm_transform_ln_gamma"][...] = 0.3 / (TOKENS * sqrt(H))
    for letter in "VO":
        weights = params[f"W_{letter}_0"]
        weights *= PASS / sqrt(H) / weights.std()
    gain = sqrt(PEAK * sqrt(d_k) / K) / WAVES                                     # c
    W_Q, W_K = params["W_Q_0"], params["W_K_0"]
    sines, cosines = 2 * np.arange(K), 2 * np.arange(K) + 1                       # features of the waves
    for head in range(A):
        offset = (head // 2 + 1) * (-1, 1)[head % 2]
        turn = offset * frequencies
        to_sines, to_cosines = head * d_k + sines, head * d_k + cosines
        # sin(t + o) = sin t cos o + cos t sin o      cos(t + o) = cos t cos o - sin t sin o
        W_Q[sines, to_sines] += gain * np.cos(turn)
        W_Q[cosines, to_sines] += gain * np.sin(turn)
        W_Q[sines, to_cosines] -= gain * np.sin(turn)
        W_Q[cosines, to_cosines] += gain * np.cos(turn)
        W_K[sines, to_sines] += gain
        W_K[cosines, to_cosines] += gain


register("init", "local")(Init(lambda config, params, corpus: attend_locally(config, params), _check))
