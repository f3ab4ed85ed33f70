"""mini-bert find-lr and overfit: two short tests before a long run."""

from typing import Annotated, Any

import typer

from ...core.model import MiniBERT
from ...objectives.objective import Batches, CorpusObjective
from ...text.corpora.corpus import Corpus
from ...training.config import TrainingConfig, load_run_config, make_objective
from ...training.finder import find_learning_rate
from ...training.initial_model import new_model
from ...training.overfit import overfit
from ...training.runs.run import require_fitting
from ..output import Output, SeedOption, verdict
from ..training_display import TrainingDisplay
from .found_rates import search_data, shown_search
from .pretrain import Config, Data, Set, Threads


def find_lr_command(data: Data, config: Config = "mini", changes: Set = None,
                    low: Annotated[float, typer.Option(help="The lowest rate.")] = 1e-5,
                    high: Annotated[float, typer.Option(help="The highest rate.")] = 1.0,
                    steps: Annotated[int, typer.Option(min=10, help="Steps of the longest trials.")] = 100,
                    threads: Threads = 0, seed: SeedOption = 0, *, output: Output) -> None:
    """Find a learning rate for pre-training: short runs at many rates from the same start, then longer runs at the
    better rates.

    For fine-tuning, see mini-bert finetune --find-lr.

    Example: mini-bert find-lr --config small --data corpus.mb --set model.vocab_size=1000 --steps 20
    """
    model, training, objective, batches = _prepare(data, config, changes, threads, seed)
    with output.progress("trials") as progress:
        search = find_learning_rate(model, batches, training, low=low, high=high, steps=steps, objective=objective,
                                    progress=progress)
    output.result(search_data(search), *shown_search(search))


def overfit_command(data: Data, config: Config = "mini", changes: Set = None,
                    target: Annotated[float, typer.Option(help="The loss to reach.")] = 0.05,
                    steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps.")] = 400,
                    batch_size: Annotated[int, typer.Option(min=1, help="Sequences in the batch.")] = 8,
                    threads: Threads = 0, seed: SeedOption = 0, *, output: Output) -> None:
    """Train on one batch until its loss is nearly zero. A correct model can do this; a model that cannot has a bug.

    Exits with 1 if the target loss is not reached.

    Example: mini-bert overfit --config small --data corpus.mb --set model.vocab_size=1000 --batch-size 2
    """
    sets = [*(changes or []), f"training.batch_size={batch_size}", f"training.steps={steps}",
            "training.warmup_steps=10"]
    model, training, objective, batches = _prepare(data, config, sets, threads, seed)
    with TrainingDisplay(output.quiet) as display:
        loss, taken = overfit(model, batches[0], training, target=target, listener=display, objective=objective)
    reached = loss < target
    output.result(
        {"loss": loss, "steps": taken, "target": target, "reached": reached},
        f"{verdict(reached)}  loss {loss:.4f} on one batch after {taken} steps; the target was {target}.")
    if not reached:
        raise typer.Exit(1)


def _prepare(data: Data, config: str, changes: list[str] | None, threads: int,
             seed: int) -> tuple[MiniBERT, TrainingConfig, CorpusObjective[Any, Any], Batches[Any]]:
    settings = [*(changes or []), f"training.seed={seed}", f"training.threads={threads}"]
    model, training = load_run_config(config, settings)
    training, corpus = training.resolved(model), Corpus(data)
    require_fitting(corpus, model)
    network = new_model(model, training, corpus)
    objective = make_objective(training, network)
    return network, training, objective, objective.batches(corpus, training)
