"""mini-bert probe: what a simple classifier can read from a model's word vectors, with baselines."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from ...core.model import MiniBERT
from ...errors import DataError, InputError
from ...evaluation.cost import with_cost
from ...evaluation.formats.conllu import Sentence, has_entities, missing_header, read_conllu
from ...evaluation.formats.named import reader_of, require_files
from ...evaluation.formats.reading import load_labelled, load_sentences
from ...evaluation.formats.tables import Columns
from ...evaluation.probes.probing import MIX, TASKS, ProbeData, ProbeOptions, ProbeProgress, probe
from ...evaluation.probes.text_probing import probe_texts
from ...evaluation.statistics import Interval
from ...evaluation.suite.result_cache import cached_result
from ...text.tables import is_table
from ...text.tokenizer import Tokenizer
from ..config_file import ConfigOption
from ..output import FreshOption, Output, SeedOption, ThreadsOption, progress_bar, shown_cost, table
from ..table_options import EncodingOption, LabelColumnOption, TextColumnOption
from ..use.inference import Model, opened

TEXTS = "texts"
_FIGURES = {"uuas": "UUAS", "distance_spearman": "DSpr", "depth_spearman": "depth Spearman",
            "root_accuracy": "root accuracy"}


def probe_command(task: Annotated[str, typer.Argument(metavar="pos|dep|deplabel|ner|texts", help="Parts of speech, "
                                                      "dependency trees, dependency relations, entities, or labels of "
                                                      "whole texts.")],
                  train: Annotated[str, typer.Option(metavar="FILE", help="Training data: CoNLL-U; for pos and ner "
                                                     "also tables of lists, for ner CoNLL columns or "
                                                     "hub:NAME\\[:CONFIG]\\[:SPLIT], for texts tables.")],
                  test: Annotated[str, typer.Option(metavar="FILE", help="Test data.")],
                  dev: Annotated[str | None, typer.Option(metavar="FILE", help="Development data, to decide when to "
                                                                               "stop and which layer is best. "
                                                                               "Default: a tenth of --train.")] = None,
                  model: Model = "mini",
                  layers: Annotated[str | None, typer.Option(metavar="NAME,...", help="Some of embeddings, hidden_0, "
                                                             "... and final_hidden. Default: all.")] = None,
                  mlp: Annotated[bool, typer.Option("--mlp", help="Add a probe with a hidden layer; not dep.")] = False,
                  seeds: Annotated[int, typer.Option(min=1, help="Runs of each probe.")] = 3,
                  rank: Annotated[int, typer.Option(min=1, help="Rank of the structural probe (for dep).")] = 64,
                  pooling: Annotated[str | None, typer.Option(
                      help="The vector of a word from its pieces: ends (first and last, side by side), mean, first or "
                           "last. Default: ends, and mean for dep.")] = None,
                  max_samples: Annotated[int | None, typer.Option(min=2, help="Maximum number of sentences or texts to "
                                                                  "train on and to choose by, drawn by the seed; the "
                                                                  "test set stays whole.")] = None,
                  text_column: TextColumnOption = None, label_column: LabelColumnOption = None,
                  encoding: EncodingOption = None,
                  threads: ThreadsOption = 0, fresh: FreshOption = False, config: ConfigOption = None,
                  seed: SeedOption = 0, *, output: Output) -> None:
    """Probe a model's vectors, layer by layer: words for parts of speech, dependencies or entities, texts for labels.

    Baselines: the majority label, word-type memory or a bag of words, the same probe on an untrained model, and, for
    words, a control task.

    Example: mini-bert probe pos --model mini --train eval/small-ud-train.conllu --test eval/small-ud-test.conllu

    Example: mini-bert probe texts --train reviews/train.tsv --test reviews/dev.tsv

    Example: mini-bert probe pos --config probing --train eval/small-ud-train.conllu --test eval/small-ud-test.conllu
    """
    if task not in (*TASKS, TEXTS):
        raise InputError(f"There is no task {task!r} to probe; choose one of {', '.join((*TASKS, TEXTS))}.")
    columns = Columns(tuple(text_column or ()), tuple(label_column or ()), encoding)
    if task != TEXTS and columns != Columns():
        raise InputError("--text-column, --label-column and --encoding apply only to tables of texts.")
    options = ProbeOptions(layers=tuple(name.strip() for name in layers.split(",")) if layers is not None else None,
                           mlp=mlp, seeds=seeds, seed=seed, max_samples=max_samples, threads=threads, rank=rank,
                           pooling=pooling)
    network, tokenizer = opened(model)
    with progress_bar(quiet=output.silent) as bar:
        bars: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in bars:
                bars[what] = bar.add_task(what, total=total)
            bar.update(bars[what], completed=done, visible=done < total)

        def compute() -> dict[str, Any]:
            if task == TEXTS:
                return _of_texts(network, tokenizer, (train, test, dev), columns, options, progress)
            data = ProbeData(_read(train, task), _read(test, task), None if dev is None else _read(dev, task))
            return probe(network, tokenizer, task, data, options, progress)

        asked = {"task": task, "layers": options.layers, "mlp": mlp, "seeds": seeds, "seed": seed, "rank": rank,
                 "max_samples": max_samples, "pooling": pooling, "dev": dev is not None, "columns": asdict(columns)}
        files = [train, test, *([dev] if dev is not None else [])]
        if task not in ("ner", TEXTS):
            require_files(files, f"{task} is read from CoNLL-U")
        for file in files:
            if not Path(file).is_file() and reader_of(file) is None:
                raise InputError(f"There is no file {file}.")
            if task == "ner" and has_entities(file, without_header=True):
                raise DataError(missing_header(file))
        found = cached_result(f"probe-{task}", asked, [model, *files], with_cost(compute), fresh=fresh)
    shown = {"dep": _trees, TEXTS: _texts}.get(task, _labels)(found)
    counts = "; ".join(split + " " + ", ".join(f"{figures[what]:,} {what}" for what in ("texts", "sentences", "words")
                                               if what in figures) for split, figures in found["sets"].items())
    if task == "ner" and any(Path(file).suffix == ".conllu" for file in files):
        found["notes"] = [*found["notes"], "entities come from Entity= in CoNLL-U: every mention, including pronouns"]
    notes = [escape(f"note: {note}") for note in found["notes"]]
    output.result(
        {"model": model, "train": train, "test": test, "dev": dev,
         "seed": seed, **found}, *shown, "", counts, *notes,
        shown_cost(found))


def _read(path: str, task: str) -> list[Sentence]:
    """Read CoNLL-U or a table of lists; for named entities also CoNLL columns and names such as hub:NAME."""
    return load_sentences(path) if task == "ner" or is_table(path) else read_conllu(path)


def _of_texts(model: MiniBERT, tokenizer: Tokenizer, files: tuple[str, str, str | None], columns: Columns,
              options: ProbeOptions, progress: ProbeProgress) -> dict[str, Any]:
    """The probe of texts, whose columns are those of the training data where they are there."""
    first = load_labelled(files[0], columns)
    test, dev = (None if file is None else load_labelled(file, columns, known=first.columns) for file in files[1:])
    assert test is not None
    found = probe_texts(model, tokenizer, first.records, test.records, None if dev is None else dev.records, options,
                        progress)
    return {**found, "notes": [*(part.says for part in (first, test, dev) if part is not None and part.says),
                               *found["notes"]]}


def _shown(figures: dict[str, Any], name: str, scale: float = 100.0, digits: int = 1) -> str:
    return Interval(**figures[name]).shown(digits, scale) if name in figures else ""


def _points(difference: float) -> str:
    return f"{abs(100 * difference):.1f} points {'above' if difference > 0 else 'BELOW'}"


def _labels(found: dict[str, Any]) -> list[Any]:
    with_f1 = found["figure"] == "f1"
    columns = ["accuracy", *(["entity F1"] if with_f1 else []), "random init", *(["its F1"] if with_f1 else []),
               "control", "selectivity"]
    rows = table("", *columns, right=tuple(columns))
    for name, figures in found["baselines"].items():
        rows.add_row(name, f"{100 * figures['accuracy']:.1f}", *([f"{100 * figures['f1']:.1f}"] if with_f1 else []))
    verdict = found["verdict"]
    for row in found["rows"]:
        best = row["layer"] == verdict["layer"] and row["probe"] == "linear"
        name = f"{row['probe']}, {'learned mix' if row['layer'] == MIX else row['layer']}"
        rows.add_row(f"[bold]{name}[/bold]" if best else name, _shown(row, "accuracy"),
                     *([_shown(row, "f1")] if with_f1 else []), _shown(row, "random"),
                     *([_shown(row, "random_f1")] if with_f1 else []), _shown(row, "control"),
                     _shown(row, "selectivity"))
    what = "entity F1" if with_f1 else "accuracy"
    sentence = (f"best layer by dev, linear: {verdict['layer']}, {what} {100 * verdict['score']:.1f}: "
                f"{_points(verdict['above_memory'])} word-type memory ({100 * verdict['memory']:.1f}), "
                f"{_points(verdict['above_random'])} random init ({100 * verdict['random']:.1f}, "
                f"{verdict['random_layer']}); selectivity {100 * verdict['selectivity']:.1f}"
                + ("" if verdict["mix"] is None else f"; learned mix {100 * verdict['mix']:.1f}"))
    mixes = [f"weights of the mix ({row['probe']}): {', '.join(f'{weight:.2f}' for weight in row['mix'])}"
             for row in found["rows"] if "mix" in row]
    return [rows, "", sentence, *mixes]


def _texts(found: dict[str, Any]) -> list[Any]:
    columns = ("accuracy", "random init")
    rows = table("", *columns, right=columns)
    for name, figures in found["baselines"].items():
        rows.add_row(name, f"{100 * figures['accuracy']:.1f}")
    verdict = found["verdict"]
    for row in found["rows"]:
        name = f"{row['probe']}, {row['layer']}"
        best = row["layer"] == verdict["layer"] and row["probe"] == "linear"
        rows.add_row(f"[bold]{name}[/bold]" if best else name, _shown(row, "accuracy"), _shown(row, "random"))
    return [rows, "", f"best layer by dev, linear: {verdict['layer']}, accuracy {100 * verdict['score']:.1f}: "
            f"{_points(verdict['above_bag_of_words'])} a bag of words ({100 * verdict['bag_of_words']:.1f}), "
            f"{_points(verdict['above_random'])} random init ({100 * verdict['random']:.1f}, "
            f"{verdict['random_layer']})"]


def _trees(found: dict[str, Any]) -> list[Any]:
    columns = tuple(_FIGURES.values())
    rows = table("", *columns, right=columns)
    for name, figures in found["baselines"].items():
        rows.add_row(name, *(f"{100 * figures[figure]:.1f}" for figure in _FIGURES))
    verdict = found["verdict"]
    for row in found["rows"]:
        name = f"[bold]{row['layer']}[/bold]" if row["layer"] == verdict["layer"] else row["layer"]
        rows.add_row(name, *(_shown(row["model"], figure) for figure in _FIGURES))
    for row in found["rows"]:
        rows.add_row(f"random init, {row['layer']}", *(_shown(row["random"], figure) for figure in _FIGURES))
    curve = table("rank", *columns, right=("rank", *columns), title=f"{verdict['layer']}, by rank of the probe")
    for point in found["rank_curve"]:
        curve.add_row(str(point["rank"]), *(f"{100 * point[figure]:.1f}" for figure in _FIGURES))
    sentence = (f"best layer by dev, rank {found['rank']}: {verdict['layer']}, UUAS {100 * verdict['score']:.1f}: "
                f"{_points(verdict['above_chain'])} the linear chain ({100 * verdict['chain']:.1f}), "
                f"{_points(verdict['above_random'])} random init ({100 * verdict['random']:.1f}, "
                f"{verdict['random_layer']})"
                + ("" if verdict["embeddings"] is None else
                   f", {_points(verdict['above_embeddings'])} the embeddings ({100 * verdict['embeddings']:.1f})"))
    return [rows, "", curve, "", sentence]
