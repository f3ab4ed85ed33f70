"""mini-bert pretrain and resume: train on a corpus, and continue a run."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ...core.registry import import_options
from ...errors import ConfigError
from ...factory import load
from ...text.corpora.corpus import Corpus
from ...text.opening import has_tokenizer, load_tokenizer
from ...training.config import TrainingConfig, load_run_config
from ...training.runs.run import resume_run, start_run
from ...training.trainer import Trainer
from ..completion import presets
from ..output import Output
from ..training_display import TrainingDisplay

Config = Annotated[str, typer.Option("--config", "-c", metavar="PRESET|FILE",
                                     help="A preset, or a YAML file with sections model and training.",
                                     autocompletion=presets)]
Data = Annotated[Path, typer.Option("--data", "-d", metavar="DIR", help="A corpus from `mini-bert data prepare`.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the config, for example "
                                               "training.learning_rate=1e-3; may be repeated.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="0 for all cores, or the run's own number; "
                                      "results do not depend on it.")]


def pretrain_command(data: Data,
                     out: Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="The run's directory.")],
                     config: Config = "mini", changes: Set = None,
                     steps: Annotated[int | None, typer.Option(min=1, help="Optimiser steps.")] = None,
                     budget: Annotated[str | None, typer.Option(metavar="TIME", help="Training time, such as 30m or "
                                                                "1h30m; the schedule adapts to it.")] = None,
                     start: Annotated[str | None, typer.Option("--from", metavar="DIR",
                                                               help="Start from this model's weights.")] = None,
                     threads: Threads = 0,
                     seed: Annotated[int | None, typer.Option("--seed", help="Seed of every random draw.")] = None,
                     *, output: Output) -> None:
    """Pre-train a model on a corpus: by masked language modelling, or by the objective in the config.

    Ctrl-C finishes the step, saves, and says how to continue. The run's directory has its log and checkpoints. Behind
    mpirun -n N, several processes train together, on one machine or many, with the same result.

    Example: mini-bert pretrain --config small --data corpus.mb --out run --budget 10m --set model.vocab_size=1000
    """
    if steps is not None and budget is not None:
        raise ConfigError("--steps and --budget both set the length of training; give only one of them.")
    given = {"steps": steps, "budget": budget, "threads": threads or None, "seed": seed}
    sets = [*(changes or []), *(f"training.{key}={value}" for key, value in given.items() if value is not None)]
    model, training = load_run_config(config, sets)
    initial = None
    if start is not None:
        if any(change.startswith("model.") for change in sets):
            raise ConfigError("--from brings its own model config; remove --set model.* options.")
        initial = load(start)
        model = initial.config
    corpus = Corpus(data)
    if start is not None and has_tokenizer(start):
        corpus.require_vocabulary(load_tokenizer(start))     # otherwise its ids would mean other tokens
    display = TrainingDisplay(output.quiet)
    trainer = start_run(model, training, corpus, out, initial=initial, listener=display)
    display.said(_opening(trainer, corpus, training))
    _train(trainer, display, out, output)


def resume_command(run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run or of a fit.")],
                   data: Annotated[Path | None, typer.Option("--data", "-d", metavar="DIR",
                                                             help="The corpus, if it has been moved.")] = None,
                   threads: Threads = 0, changes: Set = None, *, output: Output) -> None:
    """Continue a run from its newest checkpoint. The result is the same as without the interruption.

    --set changes the config from here on, for instance to a lower learning rate.

    Example: mini-bert resume runs/mine --set training.steps=80
    """
    display = TrainingDisplay(output.quiet)
    trainer = resume_run(run, threads=threads, data=data, changes=changes or (), listener=display)
    if trainer.state.step >= trainer.state.total_steps:
        display.said(f"{run} is finished: {trainer.state.step:,} steps.")
    else:
        display.said(f"Continuing from step {trainer.state.step:,} of {trainer.state.total_steps:,}.")
    _train(trainer, display, trainer.run or run, output)


def _opening(trainer: Trainer, corpus: Corpus, training: TrainingConfig) -> str:
    config = trainer.config
    length = f"{config.budget}" if config.budget else f"{config.steps:,} steps"
    return (f"{trainer.model.get_parameter_count():,} parameters, {corpus.manifest.tokens:,} tokens of text; "
            f"{length} of {config.batch_size} x {config.max_seq_length} tokens on {config.threads} threads.")


def _train(trainer: Trainer, display: TrainingDisplay, out: Path, output: Output) -> None:
    with display:
        state = trainer.train()
    best = f", best held-out loss {state.best_loss:.4f} at step {state.best_step:,}" if state.best_step else ""
    data: dict[str, Any] = {"run": str(out), **state.to_json(), "interrupted": trainer.interrupted is not None}
    if trainer.interrupted is not None:
        done = "and saved" if trainer.saved == state.step else "; the last good checkpoint is kept"
        output.result(data, f"Stopped at step {state.step:,} {done}. To continue: "
                            f"mini-bert resume {escape(f'{out}{import_options()}')}")
        raise typer.Exit(128 + trainer.interrupted)
    output.result(data, f"{state.step:,} steps, {state.tokens:,} tokens in {state.seconds:,.0f} s"
                        f"{best}. The model: {escape(str(out / 'final'))}")
