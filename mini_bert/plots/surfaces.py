"""Figures of the loss landscape, and of vectors projected into the plane."""

from collections.abc import Sequence
from importlib import import_module

import numpy as np
import numpy.typing as npt

from ..palette import COLOURS
from .style import UNSIGNED, Array, Picture, draw_line, single_axes, styled

# optional projections: module, class, what to install
LIBRARIES = {"tsne": ("sklearn.manifold", "TSNE", "scikit-learn"), "umap": ("umap", "UMAP", "umap-learn")}
_MARKS = "osD^v<>P*X"
_NAMED = 60                   # the most points that have room for names


@styled
def plot_loss_landscape(alphas: npt.ArrayLike, losses: npt.ArrayLike, betas: npt.ArrayLike | None = None) -> Picture:
    """The loss along one direction, or over two of them: losses[i, j] at alphas[i], betas[j]."""
    a, z = np.asarray(alphas, np.float64), np.asarray(losses, np.float64)
    figure, axes = single_axes(5.6, 4.2)
    if betas is None:
        if z.shape != a.shape:
            raise ValueError(f"losses must have the shape of alphas, {a.shape}, not {z.shape}.")
        draw_line(axes, a, z, 0)
        axes.axvline(0.0, color="#666666", linewidth=0.8, linestyle=":")
        axes.set(xlabel="along the direction", ylabel="loss")
        return figure
    b = np.asarray(betas, np.float64)
    if z.shape != (len(a), len(b)):
        raise ValueError(f"losses must have the shape {(len(a), len(b))} of alphas and betas, not {z.shape}.")
    filled = axes.contourf(a, b, z.T, levels=20, cmap=UNSIGNED)
    axes.contour(a, b, z.T, levels=20, colors="white", linewidths=0.3)
    axes.plot([0], [0], marker="+", color="white", markersize=10)
    axes.set(xlabel="first direction", ylabel="second direction", title="loss around the model (+)")
    figure.colorbar(filled, ax=axes, label="loss")
    return figure


def project(vectors: npt.ArrayLike, method: str = "pca", seed: int = 0) -> tuple[Array, str]:
    """Vectors (N, H) projected into the plane, (N, 2), and a title; t-SNE and UMAP need their libraries."""
    x = np.asarray(vectors, np.float64)
    if x.ndim != 2 or len(x) < 2:
        raise ValueError(f"vectors must have the shape (N, H) with N of at least 2, not {x.shape}.")
    if method == "pca":
        centred = x - x.mean(axis=0)
        u, s, _ = np.linalg.svd(centred, full_matrices=False)
        places = u[:, :2] * s[:2]
        if places.shape[1] < 2:
            places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
        share = float((s[:2] ** 2).sum() / max((s**2).sum(), 1e-300))
        return places, f"PCA: two components with {share:.0%} of the variance"
    if method not in LIBRARIES:
        raise ValueError(f"There is no projection {method!r}; choose one of pca, {', '.join(LIBRARIES)}.")
    module, name, library = LIBRARIES[method]
    try:
        maker = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{method} needs {library}: pip install {library}.", name=error.name) from None
    places = maker(n_components=2, random_state=seed).fit_transform(x)
    return np.asarray(places), f"{method}, seed {seed}: distances between groups are not meaningful"


@styled
def plot_embedding_projection(vectors: npt.ArrayLike, names: Sequence[str] | None = None,
                              groups: Sequence[str] | None = None, method: str = "pca", seed: int = 0) -> Picture:
    """Vectors as points in the plane, named if there is room; each group has its own colour and marker."""
    places, title = project(vectors, method, seed)
    for given in (names, groups):
        if given is not None and len(given) != len(places):
            raise ValueError(f"{len(given)} names do not fit {len(places)} vectors.")
    figure, axes = single_axes(6.0, 5.0)
    of = list(groups) if groups is not None else [""] * len(places)
    for number, group in enumerate(dict.fromkeys(of)):
        chosen = places[[member == group for member in of]]
        axes.scatter(chosen[:, 0], chosen[:, 1], s=18, color=COLOURS[number % len(COLOURS)],
                     marker=_MARKS[number % len(_MARKS)], label=group or None)
    if names is not None and len(names) <= _NAMED:
        for name, (x, y) in zip(names, places, strict=True):
            axes.annotate(name, (x, y), xytext=(3, 3), textcoords="offset points", fontsize=7)
    if groups is not None:
        axes.legend(fontsize=7)
    axes.set_title(title)
    return figure
