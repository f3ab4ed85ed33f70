"""Counts the parameters of BERT's relatives from the presets, and draws them: docs/images/architectures.svg.

    python docs/comparisons/count_parameters.py                 a table; exits with 1 if a published total is not met
    python docs/comparisons/count_parameters.py --picture FILE  the picture as well

Totals are of the encoder (or decoder) as its authors count it: without heads for pre-training (but for Mini-BERT and
Larger-BERT, whose count has always had it), with the pooler where there is one. Tied arrays count once.
"""

import argparse
import sys
from math import prod
from pathlib import Path
from typing import NamedTuple

from mini_bert import ModelConfig, load_preset
from mini_bert.core.modules.assembly import parameter_specs


class Count(NamedTuple):
    embeddings: int
    layers: int
    rest: int                                   # poolers, final LayerNorms, heads that count

    @property
    def total(self) -> int:
        return sum(self)


# the name that people use: the preset, and what is left out of it or changed in it
_ENCODER = {"mlm_head": "none", "sentence_head": "none"}
MODELS = {
    "Mini-BERT": ("mini", {}), "Larger-BERT": ("larger", {}),
    "BERT-base": ("bert-base", {**_ENCODER, "pooler": "tanh"}),
    "BERT-large": ("bert-large", {**_ENCODER, "pooler": "tanh"}),
    "RoBERTa-base": ("roberta-base", {**_ENCODER, "pooler": "tanh"}), "ALBERT-base": ("albert-base", _ENCODER),
    "DistilBERT": ("distilbert-base", _ENCODER), "ELECTRA-small": ("electra-small", _ENCODER),
    "ELECTRA-base": ("bert-base", {**_ENCODER, "pooler": "none"}), "DeBERTa-base": ("deberta-base", _ENCODER),
    "DeBERTa-v3-xs": ("deberta-v3-xsmall", _ENCODER), "ModernBERT": ("modernbert-base", _ENCODER),
    "XLNet-base": ("xlnet-base", _ENCODER), "Transformer-XL": ("transformer-xl", _ENCODER), "GPT-2": ("gpt2", _ENCODER)}
_WIDE = {"num_layers": 24, "num_heads": 16, "hidden_size": 1024, "intermediate_size": 4096}
# by the sizes that their authors publish; too large for the picture beside the others
LARGE = {
    "RoBERTa-large": ("roberta-base", {**_ENCODER, **_WIDE, "pooler": "tanh"}),
    "ELECTRA-large": ("bert-large", {**_ENCODER, "pooler": "none"}),
    "DeBERTa-large": ("deberta-base", {**_ENCODER, **_WIDE}),
    "GPT-3": ("gpt2", {**_ENCODER, "num_layers": 96, "num_heads": 96, "hidden_size": 12_288,
                       "intermediate_size": 49_152, "max_seq_length": 2048})}
# what the released weights have, number for number
PUBLISHED = {"Mini-BERT": 4_498_880, "Larger-BERT": 49_137_488, "BERT-base": 109_482_240, "BERT-large": 335_141_888,
             "RoBERTa-base": 124_645_632, "ALBERT-base": 11_683_584, "DistilBERT": 66_362_880, "GPT-2": 124_439_808,
             "XLNet-base": 116_718_336, "ModernBERT": 149_014_272, "RoBERTa-large": 355_359_744}


def count(model: str) -> Count:
    """From the specs that the library makes the model of."""
    name, changes = (MODELS | LARGE)[model]
    specs = parameter_specs(ModelConfig.from_dict({**load_preset(name).to_dict(), **changes}))
    embeddings = sum(prod(spec.shape) for spec in specs if spec.component == "embeddings")
    layers = sum(prod(spec.shape) for spec in specs if spec.layer is not None or spec.component == "attention")
    return Count(embeddings, layers, sum(prod(spec.shape) for spec in specs) - embeddings - layers)


def draw(path: Path) -> None:
    from mini_bert.palette import COLOURS
    from mini_bert.plots.style import Picture, single_axes, styled

    @styled
    def bars() -> Picture:
        figure, axes = single_axes(7.2, 4.2)
        names = list(MODELS)[::-1]
        counts = [count(name) for name in names]
        left = [0.0] * len(names)
        for part, colour in zip(Count._fields, (COLOURS[0], COLOURS[4], COLOURS[6]), strict=True):
            widths = [getattr(found, part) / 1e6 for found in counts]
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
    print(f"{'model':14} {'embeddings':>11} {'layers':>15} {'rest':>11} {'total':>15}  published")
    for name in MODELS | LARGE:
        found = count(name)
        agrees = {None: "", found.total: "the same"}.get(PUBLISHED.get(name), "ANOTHER")
        wrong |= agrees == "ANOTHER"
        print(f"{name:14} {found.embeddings:11,} {found.layers:15,} {found.rest:11,} {found.total:15,}  {agrees}"
              .rstrip())
    if picture:
        draw(picture)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
