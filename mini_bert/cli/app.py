"""The table of commands. Each command is in a file of its own, which is imported when the command is called.

A new command needs its file and one line in COMMANDS. Shell completion needs nothing more.
"""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from ..version import __version__
from .shared_options import Imports, load_imports, with_shared_options

# panel of --help -> command -> (module:member, line in --help); the member is a function or, for a command with
# subcommands, a typer.Typer
COMMANDS = {
    "Learn": {
        "selftest": ("learn.selftest:selftest_command", "Check that the installation computes what it should."),
        "gradcheck": ("learn.gradcheck:gradcheck_command", "Check every gradient against finite differences."),
        "exercise": ("learn.exercise:app", "Write backward passes and find planted bugs, graded."),
        "new": ("learn.new:app", "Start a variant of your own, or make a folder to practise in."),
    },
    "Train": {
        "fit": ("train.fit:fit_command", "Train a model on your own text in one command."),
        "tokenizer": ("train.tokenizer:app", "Learn a vocabulary; encode, decode and inspect text."),
        "data": ("train.data:app", "Prepare a corpus for training, or inspect one."),
        "pretrain": ("train.pretrain:pretrain_command", "Pre-train a model on a corpus."),
        "resume": ("train.pretrain:resume_command", "Continue a run from its newest checkpoint."),
        "finetune": ("train.finetune:finetune_command", "Fine-tune a model for a task."),
        "find-lr": ("train.searches:find_lr_command", "Find a learning rate by short trial runs."),
        "overfit": ("train.searches:overfit_command", "Overfit one batch, to test model and training."),
        "lab": ("train.lab:lab_command", "Compare training configs over several seeds."),
    },
    "Use": {
        "fill-mask": ("use.inference:fill_mask_command", "Predict the words at \\[MASK]."),
        "embed": ("use.inference:embed_command", "Turn sentences into vectors."),
        "similar": ("use.inference:similar_command", "Find the sentences nearest to a query."),
        "score": ("use.inference:score_command", "Score texts by pseudo-log-likelihood."),
        "generate": ("use.generate:generate_command", "Continue a text with a causal model."),
        "predict": ("use.predict:predict_command", "Predict with a fine-tuned model."),
        "serve": ("use.serve:serve_command", "Serve models over HTTP."),
        "export": ("use.export:export_command", "Write ONNX, or what transformers opens."),
        "quantise": ("use.export:quantise_command", "Write a model with int8, bf16 or fp16 weights."),
    },
    "Evaluate": {
        "evaluate": ("measure.evaluate:evaluate_command", "Measure masked-token loss, or run every evaluation."),
        "probe": ("measure.probe:probe_command", "Probe each layer for syntax, entities or labels of texts."),
        "blimp": ("measure.zero_shot:blimp_command", "Test grammar with minimal pairs."),
        "agreement": ("measure.zero_shot:agreement_command", "Test subject-verb agreement."),
        "facts": ("measure.zero_shot:facts_command", "Test factual knowledge with prompts."),
        "timeline": ("measure.timeline:timeline_command", "Measure every snapshot of a run: what is learned when?"),
        "similarity": ("measure.zero_shot:similarity_command", "Test word similarity and analogies."),
    },
    "Look": {
        "explore": ("look.explore:explore_command", "Explore a model in the browser."),
        "doctor": ("look.doctor:doctor_command", "Diagnose a training run."),
        "report": ("look.report:report_command", "Write an HTML page about a training run."),
        "plot": ("look.plot:plot_command", "Draw attention, gradients, training curves and more."),
    },
    "Tools": {
        "config": ("tools.config:config_command", "Show a config's sizes, parameters and memory."),
        "presets": ("tools.presets:presets_command", "List the model presets."),
        "memory": ("tools.bench:memory_command", "Predict and measure the memory of training."),
        "bench": ("tools.bench:app", "Measure the speed of training."),
        "plan": ("tools.scaling:plan_command", "Predict training on many machines."),
    },
}
ON_SEVERAL = ("pretrain", "resume", "finetune", "evaluate", "lab")        # what mpirun may start several processes of
WITHOUT_MODEL = ("selftest", "presets", "exercise", "new", "tokenizer", "data prepare")
_HELP = {"help_option_names": ["-h", "--help"]}
_TARGETS = {name: target for group in COMMANDS.values() for name, (target, _) in group.items()}

FIRST = """BERT in pure NumPy. Three things to try first:

  mini-bert fill-mask "They met for the first [MASK] in Paris."
      try the trained model that ships with the package

  mini-bert explore "They met for the first [MASK] in Paris."
      explore every number of a forward and backward pass in the browser

  mini-bert fit pydocs --from mini --budget 2m --out my.model
      train a model on Python's own documentation, or on your files

mini-bert --help lists all commands, mini-bert COMMAND --help has examples, and
mini-bert new practice DIR makes a folder in which all of them run."""


# what --help shows in place of the types of Python
_VALUES = {"int": "N", "int range": "N", "list[int]": "N", "float": "NUMBER", "float range": "NUMBER", "str": "TEXT",
           "list[str]": "TEXT", "path": "PATH", "list[path]": "PATH"}


class _Plain:
    """In --help, values are named in capitals: flags, which take none, and arguments, which have a name, show none."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)               # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.display_type_rich = _no_type
            elif param.metavar is None:
                param.metavar = _VALUES.get(param.display_type(ctx).strip("<>"))
        return params


def _no_type(ctx: Any) -> None:
    """The type of an argument."""


class _Command(_Plain, TyperCommand):
    pass


class _Subcommands(_Plain, TyperGroup):
    pass


_LISTED = {name: TyperCommand(name, help=summary, rich_help_panel=panel)
           for panel, group in COMMANDS.items() for name, (_, summary) in group.items()}


class _Commands(Mapping[str, Any]):
    """The commands by name. Looking one up imports its file, so `fill-mask` does not wait for the trainer's code."""

    def __iter__(self) -> Iterator[str]:
        return iter(_TARGETS)

    def __len__(self) -> int:
        return len(_TARGETS)

    def __getitem__(self, name: str) -> Any:
        module, _, member = _TARGETS[name].partition(":")
        target = getattr(import_module(f".{module}", __package__), member)
        if isinstance(target, typer.Typer):
            target.info.cls = _Subcommands
            for registered in target.registered_commands:
                named = {name, f"{name} {registered.name}"}
                registered.cls, registered.help = _Command, _paragraphs(registered.callback)
                registered.callback = with_shared_options(registered.callback,
                                                          imports=named.isdisjoint(WITHOUT_MODEL))
            command: Any = get_group(target)
        else:
            single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=_HELP)
            single.command(name, cls=_Command, help=_paragraphs(target))(
                with_shared_options(target, imports=name not in WITHOUT_MODEL, several=name in ON_SEVERAL))
            command = get_command(single)
        command.name = name
        return command


def _paragraphs(function: Any) -> str:
    """A docstring with each paragraph in one line, for the terminal's width to break."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


class _Group(_Plain, TyperGroup):
    """Lists its commands from the table, and imports only the one that is run."""

    def __init__(self, **attributes: Any):
        super().__init__(**attributes)
        self.commands = _Commands()       # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_LISTED)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _LISTED.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.commands[name], rest


app = typer.Typer(cls=_Group, invoke_without_command=True, pretty_exceptions_enable=False, context_settings=_HELP)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mini-bert {__version__}")
        raise typer.Exit


@app.callback()
def mini_bert(context: typer.Context, imports: Imports = None, version: Annotated[bool, typer.Option(
        "--version", help="Print the version.", callback=_show_version, is_eager=True)] = False) -> None:
    """BERT in pure NumPy: every formula, every gradient, on a laptop's CPU."""
    load_imports(imports)
    if context.invoked_subcommand is None:
        print(FIRST)
