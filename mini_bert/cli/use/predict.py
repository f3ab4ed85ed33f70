"""mini-bert predict: the answers of a fine-tuned model to texts, lines, or the rows of a table."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from ...core.modules.heads.tasks import Answers
from ...errors import InputError
from ...evaluation.formats.tables import Columns, LabelledTable, read_labelled
from ...evaluation.tasks.answers import LineAnswer, answer_lines, answer_records, too_long
from ...evaluation.tasks.storage import SavedTask, load_task
from ...files import output_file, write_files
from ...text.tables import Table
from ...workers import workers
from ..output import Output, ThreadsOption, table
from ..table_options import EncodingOption, TextColumnOption
from .inference import said_of_blank, text_lines

_SHOWN = 20                   # rows of a table on the screen
_PAIRS = {Answers.TOKENS: False, Answers.SPAN: True}          # what other models take, depends on their data
_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def predict_command(model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR",
                                                        help="A model that `mini-bert finetune` saved, or a "
                                                             "classifier of transformers.")],
                    texts: Annotated[list[str] | None, typer.Argument(
                        metavar="TEXT", help="Texts, or lines of standard input; separate the two texts of a "
                                                  "pair, or question and text, by a tab.")] = None,
                    data: Annotated[Path | None, typer.Option(
                        "--data", "-d", metavar="FILE", help="A table with a text in each row, or a pair, such as a "
                                                             "question and its context: CSV, TSV, JSON, JSON lines "
                                                             "or Parquet.")] = None,
                    text_column: TextColumnOption = None, encoding: EncodingOption = None,
                    out: Annotated[Path | None, typer.Option(
                        "--out", "-o", metavar="FILE", help="Write all answers to this .csv, .tsv or .jsonl.")] = None,
                    threads: ThreadsOption = 0, *, output: Output) -> None:
    """Predict with a fine-tuned model: labels or numbers of texts, entities, or the answer to a question.

    Example: mini-bert predict --model films.model "a charming and often affecting journey"

    Example: mini-bert predict --model reviews.model --data new.csv --out answers.csv
    """
    if out is not None:
        output_file(out, (*_DELIMITERS, ".jsonl"), [data] if data is not None else [])
    if data is not None and texts:
        raise InputError("Give texts or --data, not both.")
    if data is None and (text_column or encoding):
        option = "--text-column" if text_column else "--encoding"
        raise InputError(f"{option} applies only to a table given with --data.")
    saved, said = load_task(model), list[str]()
    with workers(threads) as team:
        if data is not None:
            read = _read(saved, data, Columns(tuple(text_column or ()), encoding=encoding))
            output.say(escape(read.says))
            found = answer_records(saved, read.records, team)
        else:
            if not (given := texts or []):
                lines = text_lines(None, blank=True)
                given = [line.text for line in lines]
                said = said_of_blank(lines, "its answer is that for an empty text")
            found = answer_lines(saved, given, team)
    said += too_long(found, saved.model.config.max_seq_length)
    if out is not None:
        shown = _rows(found, None if data is None else read.table)
        write_files(out.parent, {out.name: _written(shown, out.suffix.lower()).encode("utf-8", "backslashreplace")})
        said.append(f"{len(found):,} answers: {escape(str(out))}")
    some = found if data is None and out is None else found[:_SHOWN]
    if len(some) < len(found):
        said.insert(0, f"The first {len(some)} of {len(found):,}.")
    rows = table("answer", "", "text", right=("",))
    for answer in some:
        rows.add_row(Text(answer.shown), f"{answer.probability:.1%}" if answer.probability is not None else "",
                     Text(answer.text))
    output.result({"model": str(model), "task": saved.task, "answers": [answer.to_dict() for answer in found],
                   "out": str(out) if out else None}, rows, *said)


def _read(saved: SavedTask, data: Path, columns: Columns) -> LabelledTable:
    """The texts of a table, from the columns that the model learned from if they are there, too."""
    found = read_labelled(data, columns, labelled=False, known=Columns(saved.columns))
    wanted, pairs = _PAIRS.get(saved.model.task.answers, saved.pairs), found.records[0].pair is not None
    if wanted not in (None, pairs):
        raise InputError(f"This model takes {'pairs of texts' if wanted else 'single texts'}; {data} was read as "
                         f"{'pairs' if pairs else 'single texts'}: choose the columns with --text-column.")
    return found


def _rows(found: list[LineAnswer], source: Table | None) -> list[dict[str, Any]]:
    """The rows of the table, or the texts, with the answer and the probabilities of all labels."""
    rows = []
    for number, answer in enumerate(found):
        own: dict[str, Any] = {"text": answer.text} if source is None else \
            dict(zip(source.columns, source.rows[number], strict=True))
        rows.append({**own, "answer": answer.shown, **{f"p({label})": round(p, 6) for label, p
                                                       in answer.probabilities.items()}})
    return rows


def _written(rows: list[dict[str, Any]], suffix: str) -> str:
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    made = StringIO(newline="")
    writer = csv.DictWriter(made, list(rows[0]), delimiter=_DELIMITERS[suffix], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()
