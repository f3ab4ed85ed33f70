"""The folder that `mini-bert new practice` makes: the guide, the tutorials and the examples of every --help work in it.

    sentences.txt                 ten sentences
    letters/  corpus/             text, from the documentation that is installed with Python
    reviews.csv  new.csv          opinions with labels, and some without
    reviews/  pairs.csv           the same as GLUE has them, and pairs of texts
    eval/                         tests of grammar, agreement, facts and words, and a treebank; all of them tiny
    lab.yaml                      an experiment
    tokenizer/  corpus.mb/        a vocabulary of corpus/, and corpus/ as tokens
    runs/mine  runs/gpt           a training run of sixty steps, and a causal one of twenty
"""

from collections.abc import Callable
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path

from ..errors import CorpusError
from ..files import write_files
from ..text.corpora.corpus import MANIFEST
from ..text.corpora.prepare import prepare
from ..text.corpora.pydocs import pydocs
from ..text.opening import load_tokenizer
from ..text.tokenizer_files import TOKENIZER_JSON
from ..text.wordpiece.learn import count_words, learn_vocabulary
from ..text.wordpiece.tokenizer import WordPieceTokenizer
from ..training.config import load_run_config
from ..training.runs.run import resume_run, start_run

_LINES = 4000                 # of the documentation
_PIECES = 1000
# name of a run -> its preset, steps and settings
_RUNS = {"mine": ("small", 60, ("training.log_every=5", "training.eval_every=20")),
         "gpt": ("mini-gpt", 20, ("model.num_layers=1", "model.hidden_size=64", "model.intermediate_size=128",
                                  "training.batch_size=8", "training.eval_every=20"))}


def make_practice_folder(folder: Path, say: Callable[[str], None] = lambda sentence: None) -> None:
    """Make the folder; what is there from an earlier call that was interrupted stays."""
    say("Writing texts.")
    for name, text in _texts().items():
        place = folder / name
        if place.exists() and place.read_bytes() != text:
            raise CorpusError(f"{place} exists already, with another content; choose another folder.")
        place.parent.mkdir(parents=True, exist_ok=True)
        write_files(place.parent, {place.name: text})
    corpus = [str(folder / "corpus" / name) for name in ("a.txt", "b.txt")]
    if not (folder / "tokenizer" / TOKENIZER_JSON).exists():
        say("Learning a vocabulary.")
        lines = (line for file in corpus for line in Path(file).read_text("utf-8").splitlines())
        WordPieceTokenizer(learn_vocabulary(count_words(lines), _PIECES)).save(folder / "tokenizer")
    if not (folder / "corpus.mb" / MANIFEST).exists():
        say("Preparing a corpus.")
        prepare(corpus, load_tokenizer(folder / "tokenizer"), folder / "corpus.mb")
    for name, (preset, steps, changes) in _RUNS.items():
        run = folder / "runs" / name
        if not (run / "final").exists():
            say(f"Training for {steps} steps: {run}.")
            model, training = load_run_config(preset, [*changes, f"training.steps={steps}", "training.threads=1",
                                                       f"model.vocab_size={_PIECES}"])
            trainer = resume_run(run) if run.exists() else start_run(model, training, folder / "corpus.mb", run)
            trainer.train()
            if trainer.interrupted is not None:
                raise KeyboardInterrupt


def _texts() -> dict[str, bytes]:
    """Name -> content of the files that are no work to make."""
    lines = list(islice(pydocs(), _LINES))
    parts = {"corpus/a.txt": lines[: _LINES // 2], "corpus/b.txt": lines[_LINES // 2 :], "letters/one.txt": lines[::2]}
    made = {name: "\n".join(part) + "\n" for name, part in parts.items()}
    return dict(_shipped(files(__package__) / "files")) | {name: text.encode() for name, text in made.items()}


def _shipped(folder: Traversable, prefix: str = "") -> list[tuple[str, bytes]]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{prefix}{entry.name}"
        found += _shipped(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found
