"""mini-bert explore: the exported file, and what the command refuses."""

import json
import re
import signal
import sys

import numpy as np
import pytest

from mini_bert.analysis.passes.forward_steps import step_through_forward_pass
from mini_bert.cli import main
from mini_bert.explorer.assets import STYLES
from mini_bert.explorer.export import MISSING, export_page, key_of, page
from mini_bert.explorer.opening import open_session
from mini_bert.explorer.queries import Query

TEXT = "the cat sat on a mat."


def command(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["mini-bert", "explore", *map(str, arguments)])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGPIPE, signal.SIGTERM)}
    with pytest.raises(SystemExit) as end:
        main()
    for number, handler in handlers.items():              # which are those of a command now
        signal.signal(number, handler)
    done = capsys.readouterr()
    return end.value.code, done.out, done.err


def embedded(file):
    return json.loads(re.search(r'id="answers">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)[1])


def test_one_sentence_is_written_to_one_file(capsys, monkeypatch, finished_run, tmp_path):
    file = tmp_path / "cat.html"
    code, out, _ = command(capsys, monkeypatch, "--run", finished_run, "--export", file, TEXT, "--mask", "2",
                           "--target", "2:dog", "--json")
    assert code == 0
    assert json.loads(out)["bytes"] == file.stat().st_size
    answers = embedded(file)["answers"]
    assert answers["info?"]["example"] == {"text": TEXT, "mask": "2", "target": "2:dog"}
    assert answers["info?"]["history"] == []
    asked = {"text": TEXT, "mask": "2", "target": "2:dog"}
    assert answers[key_of("sentence", asked)]["predictions"][0]["target"] == "dog"
    steps = {key: answer for key, answer in answers.items() if key.startswith("step?")}
    assert len(steps) == 4
    assert len({answer["loss_before"] for answer in steps.values()}) == 1         # each from the same beginning


def test_the_file_has_every_step_and_what_it_lacks_is_said(tmp_path, finished_run):
    session = open_session(run=finished_run)
    before = session.model.params.flat.copy()
    export_page(session, Query(TEXT, (2,)), tmp_path / "cat.html")
    assert session.model.params.flat.tobytes() == before.tobytes()
    data = embedded(tmp_path / "cat.html")
    passed = step_through_forward_pass(session.model, session.tokenizer, TEXT, mask=[2])
    for step in passed.steps[1:]:
        asked = {"text": TEXT, "mask": "2", "of": "forward", "name": step.name}
        assert data["answers"][key_of("matrix", asked)]["shape"] == list(step.shape)
        for index in data["answers"]["info?"]["embedded"]["cells"][step.name]:
            cell = data["answers"][key_of("cell", {"text": TEXT, "mask": "2", "name": step.name,
                                                   "index": ",".join(map(str, index))})]
            assert cell["value"] == float(np.asarray(step.array)[tuple(index)])
    assert data["missing"] == MISSING


def test_the_file_asks_for_nothing_and_text_cannot_break_out_of_it():
    html = page({"answers": {"x": "</script><script>alert(1)</script>"}, "missing": MISSING}).decode()
    assert html.count("<script") == 3
    assert html.count("<style>") == len(STYLES)
    assert "default-src 'none'" in html
    assert "alert(1)" in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "http://" not in re.sub(r"http://www\.w3\.org/", "", html)


def test_keys_are_those_of_the_page():
    assert key_of("x", {"b": "1 2", "a": "~*é\n"}) == "x?a=%7E*%C3%A9%0A&b=1+2"


@pytest.mark.parametrize(("arguments", "words"), [
    (["--export", "x.html"], "give the sentence as TEXT"), (["--export", "nowhere/x.html", "the cat"], "no directory"),
    (["--model", "nothing-there", "--export", "x.html", "the cat"], "nothing-there"),
    (["--run", "nothing-there", "--export", "x.html", "the cat"], "nothing-there"),
    (["--export", "x.html", "the cat", "--mask", "x"], "whole numbers"),
    (["--export", "x.html", "the cat", "--mask", "0"], r"\[CLS\]"),
    (["--export", "x.html", "the cat", "--target", "cat"], "3:cat"),
    (["--export", "x.html", "word " * 80], "takes 64"), (["--export", "x.html", "word " * 200], "takes 128")])
def test_what_cannot_be_is_refused_in_one_sentence(capsys, monkeypatch, tmp_path, arguments, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(capsys, monkeypatch, *arguments)
    assert code == 2
    assert re.search(words, err)
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_its_libraries_the_command_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr("mini_bert.cli.look.explore.find_spec", lambda name: None)
    code, _, err = command(capsys, monkeypatch, "--no-browser")
    assert code == 2
    assert "pip install 'mini-bert[explorer]'" in err
