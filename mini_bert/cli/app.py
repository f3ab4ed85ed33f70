"""The verbs, each from its own file, which is imported when the verb is called.

A new verb needs its file and one line in VERBS.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from .. import __version__
from .imports import with_imports

# the name of a verb: its module here, and in it a command's function or, for verbs of verbs, a typer.Typer
VERBS = {
    "selftest": "learn.selftest:selftest_command",
    "gradcheck": "learn.gradcheck:gradcheck_command",
    "new": "learn.new:app",
    "config": "tools.config:config_command",
    "presets": "tools.presets:presets_command",
    "fit": "train.fit:fit_command",
    "pretrain": "train.pretrain:pretrain_command",
    "resume": "train.pretrain:resume_command",
    "find-lr": "train.searches:find_lr_command",
    "overfit": "train.searches:overfit_command",
    "lab": "train.lab:lab_command",
    "evaluate": "measure.evaluate:evaluate_command",
    "fill-mask": "use.inference:fill_mask_command",
    "embed": "use.inference:embed_command",
    "similar": "use.inference:similar_command",
    "score": "use.inference:score_command",
    "finetune": "train.finetune:finetune_command",
    "predict": "train.finetune:predict_command",
    "probe": "measure.probe:probe_command",
    "blimp": "measure.zero_shot:blimp_command",
    "agreement": "measure.zero_shot:agreement_command",
    "facts": "measure.zero_shot:facts_command",
    "similarity": "measure.zero_shot:similarity_command",
    "exercise": "learn.exercise:app",
    "doctor": "look.doctor:doctor_command",
    "report": "look.report:report_command",
    "plot": "look.plot:plot_command",
    "explore": "look.explore:explore_command",
    "memory": "tools.bench:memory_command",
    "bench": "tools.bench:app",
    "tokenizer": "train.tokenizer:app",
    "data": "train.data:app",
}
WITHOUT_MODEL = ("selftest", "presets", "exercise", "new", "tokenizer", "data", "report", "plot")
_HELP = {"help_option_names": ["-h", "--help"]}


class _Verbs(Mapping[str, Any]):
    """Imports the file of a verb when it is asked for: filling a mask does not wait for the trainer's code."""

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)

    def __getitem__(self, name: str) -> Any:
        module, _, member = VERBS[name].partition(":")
        verb = getattr(import_module(f".{module}", __package__), member)
        if isinstance(verb, typer.Typer):
            for registered in verb.registered_commands if name not in WITHOUT_MODEL else ():
                registered.callback = with_imports(registered.callback)
            made: Any = get_group(verb)
        else:
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_HELP)
            alone.command(name)(verb if name in WITHOUT_MODEL else with_imports(verb))
            made = get_command(alone)
        made.name = name
        return made


class _Group(TyperGroup):
    """The program, whose verbs are not there before they are needed."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        self.commands = _Verbs()          # type: ignore[assignment]


app = typer.Typer(cls=_Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  context_settings=_HELP)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mini-bert {__version__}")
        raise typer.Exit


@app.callback()
def mini_bert(version: Annotated[bool, typer.Option(
        "--version", help="Print the version.", callback=_show_version, is_eager=True)] = False) -> None:
    """BERT in pure NumPy: every formula, every gradient, on a laptop's CPU."""
