"""Counts the parameters of BERT's relatives from their published sizes, and draws them: docs/images/architectures.svg.

    python docs/comparisons/count_parameters.py                 a table; exits with 1 if a published total is not met
    python docs/comparisons/count_parameters.py --picture FILE  the picture as well

A function an architecture, in the order of the data. Totals are of the encoder (or decoder) as its authors count it:
without heads for pre-training (but for Mini-BERT and Larger-BERT, whose count has always had it), with the pooler where
there is one. Tied arrays count once.
"""

import argparse
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import NamedTuple

from mini_bert import load_preset
from mini_bert.core.modules.assembly import parameter_specs


class Count(NamedTuple):
    embeddings: int
    layers: int
    rest: int                                   # poolers, final LayerNorms, heads that count

    @property
    def total(self) -> int:
        return sum(self)


def linear(n_in: int, n_out: int) -> int:
    return n_in * n_out + n_out


def layernorm(H: int) -> int:
    return 2 * H


def layer(H: int, I: int) -> int:
    """Four projections with biases, a feed-forward network, two LayerNorms: the layer of BERT and of GPT-2 alike."""
    return 4 * linear(H, H) + linear(H, I) + linear(I, H) + 2 * layernorm(H)


def preset(name: str) -> Count:
    """One of our own, from the specs that the library makes the model of."""
    sizes = {spec.name: prod(spec.shape) for spec in parameter_specs(load_preset(name))}
    embeddings = sum(n for key, n in sizes.items() if "embedding" in key)
    layers = sum(n for key, n in sizes.items() if key.rsplit("_", 1)[-1].isdigit())
    return Count(embeddings, layers, sum(sizes.values()) - embeddings - layers)


def bert(L: int = 12, H: int = 768, V: int = 30522) -> Count:
    """Token, position and two type embeddings under a LayerNorm; a pooler."""
    return Count((V + 512 + 2) * H + layernorm(H), L * layer(H, 4 * H), linear(H, H))


def roberta() -> Count:
    """BERT-base with a byte-level vocabulary, one token type, and two positions that are never used."""
    H = 768
    return Count((50265 + 514 + 1) * H + layernorm(H), 12 * layer(H, 4 * H), linear(H, H))


def albert() -> Count:
    """Embeddings of size E < H with a projection behind them, and one layer that is applied twelve times."""
    H, E = 768, 128
    return Count((30000 + 512 + 2) * E + layernorm(E) + linear(E, H), layer(H, 4 * H), linear(H, H))


def distilbert() -> Count:
    """Six of BERT's twelve layers; neither token types nor pooler."""
    H = 768
    return Count((30522 + 512) * H + layernorm(H), 6 * layer(H, 4 * H), 0)


def electra() -> Count:
    """The discriminator of ELECTRA-base, which is what is kept: BERT-base without a pooler."""
    return bert()._replace(rest=0)


def electra_small() -> Count:
    """The discriminator of ELECTRA-small: narrow embeddings with a projection, as in ALBERT; twelve layers."""
    H, E = 256, 128
    return Count((30522 + 512 + 2) * E + layernorm(E) + linear(E, H), 12 * layer(H, 4 * H), 0)


def deberta() -> Count:
    """No positions in the input; a table of 2k relative ones, and two more projections a layer for it.

    Queries and values have biases, keys have none; nor has the projection of positions as keys.
    """
    H, k = 768, 512
    extra = H * H + linear(H, H)
    return Count(50265 * H + layernorm(H), 12 * (layer(H, 4 * H) - H + extra) + 2 * k * H, 0)


def xlnet() -> Count:
    """Transformer-XL's attention: a fifth projection for relative positions, three biases and two segment vectors a
    head, projections without biases; a vector for the place that is asked for."""
    H = 768
    attention = 5 * H * H + 3 * H + 2 * H
    return Count(32000 * H + H, 12 * (attention + linear(H, 4 * H) + linear(4 * H, H) + 2 * layernorm(H)), 0)


def gpt2() -> Count:
    """A decoder: 1,024 positions, LayerNorms before the sub-layers and one at the end; the head is the token table."""
    H = 768
    return Count((50257 + 1024) * H, 12 * layer(H, 4 * H), layernorm(H))


MODELS: dict[str, Callable[[], Count]] = {
    "Mini-BERT": lambda: preset("mini"), "Larger-BERT": lambda: preset("larger"), "BERT-base": bert,
    "BERT-large": lambda: bert(24, 1024), "RoBERTa-base": roberta, "ALBERT-base": albert, "DistilBERT": distilbert,
    "ELECTRA-small": electra_small, "ELECTRA-base": electra, "DeBERTa-base": deberta, "XLNet-base": xlnet,
    "GPT-2": gpt2}
# what the released weights have, number for number
PUBLISHED = {"Mini-BERT": 4_498_880, "Larger-BERT": 49_137_488, "BERT-base": 109_482_240, "BERT-large": 335_141_888,
             "RoBERTa-base": 124_645_632, "ALBERT-base": 11_683_584, "DistilBERT": 66_362_880, "GPT-2": 124_439_808}


def draw(path: Path) -> None:
    from mini_bert.palette import COLOURS
    from mini_bert.plots.style import Picture, single_axes, styled

    @styled
    def bars() -> Picture:
        figure, axes = single_axes(7.2, 4.2)
        names = list(MODELS)[::-1]
        counts = [MODELS[name]() for name in names]
        left = [0.0] * len(names)
        for part, colour in zip(Count._fields, (COLOURS[0], COLOURS[4], COLOURS[6]), strict=True):
            widths = [getattr(count, part) / 1e6 for count in counts]
            axes.barh(names, widths, left=left, color=colour, label="heads and the rest" if part == "rest" else part)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for place, total in enumerate(left):
            axes.text(total + 3, place, f"{total:.1f}", va="center", fontsize=8)
        axes.grid(visible=False, axis="y")
        axes.set(xlabel="million parameters", title="Where the parameters are", xlim=(0, max(left) * 1.1))
        axes.legend(loc="upper right", bbox_to_anchor=(1, 0.5))
        return figure

    bars().save(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--picture", type=Path, metavar="FILE", help="Also draw the counts, as .svg, .png or .pdf.")
    picture: Path | None = parser.parse_args().picture
    wrong = False
    print(f"{'model':14} {'embeddings':>11} {'layers':>12} {'rest':>11} {'total':>12}  published")
    for name, make in MODELS.items():
        count = make()
        agrees = {None: "", count.total: "the same"}.get(PUBLISHED.get(name), "ANOTHER")
        wrong |= agrees == "ANOTHER"
        print(f"{name:14} {count.embeddings:11,} {count.layers:12,} {count.rest:11,} {count.total:12,}  {agrees}"
              .rstrip())
    if picture:
        draw(picture)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
