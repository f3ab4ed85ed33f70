"""The geometry of representations: diversity, similarity of layers, effective dimensionality, attention entropy.

All functions take rows (N, H), or hidden states (B, T, H) with a mask (B, T) that is nonzero at the tokens to include.
Exclude padding, and [CLS] and [SEP], which occur in every sequence and would make them look similar. Sums are in
float64.

    participation ratio  (sum lambda)^2 / sum lambda^2             lambda: eigenvalues of the covariance
    effective rank       exp(-sum p ln p),  p = s / sum s          s: singular values        (Roy & Vetterli 2007)
    linear CKA           |Y^T X|^2 / (|X^T X| |Y^T Y|)             X, Y centred              (Kornblith et al. 2019)
    attention entropy    -sum_k p_k ln p_k                         over the keys of a query, in nats
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...core.arrays import Array, BoolArray
from ...core.cache import Cache
from ...core.inputs import as_array, check_mask
from ...errors import InputError
from ..probabilities import Floats
from ..result import Result


def layer_states(cache: Cache) -> dict[str, Array]:
    """The hidden states (B, T, H) by layer: embeddings, hidden_0, ..., and final_hidden after a final LayerNorm."""
    last = ["final_hidden"] if cache.final_ln is not None else []
    return {name: cache[name] for name in ("embeddings", *(f"hidden_{i}" for i in range(len(cache.layers))), *last)}


def compute_token_diversity(hidden_states: Array, mask: BoolArray | None = None) -> float:
    """1 - the mean cosine of pairs of tokens: 0 if all have the same direction, 1 if they are unrelated.

    (B, T, H): pairs within a sequence, averaged over the sequences with at least two tokens. (N, H): all pairs.
    """
    states = as_array(hidden_states, "hidden_states")
    diversity = sequence_diversity(*_sequences(states[None] if states.ndim == 2 else states, mask))
    if not len(diversity):
        raise InputError("Token diversity needs a sequence with at least two tokens.")
    return float(diversity.mean())


def sequence_diversity(states: Array, mask: BoolArray) -> Floats:
    """The diversity of each sequence (B, T, H) with at least two tokens."""
    counts = mask.sum(axis=1)
    units = unit_rows(np.where(mask[..., None], states, 0))
    total = units.sum(axis=1, dtype=np.float64)
    # |sum of units|^2 contains each pair twice, and each token with itself
    pairs = np.einsum("bh,bh->b", total, total) - np.einsum("bth,bth->b", units, units)
    several = counts > 1
    diversity: Floats = 1 - pairs[several] / (counts[several] * (counts[several] - 1.0))
    return diversity


def compute_layer_similarity(layer_outputs: Sequence[Array], mask: BoolArray | None = None, *,
                             debiased: bool = True) -> Floats:
    """Linear CKA of every pair of layers, a symmetric matrix (L, L): 1 for rotated or scaled copies, 0 for unrelated.

    Each layer is (N, H) or (B, T, H); row i of every layer belongs to the same token. Debiased by default (the HSIC
    estimator of Song et al.): unrelated layers then get 0 on average, where the plain formula gives about H / N, and
    negative values are possible. A layer of identical rows gets 0, and 1 with itself.
    """
    layers = [_centred(rows_of(layer, mask)) for layer in layer_outputs]
    if not layers or len({len(layer) for layer in layers}) > 1:
        raise InputError("Layers are compared token by token: give at least one, all with the same number of rows.")
    if len(layers[0]) < 4:
        raise InputError(f"The similarity of layers needs at least 4 tokens, not {len(layers[0])}.")
    squares = [np.einsum("nh,nh->n", layer, layer) for layer in layers]
    inner = np.empty((len(layers), len(layers)))
    for i, X in enumerate(layers):
        for j in range(i + 1):
            product = X.T @ layers[j]                          # (H, H), smaller than (N, N)
            inner[i, j] = inner[j, i] = np.vdot(product, product) - (_bias(squares[i], squares[j]) if debiased else 0)
    size = np.sqrt(np.maximum(inner.diagonal(), 0))
    both = np.outer(size, size)
    similarity: Floats = np.divide(inner, both, out=np.zeros_like(inner), where=both > 0)
    np.fill_diagonal(similarity, 1)
    return similarity


def _bias(x: Floats, y: Floats) -> float:
    """The contribution of each token with itself to |Y^T X|^2; x and y are the squared lengths of the rows."""
    n = len(x)
    return float(n / (n - 2) * (x @ y) - x.sum() * y.sum() / ((n - 1) * (n - 2)))


def compute_attention_entropy(attention_weights: Array, attention_mask: BoolArray | None = None, *,
                              queries: BoolArray | None = None, normalised: bool = False) -> Floats:
    """The mean entropy of each head (A,) in nats, from weights (B, A, T, T): 0 for a single key, ln n for n equal keys.

    attention_mask (B, T) is nonzero at real tokens: queries at padding are excluded. `queries` (B, T) restricts the
    queries further, for instance to all but [CLS] and [SEP]; these remain keys, because heads do put weight there.
    `normalised` divides the entropy of each query by ln(number of real keys), so that 1 is the maximum; sequences of
    one token are then excluded.
    """
    total, count = attention_entropy_sums(attention_weights, attention_mask, queries, normalised)
    if not count:
        raise InputError("There are no queries whose entropy could be measured.")
    return total / count


def attention_entropy_sums(attention_weights: Array, attention_mask: BoolArray | None, queries: BoolArray | None,
                           normalised: bool) -> tuple[Floats, int]:
    """The summed entropies (A,) and the number of queries; add these over batches."""
    weights = as_array(attention_weights, "attention_weights")
    if weights.ndim != 4 or weights.shape[2] != weights.shape[3] or weights.dtype.kind != "f":
        raise InputError("attention_weights must be floating-point numbers of shape (batch, heads, tokens, tokens), "
                         f"not {weights.dtype} {weights.shape}.")
    B, _, T, _ = weights.shape
    real = np.ones((B, T), bool) if attention_mask is None else \
        check_mask(attention_mask, (B, T), "attention_mask", "attention_weights")
    asked = real if queries is None else real & check_mask(queries, (B, T), "queries", "attention_weights")
    if not np.allclose((weights @ real.astype(weights.dtype)[:, None, :, None])[..., 0].transpose(0, 2, 1)[asked], 1,
                       atol=1e-3):
        raise InputError("The attention weights of a query do not sum to 1 over the real tokens; check that they are "
                         "weights, not scores, and that attention_mask belongs to the same batch.")
    logs = np.log(np.maximum(weights, np.finfo(weights.dtype).tiny))       # 0 ln 0 is 0
    entropy = -np.einsum("baqk,baqk->bqa", weights, logs)                  # (B, T, A)
    if normalised:
        keys = real.sum(axis=1)
        asked = asked & (keys > 1)[:, None]
        entropy = entropy / np.log(np.maximum(keys, 2))[:, None, None]
    return entropy[asked].sum(axis=0, dtype=np.float64), int(asked.sum())


def compute_effective_dimensionality(representations: Array, mask: BoolArray | None = None) -> float:
    """The participation ratio: d for data spread evenly over d directions, 1 for a line, 0 for a single point.

    It is at most N - 1 for N rows, and underestimated unless N is much larger.
    """
    return _participation(_covariance(_centred(rows_of(representations, mask))))


def _participation(covariance: Floats) -> float:
    total = float(np.trace(covariance))
    return total**2 / float(np.vdot(covariance, covariance)) if total > 0 else 0.0   # traces: no eigenvalues needed


def compute_effective_rank(weight_matrix: Array) -> float:
    """The effective number of directions of a matrix: n for n equal singular values, 1 for rank one, 0 for zeros."""
    matrix = as_array(weight_matrix, "weight_matrix")
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise InputError(f"weight_matrix must be finite numbers of shape (in, out), not {matrix.dtype} {matrix.shape}.")
    return _entropy_rank(np.linalg.svd(matrix.astype(np.float64), compute_uv=False))


def _entropy_rank(singular: Floats) -> float:
    total = singular.sum()
    if total <= 0:
        return 0.0
    p = singular[singular > 0] / total
    return float(np.exp(-(p * np.log(p)).sum()))


class Anisotropy(NamedTuple):
    """Whether vectors fill a narrow cone; 0 and 1/H for vectors that are spread evenly over all directions.

    `mean_cosine` is the mean over all pairs of rows; `top_component` is the share of the variance along the first
    principal component.
    """

    mean_cosine: float
    top_component: float


def compute_anisotropy(representations: Array, mask: BoolArray | None = None) -> Anisotropy:
    """The anisotropy of rows (N, H), or of all tokens of (B, T, H) together."""
    rows = _several(rows_of(representations, mask))
    return Anisotropy(1 - compute_token_diversity(rows), _top_share(_eigenvalues(_covariance(_centred(rows)))))


def _eigenvalues(covariance: Floats) -> Floats:
    eigenvalues: Floats = np.maximum(np.linalg.eigvalsh(covariance), 0)   # rounding can make them slightly negative
    return eigenvalues


def _top_share(eigenvalues: Floats) -> float:
    total = float(eigenvalues.sum())
    return float(eigenvalues.max()) / total if total > 0 else 0.0


@dataclass(frozen=True)
class RepresentationGeometry(Result):
    """The geometry of one layer."""

    tokens: int
    size: int                             # H
    token_diversity: float                # within sequences, if the input was (B, T, H)
    mean_cosine: float                    # of all pairs; anisotropy
    top_component: float                  # share of the variance along the first principal component
    effective_dimensionality: float       # participation ratio
    effective_rank: float                 # of the centred rows
    mean_norm: float
    norm_deviation: float
    centre_norm: float                    # of the mean vector


def compute_representation_geometry(hidden_states: Array, mask: BoolArray | None = None) -> RepresentationGeometry:
    """All measures of one layer, (N, H) or (B, T, H); `layer_states` gives the layers of a pass."""
    rows = _several(rows_of(hidden_states, mask))
    covariance = _covariance(_centred(rows))
    eigenvalues = _eigenvalues(covariance)
    norms = np.sqrt(np.einsum("nh,nh->n", rows, rows))
    return RepresentationGeometry(
        len(rows), rows.shape[1], compute_token_diversity(hidden_states, mask), 1 - compute_token_diversity(rows),
        _top_share(eigenvalues), _participation(covariance), _entropy_rank(np.sqrt(eigenvalues)),
        float(norms.mean()), float(norms.std()), float(np.linalg.norm(rows.mean(axis=0))))


analyze_representation_geometry = compute_representation_geometry


# -------------------------------------------------------------------- rows


def rows_of(states: Array, mask: BoolArray | None = None) -> Floats:
    """The selected rows (N, H) in float64."""
    array = as_array(states, "hidden_states")
    sequences, chosen = _sequences(array[None] if array.ndim == 2 else array, mask)
    return sequences[chosen].astype(np.float64)


def _sequences(states: Array, mask: BoolArray | None) -> tuple[Array, BoolArray]:
    if states.ndim != 3 or states.dtype.kind != "f":
        raise InputError("Representations must be floating-point numbers of shape (tokens, features) or "
                         f"(batch, tokens, features), not {states.dtype} {states.shape}.")
    if mask is None:
        return states, np.ones(states.shape[:2], bool)
    mask = as_array(mask, "mask")
    return states, check_mask(mask[None] if mask.ndim == 1 else mask, states.shape[:2], "mask", "hidden_states")


def unit_rows(rows: Array) -> Array:
    """Vectors along the last axis divided by their lengths; zero vectors stay zero."""
    norms = np.sqrt(np.einsum("...h,...h->...", rows, rows))[..., None]
    units: Array = rows / np.where(norms > 0, norms, 1)
    return units


def _several(rows: Floats) -> Floats:
    if len(rows) < 2:
        raise InputError(f"The geometry of representations needs at least two tokens, not {len(rows)}.")
    return rows


def _centred(rows: Floats) -> Floats:
    centred: Floats = rows - _several(rows).mean(axis=0)
    centred[np.abs(centred) < 1e-13 * np.abs(rows).max()] = 0             # rounding errors of equal rows
    return centred


def _covariance(centred: Floats) -> Floats:
    covariance: Floats = centred.T @ centred / len(centred)
    return covariance
