"""The server, asked as a browser would: answers, limits, and what it refuses."""

import asyncio
import dataclasses
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
from base64 import b64decode
from threading import Thread
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the explorer's server needs starlette: pip install 'mini-bert[explorer]'")

from mini_bert import MiniBERT
from mini_bert.analysis.passes.backward_steps import backward_pass
from mini_bert.analysis.passes.forward_steps import forward_pass
from mini_bert.checks.check_all import models_to_check
from mini_bert.errors import ConfigError, InputError
from mini_bert.evaluation.result import to_json
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.assets import FILES, FONT, MODULES, STATIC
from mini_bert.explorer.derivations import derivations
from mini_bert.explorer.queries import read_query
from mini_bert.explorer.runs import Run
from mini_bert.explorer.server import PORT, create_app
from mini_bert.explorer.session import Session
from mini_bert.serve.addresses import is_loopback, open_socket
from mini_bert.training.update import Update

TEXT = "the cat sat on a mat ."
SENTENCE = {"text": TEXT, "mask": "2"}
OWN = {"content-type": "application/json", "x-mini-bert": "1"}


class Answer:
    def __init__(self, messages):
        self.status = messages[0]["status"]
        self.headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages)

    @property
    def json(self):
        return json.loads(self.body)


def request(app, path, parameters=None, *, method="GET", host="127.0.0.1:8640", headers=None, body=b"", hosts=None):
    """One request to the application, without a network."""
    messages = []
    names = [host] if hosts is None else hosts
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
             "path": path, "raw_path": path.encode(), "root_path": "",
             "query_string": urlencode(parameters or {}).encode(),
             "headers": [(b"host", name.encode("latin-1")) for name in names]
             + [(key.encode(), value.encode()) for key, value in (headers or {}).items()],
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8640)}
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return given.pop(0) if given else {"type": "http.disconnect"}

    async def send(message):
        messages.append(message)

    asyncio.run(app(scope, receive, send))
    return Answer(messages)


@pytest.fixture
def app(session):
    return create_app(session)


def array(packed):
    return np.frombuffer(b64decode(packed["data"]), "<f4").reshape(packed["shape"])


# -------------------------------------------------------------------- who may ask


@pytest.mark.parametrize("host", ["127.0.0.1:8640", "localhost:8640", "LOCALHOST:8640", "[::1]:8640"])
def test_its_own_names_are_answered(app, host):
    assert request(app, "/", host=host).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8640", "127.0.0.1", "127.0.0.1:80", "localhost:8641",
                                  "127.0.0.1:8640.evil.example", "", "192.168.1.5:8640", "localhost:", "[::1]",
                                  "127.0.0.1:8640:8640", "localhost:８640".encode().decode("latin-1")])
def test_other_hosts_names_are_refused(app, host):
    for path in ("/", "/api/info", "/nothing"):
        answer = request(app, path, host=host)
        assert answer.status == 421
        assert "Host" in answer.json["error"]


def test_a_request_names_its_host_once(app):
    assert request(app, "/", hosts=[]).status == 421
    assert request(app, "/", hosts=["127.0.0.1:8640", "evil.example"]).status == 421


def test_the_chosen_host_is_answered_too_and_all_addresses_by_number(session):
    chosen = create_app(session, host="192.168.1.5", port=9000)
    assert request(chosen, "/", host="192.168.1.5:9000").status == 200
    assert request(chosen, "/", host="192.168.1.6:9000").status == 421
    every = create_app(session, host="0.0.0.0", port=9000)
    assert request(every, "/", host="192.168.1.6:9000").status == 200
    assert request(every, "/", host="evil.example:9000").status == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site", "anything"])
def test_another_page_cannot_make_it_compute(app, session, monkeypatch, site):
    monkeypatch.setattr(session, "passes", lambda query: pytest.fail("nothing is computed"))
    for path in ("/api/backward", "/api/info", "/app.js"):
        answer = request(app, path, SENTENCE, headers={"sec-fetch-site": site})
        assert answer.status == 403
        assert answer.json == {"error": "This server answers only to its own page."}
    assert request(app, "/", headers={"sec-fetch-site": site}).status == 200            # a link to the page


@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}])
def test_its_own_page_the_user_and_programs_are_answered(app, headers):
    assert request(app, "/api/sentence", SENTENCE, headers=headers).status == 200


def test_the_page_may_load_nothing_from_elsewhere(app):
    policy = request(app, "/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert request(app, "/api/info").headers["x-content-type-options"] == "nosniff"


# -------------------------------------------------------------------- files


def test_exactly_the_listed_files_are_served(app):
    assert {path for path in STATIC.rglob("*.*") if path.is_file()} == set(FILES.values()) - {FONT}
    for address, path in FILES.items():
        assert request(app, address).body == path.read_bytes()


def test_every_derivation_is_served_as_a_page_without_scripts(app):
    assert "softmax" in derivations()
    for name in derivations():
        answer = request(app, f"/derivation/{name}")
        assert answer.status == 200
        page = answer.body.decode()
        assert "<script" not in page
        assert " style=" not in page
        text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", page, flags=re.DOTALL)
        assert re.findall(r"[$\\\ue000].{20}", text) == []      # each formula has become MathML
    assert request(app, "/derivation/softmax").body.decode().count("<math") > 20
    assert request(app, "/derivation/no-such-page").status == 404


@pytest.mark.parametrize("path", ["/static/app.js", "/../session.py", "/..%2fsession.py", "/index.html", "/session.py",
                                  "//etc/passwd", "/base.css/", "/api", "/api/nothing", "/api/../info", "/.", "/%00"])
def test_other_paths_are_not_there(app, path):
    answer = request(app, path)
    assert answer.status == 404
    assert answer.json == {"error": "There is nothing at this address."}


def test_the_page_weighs_less_than_300_kilobytes():
    assert sum(path.stat().st_size for path in FILES.values()) <= 300_000


def test_the_page_names_nothing_elsewhere():
    for path in set(FILES.values()) - {FONT}:
        text = path.read_text("utf-8").replace("http://www.w3.org/", "")
        assert "http://" not in text
        assert "https://" not in text
    page = (STATIC / "index.html").read_text("utf-8")
    assert page.count("<script") == 1                     # and that one has a source
    for module in MODULES:
        assert "innerHTML" not in (STATIC / module).read_text("utf-8")


# -------------------------------------------------------------------- answers


def test_every_question_about_a_sentence_is_answered(app):
    more = {"matrix": {"name": "Q_0"}, "cell": {"name": "Q_0", "index": "0,2,3"},
            "verify": {"name": "dQ_0", "index": "0,2,3"}, "saliency": {"position": "2"},
            "weight": {"name": "W_Q_0", "index": "3,5"}, "intervene": {"off": "0.1", "edit": "W_Q_0:3,5:0.7"}}
    for name in ANSWERS.keys() - {"run", "checkpoint"}:
        answer = request(app, f"/api/{name}", SENTENCE | more.get(name, {}))
        assert answer.status == 200, answer.body
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"


def test_numbers_are_those_of_the_analysis(app, session):
    ids = session.tokenizer.encode(TEXT)
    target = ids[2]
    ids[2] = session.tokenizer.vocabulary.mask
    forward = forward_pass(session.model, ids)
    backward = backward_pass(forward, {2: target})
    steps = request(app, "/api/forward", SENTENCE).json["steps"]
    assert [step["name"] for step in steps] == forward.names
    for step in forward.steps[1:]:
        got = request(app, "/api/matrix", SENTENCE | {"of": "forward", "name": step.name}).json
        assert np.array_equal(array(got), step.array)
        assert [axis["kind"] for axis in got["axes"]].count("head") == (step.array.ndim == 3)
    answer = request(app, "/api/backward", SENTENCE).json
    assert answer["loss"] == backward.loss
    for step in backward:
        got = request(app, "/api/matrix", SENTENCE | {"of": "backward", "name": step.name}).json
        assert np.array_equal(array(got), step.array)


def test_a_parameter_is_shown_and_of_an_embedding_table_the_rows_in_use(app, session):
    W = request(app, "/api/matrix", SENTENCE | {"of": "parameter", "name": "W_Q_0"}).json
    assert np.array_equal(array(W), session.model.params["W_Q_0"])
    E = request(app, "/api/matrix", SENTENCE | {"of": "parameter", "name": "token_embeddings"}).json
    rows = [session.tokenizer.vocabulary.ids[word] for word in E["axes"][0]["labels"]]
    assert len(rows) < session.model.config.vocab_size
    assert np.array_equal(array(E), session.model.params["token_embeddings"][rows])


@pytest.mark.parametrize(("question", "part"), [("attention", "heads"), ("layers", "similarity")])
def test_a_word_that_is_masked_counts_as_one_that_was_typed_as_a_mask(app, question, part):
    masked = request(app, f"/api/{question}", SENTENCE).json
    typed = request(app, f"/api/{question}", {"text": "the [MASK] sat on a mat ."}).json
    plain = request(app, f"/api/{question}", {"text": TEXT}).json
    assert masked[part] == typed[part] != plain[part]


def test_targets_can_be_chosen(app):
    chosen = request(app, "/api/sentence", SENTENCE | {"target": "2:dog"}).json["predictions"][0]
    assert (chosen["target"], chosen["guessed"]) == ("dog", False)
    typed = request(app, "/api/sentence", {"text": "the [MASK] sat"}).json["predictions"][0]
    assert typed["guessed"]
    assert typed["rank"] == 1


@pytest.mark.parametrize(("path", "parameters", "words"), [
    ("sentence", {}, "no text"), ("sentence", {"text": "x" * 2001}, "2001 characters"),
    ("sentence", {"text": "the cat " * 30}, "takes 16"), ("sentence", {"text": "a", "mask": "one"}, "whole numbers"),
    ("backward", {"text": TEXT}, "Nothing is masked"), ("matrix", SENTENCE, "name is missing"),
    ("matrix", SENTENCE | {"name": "nothing"}, "no step 'nothing'"),
    ("matrix", SENTENCE | {"name": "Q_0", "of": "x"}, "forward, backward or parameter"),
    ("matrix", SENTENCE | {"name": "W_X", "of": "parameter"}, "no parameter 'W_X'"),
    ("cell", SENTENCE | {"name": "Q_0", "index": "0,99,0"}, "no cell"),
    ("cell", SENTENCE | {"name": "Q_0", "index": "0"}, "row,column"),
    ("cell", SENTENCE | {"name": "Q_0", "index": "1,2,3,4"}, "one to three"),
    ("cell", SENTENCE | {"name": "Q_0", "index": "2,3"}, "head"),
    ("cell", SENTENCE | {"name": "Q_0"}, "index is missing"),
    ("verify", SENTENCE | {"name": "dQ_0", "index": "5,0,0"}, "no entry"),
    ("saliency", SENTENCE | {"position": "3"}, "no target"), ("saliency", SENTENCE, "position is missing"),
    ("checkpoint", SENTENCE | {"name": "step-1"}, "No run was given")])
def test_a_bad_question_gets_one_sentence(app, path, parameters, words):
    answer = request(app, f"/api/{path}", parameters)
    assert answer.status == 400
    assert words in answer.json["error"]
    assert "Traceback" not in answer.json["error"]


def test_an_endless_address_is_refused(app):
    assert request(app, "/api/sentence", {"text": "x" * 20_000}).status == 414


@pytest.mark.parametrize("config", models_to_check().values(), ids=models_to_check())
def test_every_variant_of_a_model_can_be_looked_at(config, tokenizer):
    model = MiniBERT(dataclasses.replace(config, vocab_size=len(tokenizer), max_seq_length=16))
    app = create_app(Session(model, tokenizer))
    asked = {"text": "the cat sat .", "mask": "2"}
    for kind in ("forward", "backward") if model.modules.predicts_words else ("forward",):
        for step in request(app, f"/api/{kind}", asked).json["steps"][kind == "forward":]:
            got = request(app, "/api/matrix", asked | {"of": kind, "name": step["name"]})
            assert got.status == 200
            assert len(got.json["axes"]) == len(got.json["shape"])
            for name in step.get("parameters", ()):
                assert request(app, "/api/matrix", asked | {"of": "parameter", "name": name}).status == 200
    for name in ("sentence", "attention", "layers"):
        assert request(app, f"/api/{name}", asked).status == 200


# -------------------------------------------------------------------- changes


def test_a_step_and_its_undoing(app, session):
    before = session.model.params.flat.copy()
    body = json.dumps(SENTENCE | {"learning_rate": 0.01, "optimiser": "adamw"}).encode()
    done = request(app, "/api/step", method="POST", headers=OWN, body=body).json
    assert done["loss_after"] < done["loss_before"]
    assert len(done["history"]) == done["undoable"] == done["steps"] == 1
    after = {word["id"]: word["after"] for word in done["predictions"][0]["words"]}
    now = request(app, "/api/sentence", SENTENCE).json["predictions"][0]
    assert after[now["target_id"]] == now["probability"]
    assert request(app, "/api/undo", method="POST", headers=OWN).json["history"] == []
    assert session.model.params.flat.tobytes() == before.tobytes()


def test_the_loss_shown_is_that_of_the_backward_pass(app, session):
    """Of a word so unlikely that its probability is zero in float32, too."""
    session.model.params["mlm_head_b"][7] = -3000.0
    asked = SENTENCE | {"target": f"2:{session.tokenizer.vocabulary[7]}"}
    shown = request(app, "/api/sentence", asked).json
    assert shown["predictions"][0]["probability"] == 0
    assert shown["loss"] == request(app, "/api/backward", asked).json["loss"] > 2900


def test_a_step_that_is_too_long_is_refused_and_every_question_is_answered_as_before(app, session, monkeypatch):
    before, step = request(app, "/api/sentence", SENTENCE).json, Update.step
    monkeypatch.setattr(Update, "step", lambda self, batch, key, rate: step(self, batch, key, 1e28 * rate))
    body = json.dumps(SENTENCE | {"learning_rate": 100, "optimiser": "sgd"}).encode()
    answer = request(app, "/api/step", method="POST", headers=OWN, body=body)
    assert answer.status == 400
    assert "undone" in answer.json["error"]
    assert request(app, "/api/sentence", SENTENCE).json == before
    assert request(app, "/api/info").json["steps"] == 0
    assert request(app, "/api/undo", method="POST", headers=OWN).status == 400


def test_an_answer_is_written_before_the_next_change(session, monkeypatch):
    """What an answer holds may be changed as soon as the lock is free, so it is written under the lock."""
    held = []

    def written(value):
        free = Thread(target=lambda: held.append(not session.lock.acquire(blocking=False)))
        free.start()
        free.join()
        return to_json(value)

    monkeypatch.setattr("mini_bert.explorer.server.to_json", written)
    assert request(create_app(session), "/api/info").status == 200
    assert held == [True]


def test_other_pages_cannot_change_the_model(app, session):
    body = json.dumps(SENTENCE | {"learning_rate": 0.01}).encode()
    for headers in ({}, {"content-type": "application/json"}, {"content-type": "text/plain", "x-mini-bert": "1"},
                    {"content-type": "application/x-www-form-urlencoded"}):
        assert request(app, "/api/step", method="POST", headers=headers, body=body).status == 403
    assert request(app, "/api/step", SENTENCE | {"learning_rate": "0.01"}).status == 405
    assert request(app, "/api/info", method="POST", headers=OWN).status == 405
    assert request(app, "/api/step", method="OPTIONS", headers={"origin": "http://evil.example"}).status == 405
    assert session.version == 0


@pytest.mark.parametrize(("body", "status", "words"), [
    (b"{", 400, "JSON object"), (b"[1]", 400, "JSON object"),
    (b'{"text": "the cat", "mask": "1"}', 400, "learning rate"),
    (b'{"text": "the cat", "mask": 1, "learning_rate": 1, "optimiser": "x"}', 400,
     "adamw, ema, lion, lookahead, muon, sgd"),
    (b" " * 20_000, 413, "larger")])
def test_a_bad_change_is_refused(app, body, status, words):
    answer = request(app, "/api/step", method="POST", headers=OWN, body=body)
    assert answer.status == status
    assert words in answer.json["error"]


# -------------------------------------------------------------------- runs


def test_checkpoints_answer_with_their_own_predictions(session, finished_run, tokenizer):
    session.run = Run(finished_run)
    app = create_app(session)
    run = request(app, "/api/run").json["run"]
    answers = [request(app, "/api/checkpoint", SENTENCE | {"name": c["name"], "attention": "1"}).json
               for c in run["checkpoints"]]
    assert len({answer["predictions"][0]["probability"] for answer in answers}) > 2
    assert answers[0]["weights"]["shape"] == [2, 2, 9, 9]
    assert array(answers[0]["weights"]).sum(axis=-1) == pytest.approx(1, abs=1e-5)
    bad = request(app, "/api/checkpoint", SENTENCE | {"name": "../../etc"})
    assert bad.status == 400


def test_without_a_run_there_is_none(app):
    assert request(app, "/api/run").json == {"run": None}


# -------------------------------------------------------------------- where it listens


def test_a_taken_port_is_refused_if_asked_for_and_else_another_is_found():
    with open_socket("127.0.0.1", None, PORT) as first, open_socket("127.0.0.1", None, PORT) as second:
        assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
        with pytest.raises(ConfigError, match="Cannot listen"):
            open_socket("127.0.0.1", first.getsockname()[1], PORT)


def test_loopback_is_known():
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("192.168.1.5")
    assert not is_loopback("evil.example")


# -------------------------------------------------------------------- odd input is one sentence


def test_a_fault_of_its_own_is_one_sentence_and_told_in_the_log(app, session, monkeypatch, caplog):
    monkeypatch.setattr(session, "passes", lambda query: 1 // 0)
    answer = request(app, "/api/sentence", SENTENCE)
    assert answer.status == 500
    assert answer.json == {"error": "The explorer failed at this; the terminal in which it runs says how."}
    assert answer.headers["content-security-policy"] == request(app, "/").headers["content-security-policy"]
    assert "The explorer failed at '/api/sentence'." in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_text_of_unknown_words_alone_is_refused(app):
    answer = request(app, "/api/attention", {"text": "\U0001f600 \U0001f600"})
    assert (answer.status, "known" in answer.json["error"]) == (400, True)


@pytest.mark.parametrize("odd", [{"text": TEXT, "mask": "2", "target": ":x"}, {"text": "caf\udce9"}])
def test_a_query_that_is_none_is_refused(odd):
    with pytest.raises(InputError):
        read_query(odd)


def test_a_body_nested_too_deeply_is_refused(app):
    assert request(app, "/api/step", method="POST", headers=OWN, body=b"[" * 16_000).status == 400


# -------------------------------------------------------------------- more ids than words

def test_a_model_with_more_ids_than_words_is_shown(session, tokenizer):
    """Vocabularies are often padded to a round number; the ids beyond the last word have no name."""
    for size in (len(tokenizer) + 7, 300):                # shown whole, and cut to the words that matter
        model = MiniBERT(dataclasses.replace(session.model.config, vocab_size=size))
        model.params["mlm_head_b"][len(tokenizer):] = 50.0          # the model's first choice has no name
        app = create_app(Session(model, tokenizer))
        for name in ("sentence", "forward", "backward"):
            assert request(app, f"/api/{name}", SENTENCE).status == 200
        found = request(app, "/api/sentence", SENTENCE).json["predictions"][0]
        assert len(found["candidates"]) == 8
        assert found["candidates"][0]["token"] in tokenizer.vocabulary.pieces
        for name in ("logits", "dlogits", "mlm_head_b", "token_embeddings"):
            kind = "backward" if name.startswith("d") else "parameter" if name in model.params else "forward"
            assert request(app, "/api/matrix", {**SENTENCE, "name": name, "of": kind}).status == 200, name
        changed = request(app, "/api/step", {}, method="POST", headers=OWN,
                          body=json.dumps({**SENTENCE, "learning_rate": "0.01"}).encode())
        assert changed.status == 200


# -------------------------------------------------------------------- clients that leave

def test_a_client_that_leaves_in_the_middle_leaves_no_trace_in_the_log(app, caplog):
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
             "path": "/api/reset", "raw_path": b"/api/reset", "root_path": "", "query_string": b"",
             "headers": [(b"host", b"127.0.0.1:8640"), *((k.encode(), v.encode()) for k, v in OWN.items())],
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8640)}
    given = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        return given.pop(0) if given else {"type": "http.disconnect"}

    async def send(message):
        raise OSError("the client has gone")

    asyncio.run(app(scope, receive, send))
    given.append({"type": "http.request", "body": b"{}", "more_body": False})
    asyncio.run(app(scope, receive, send))
    assert caplog.records == []


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_clients_that_leave_do_not_end_the_command(session, tokenizer, tmp_path):
    """On the command line SIGPIPE ends a command whose output nobody reads; a server lives on."""
    session.model.save(tmp_path / "model")
    tokenizer.save(tmp_path / "model")
    process = subprocess.Popen([sys.executable, "-m", "mini_bert", "explore", "--model", str(tmp_path / "model"),
                                "--no-browser"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    address = urlsplit(re.search(r"http:[^;]+", process.stdout.readline())[0])
    head = f" HTTP/1.1\r\nHost: {address.netloc}\r\n"
    wanted = [f"GET /{head}\r\n" * 3, f"GET /api/forward?text=the{head}\r\n",
              f"POST /api/step{head}Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{{"]
    for number in range(60):
        with socket.create_connection((address.hostname, address.port), 30) as client:
            if number % 2:                                # closing resets the connection
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(wanted[number % 3].encode())
    with socket.create_connection((address.hostname, address.port), 30) as client:
        client.sendall(wanted[0].encode())
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode != -signal.SIGPIPE
    assert said == ""
