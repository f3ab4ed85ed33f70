"""An answer runs in a process of its own: whatever it does there, the grader grades, and goes on."""

import os
import signal
import subprocess
import sys
import time

import pytest

from mini_bert.exercises import answer as answers
from mini_bert.exercises import check_file, exercise
from mini_bert.exercises.stubs import solution_source, stub_source


def graded(tmp_path, body: str, top: str = ""):
    """The grade of a file whose backward has this body."""
    stub = stub_source(exercise("linear"))
    path = tmp_path / "linear.py"
    path.write_text(top + stub[: stub.index("    raise NotImplementedError")] + body)
    return check_file("linear", path)


@pytest.mark.parametrize(("body", "words"), [
    ("    while True:\n        pass\n", "takes longer than 1 seconds and was stopped"),
    ("    import time\n    time.sleep(1000)\n", "takes longer than 1 seconds and was stopped"),
    ("    import os\n    os._exit(0)\n", "ended its process instead of returning a result"),
    ("    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)\n", "ended its process"),
    ("    import sys\n    sys.exit(0)\n", "SystemExit: 0."),
    ("    return bytearray(1 << 40)\n", "MemoryError"),
    ("    import numpy as np\n    return np.ones((1 << 16, 1 << 16))\n", "Unable to allocate"),
    ("    import numpy as np\n    return np.ones(1 << 23), dy, dy\n", "sent more than it may"),
    ("    import builtins\n    for name in ('len', 'isinstance', 'type', 'dict', 'str'):\n"
     "        delattr(builtins, name)\n    return dy, dy, dy\n", ""),
    ("    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
])
def test_an_answer_that_does_not_return_is_a_sentence(tmp_path, monkeypatch, body, words):
    monkeypatch.setattr(answers, "SECONDS", 1.0 if "time" in body or "while" in body else 20.0)
    monkeypatch.setattr(answers, "_LARGEST_REPLY", 1 << 22)
    grade = graded(tmp_path, body)
    assert not grade.passed
    assert grade.problem
    assert words in grade.problem
    assert "\n" not in grade.problem


@pytest.mark.parametrize("top", [
    "import mini_bert.exercises.grading as g\ng._row = None\ng._flaw = lambda *a: ''\n"
    "g.relative_error = lambda *a: 0.0\n",
    "import numpy as np\nnp.allclose = np.array_equal = lambda *a, **b: True\n",
    "import mini_bert.core.gradcheck as c\nc.relative_error = lambda *a: 0.0\nc.TOLERANCE = 1e9\n",
    "import sys\nsys.modules['mini_bert.exercises.exercise'] = None\n",
    "import sys, gc\nfor o in gc.get_objects():\n    if type(o).__name__ == 'Process':\n"
    "        o.call = lambda request: {'result': {'value': True}, 'arguments': []}\n",
])
def test_an_answer_cannot_replace_the_grader(tmp_path, top):
    grade = graded(tmp_path, "    x, W = cache\n    return 0 * (dy @ W.T), x.T @ dy, dy.sum(axis=0)\n", top)
    assert not grade.passed
    assert check_file("linear", _solution(tmp_path)).passed           # and the next answer is graded as before


def test_an_answer_cannot_forge_a_reply_by_printing(tmp_path, capfd):
    body = ("    import os\n    print('{\"result\": 1}')\n    os.write(1, b'garbage')\n    x, W = cache\n"
            "    return dy @ W.T, x.T @ dy, dy.sum(axis=0)\n")
    assert graded(tmp_path, body).passed
    out, err = capfd.readouterr()
    assert out == ""
    assert "garbage" in err


@pytest.mark.parametrize("reply", ["[]", "{}", "nonsense", '{"result": {"npy": "AAAA", "scalar": 0}, "arguments": []}',
                                   '{"result": {"float": "x"}, "arguments": 3}', "[" * 5000])
def test_a_forged_reply_is_refused(tmp_path, reply):
    top = (f"import os\nfor handle in range(3, 30):\n    try:\n        os.write(handle, {reply!r}.encode() + b'\\n')\n"
           "    except OSError:\n        pass\n")
    grade = graded(tmp_path, "    return dy\n", top)
    assert not grade.passed
    assert grade.problem


def test_an_answer_that_ends_between_two_calls_is_a_sentence_on_the_command_line(tmp_path):
    (tmp_path / "linear.py").write_text("import os, threading\n"
                                        "def linear_forward(x, W, b):\n    return x @ W + b, (x, W)\n"
                                        "def linear_backward(dy, cache):\n    return dy\n"
                                        "threading.Timer(0.3, lambda: os._exit(0)).start()\n")
    program = ("import time\nimport mini_bert.cli\nfrom mini_bert.exercises.answer import Answer\n"
               "asks = Answer.call\n"
               "Answer.call = lambda *given, **more: (time.sleep(1), asks(*given, **more))[1]\n"
               "mini_bert.cli.main()")                    # the grader computes for a while between two calls
    done = subprocess.run([sys.executable, "-c", program, "exercise", "check", "linear", "linear.py"], cwd=tmp_path,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 1, done
    assert "ended its process" in done.stdout + done.stderr


def test_sigterm_ends_the_grader_and_the_answer_at_once(tmp_path):
    path, mark = tmp_path / "linear.py", tmp_path / "pid"
    path.write_text(f"import os\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\nwhile True:\n    pass\n")
    process = subprocess.Popen([sys.executable, "-m", "mini_bert", "exercise", "check", "linear", str(path)],
                               cwd=tmp_path, stderr=subprocess.PIPE,
                               env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    deadline = time.monotonic() + 60
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in err
    while _runs(int(mark.read_text())) and time.monotonic() < begin + 10:
        time.sleep(0.02)
    assert not _runs(int(mark.read_text()))
    assert time.monotonic() - begin < 10


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _solution(tmp_path):
    path = tmp_path / "solution.py"
    path.write_text(solution_source(exercise("linear")))
    return path
