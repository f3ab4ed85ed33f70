"""Worker processes end, whatever happens to them or to the process that started them, and need no guard in a script."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mini_bert import processes
from mini_bert.errors import CorpusError
from mini_bert.processes import Worker, WorkerEndedError, worker_pool
from mini_bert.text.corpora import prepare as preparing
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.opening import load_tokenizer

# the tokenizer of 8,192 pieces is larger than a pipe holds, so a worker that never reads it would block its parent
PREPARE = """
import mini_bert
from mini_bert.text.corpora import prepare as preparing
preparing._BLOCK = 2000
preparing.prepare(["text.txt"], mini_bert.load_tokenizer("mini"), "made", workers=2, longest_document=100)
print("prepared")
"""


def run(arguments: list[str], folder: Path, script: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=folder, input=script, capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.fixture
def text(tmp_path) -> Path:
    (tmp_path / "text.txt").write_text("".join(f"The {n}th cat sat on a mat.\n" for n in range(300)))
    return tmp_path


def test_a_script_without_a_guard_uses_several_processes(text):
    (text / "script.py").write_text(PREPARE)
    done = run(["script.py"], text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "prepared\n", "")      # it ran once, not in workers
    prepare([str(text / "text.txt")], load_tokenizer("mini"), text / "alone", workers=1, longest_document=100)
    assert np.array_equal(Corpus(text / "made").tokens, Corpus(text / "alone").tokens)


def test_a_script_from_standard_input_uses_several_processes(text):
    done = run(["-"], text, PREPARE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "prepared\n", "")


def test_a_fit_in_a_script_without_a_guard_ends_with_a_model(text):
    (text / "script.py").write_text(
        "from mini_bert.fit import fit\n"
        "from mini_bert.text.corpora import prepare as preparing\n"
        "preparing._BLOCK = 2000\n"
        "print(fit('text.txt', 'made', budget='1s', config='debug').model)\n")
    done = run(["script.py"], text)
    assert (done.returncode, done.stderr) == (0, "")
    assert (text / done.stdout.strip() / "model.safetensors").exists()


def test_a_tokenizer_of_the_script_itself_is_used_in_this_process(text):
    done = run(["-"], text, PREPARE.replace("import mini_bert\n", """import mini_bert
class Own(mini_bert.WordPieceTokenizer):
    pass
""", 1).replace('mini_bert.load_tokenizer("mini")', 'Own.load("mini")'))
    assert (done.returncode, done.stdout, done.stderr) == (0, "prepared\n", "")


def test_a_worker_that_is_killed_is_one_sentence(text, monkeypatch):
    monkeypatch.setattr(preparing, "_BLOCK", 2000)
    workers: list[Worker] = []

    class Watched(Worker):
        def __init__(self):
            super().__init__()
            workers.append(self)

    def kill(read: int, written: int) -> None:
        for worker in workers:
            os.kill(worker._process.pid, signal.SIGKILL)

    monkeypatch.setattr(processes, "Worker", Watched)
    with pytest.raises(CorpusError, match=r"A worker process was killed, .* fewer workers\."):
        prepare([str(text / "text.txt")], load_tokenizer("mini"), text / "made", workers=2, progress=kill)
    assert [path.name for path in text.iterdir()] == ["text.txt"]


def test_a_worker_that_dies_before_it_reads_is_noticed():
    worker = Worker()
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(WorkerEndedError):
        worker.call(len, b"x" * 1_000_000)                    # more than a pipe holds
    worker.close()


def test_the_error_of_a_call_is_raised_with_where_it_happened():
    with worker_pool(1, len, "") as submit:
        error = submit(Path.read_text, Path("nowhere.txt")).exception()
        assert isinstance(error, FileNotFoundError)
        assert "pathlib" in error.__notes__[0]
        assert isinstance(submit(prepare, ["nowhere.txt"], None, "made").exception(), CorpusError)
        assert submit(len, "abc").result() == 3               # and the worker is still there
        submit(print, "not an answer").result()


SLEEP = """
import os, sys, time
from mini_bert.processes import worker_pool
with worker_pool(2, len, "") as submit:
    print(submit(os.getpid).result(), flush=True)
    submit(time.sleep, 600).result()
"""


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_script_and_its_busy_workers(number):
    script = subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    worker = int(script.stdout.readline())
    script.send_signal(number)
    _, errors = script.communicate(timeout=30)
    assert script.returncode == -number
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    deadline = time.monotonic() + 10
    while alive(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(worker)


LAB = """
from pathlib import Path
from mini_bert import register
from mini_bert.core.ops.relu import Activation, CHECKS, FORMULA, relu_backward, relu_forward
from mini_bert.lab.comparison import compare
from mini_bert.lab.experiment import Experiment
register("activation", "own_relu")(Activation(relu_forward, relu_backward, FORMULA, CHECKS))
plan = Experiment.from_dict({"config": "debug", "seeds": [0], "runs": {"one": [], "two": ["model.activation=WORD"]},
                             "set": ["model.vocab_size=8192", "training.steps=1", "training.batch_size=4"]})
found = compare(plan, Path("lab"), data=Path("made"), jobs=2)
print([len(curve.losses) for curve in found.curves], *found.failures.values())
"""


def test_the_lab_runs_several_processes_from_a_script_without_a_guard(text):
    prepare([str(text / "text.txt")], load_tokenizer("mini"), text / "made", workers=1, longest_document=100)
    done = run(["-"], text, LAB.replace("WORD", "relu"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 1]\n", "")


def test_a_script_that_registers_words_and_runs_the_lab_is_told_to_guard_it(text):
    prepare([str(text / "text.txt")], load_tokenizer("mini"), text / "made", workers=1, longest_document=100)
    (text / "script.py").write_text(LAB.replace("WORD", "own_relu"))
    done = run(["script.py"], text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[] This file registers words")
    assert '__name__ == "__main__"' in done.stdout
