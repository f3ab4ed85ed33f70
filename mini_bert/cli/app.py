"""The verbs, each from its own file."""

from typing import Annotated

import typer

from .. import __version__
from .bench import app as bench_app
from .bench import memory_command
from .config import config_command
from .data import app as data_app
from .evaluate import evaluate_command
from .experiments import find_lr_command, overfit_command
from .finetune import finetune_command, predict_command
from .fit import fit_command
from .gradcheck import gradcheck_command
from .lab import lab_command
from .presets import presets_command
from .pretrain import pretrain_command, resume_command
from .probe import probe_command
from .selftest import selftest_command
from .tokenizer import app as tokenizer_app
from .use import embed_command, fill_mask_command, score_command, similar_command
from .zero_shot import agreement_command, blimp_command, facts_command, similarity_command

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})
app.command("selftest")(selftest_command)
app.command("gradcheck")(gradcheck_command)
app.command("config")(config_command)
app.command("presets")(presets_command)
app.command("fit")(fit_command)
app.command("pretrain")(pretrain_command)
app.command("resume")(resume_command)
app.command("find-lr")(find_lr_command)
app.command("overfit")(overfit_command)
app.command("lab")(lab_command)
app.command("evaluate")(evaluate_command)
app.command("fill-mask")(fill_mask_command)
app.command("embed")(embed_command)
app.command("similar")(similar_command)
app.command("score")(score_command)
app.command("finetune")(finetune_command)
app.command("predict")(predict_command)
app.command("probe")(probe_command)
app.command("blimp")(blimp_command)
app.command("agreement")(agreement_command)
app.command("facts")(facts_command)
app.command("similarity")(similarity_command)
app.command("memory")(memory_command)
app.add_typer(bench_app, name="bench")
app.add_typer(tokenizer_app, name="tokenizer")
app.add_typer(data_app, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mini-bert {__version__}")
        raise typer.Exit


@app.callback()
def mini_bert(version: Annotated[bool, typer.Option(
        "--version", help="Print the version.", callback=_show_version, is_eager=True)] = False) -> None:
    """BERT in pure NumPy: every formula, every gradient, on a laptop's CPU."""
