"""What the server refuses: who may not ask, what is too much, what is malformed. It answers the next request."""

import asyncio
import json
from threading import Event

import pytest
from asking import JSON, asked_of

from mini_bert.serve.limits import Limits

GOOD = {"inputs": "the cat sat"}


# -------------------------------------------------------------------- who may ask

@pytest.mark.parametrize("hosts", [["evil.example"], ["evil.example:8641"], ["127.0.0.1"], ["localhost:8642"], [],
                                   ["127.0.0.1:8641", "evil.example"], ["127.0.0.1:8641.evil.example"]])
def test_other_hosts_names_are_refused(ask, hosts):
    for path, given in (("/health", None), ("/embed", GOOD), ("/docs", None)):
        answer = ask(path, given, hosts=hosts)
        assert (answer.status, "Host" in answer.said) == (421, True)


def test_more_names_can_be_allowed(small):
    with asked_of(small, names=["models.example"]) as ask:
        assert ask("/health", hosts=["models.example"]).status == 200
        assert ask("/health", hosts=["Models.Example:443"]).status == 200
        assert ask("/health", hosts=["evil.example"]).status == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_cannot_make_it_compute(ask, site):
    assert ask("/embed", GOOD, headers={"sec-fetch-site": site}).status == 403
    assert ask("/docs", headers={"sec-fetch-site": site}).status == 200
    assert ask("/embed", GOOD, headers={"sec-fetch-site": "same-origin"}).status == 200
    assert ask("/embed", body=json.dumps(GOOD).encode(), headers={"content-type": "text/plain"}).status == 415


def test_with_keys_only_their_owners_are_answered(small):
    with asked_of(small, keys=["first-key-1", "second-key-2"]) as ask:
        for header in (None, "Bearer wrong", "Bearer first-key-12", "Basic first-key-1", "first-key-1", "Bearer "):
            answer = ask("/embed", GOOD, headers={} if header is None else {"authorization": header})
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        for key in ("first-key-1", "second-key-2"):
            assert ask("/embed", GOOD, headers={"authorization": f"Bearer {key}"}).status == 200
        assert ask("/metrics").status == ask("/v1/models").status == 401
        assert ask("/health").status == ask("/docs").status == 200
        assert ask("/openapi.json").json["components"]["securitySchemes"]
        assert "key-1" not in ask.log.getvalue()


# -------------------------------------------------------------------- what is malformed

@pytest.mark.parametrize(("body", "said"), [
    (b"", "JSON"), (b"{", "JSON"), (b"[]", "one JSON object"), (b'"text"', "one JSON object"), (b"\xff\xfe{}", "UTF-8"),
    (b'{"inputs": "\xff"}', "UTF-8"), (b'{"inputs": "\\ud800"}', "surrogate"), (b'{"inputs": NaN}', "NaN"),
    (b'{"inputs": "a", "inputs": "b"}', "twice"), (b"[" * 100_000, "nested"), (b'{"inputs": ' + b"9" * 5000 + b"}", ""),
    (b"{}", "inputs is missing"), (b'{"inputs": null}', "inputs is missing"), (b'{"inputs": 3}', "a number"),
    (b'{"inputs": []}', "empty list"), (b'{"inputs": ["a", 3]}', "Element 1"), (b'{"inputs": [[0.5]]}', "Element 0"),
    (b'{"inputs": [99]}', "vocabulary"), (b'{"inputs": "a", "normalise": true}', "did you mean normalize"),
    (b'{"inputs": "a", "normalize": "yes"}', "true or false"), (b'{"inputs": "a", "dimensions": 8}', "16 dimensions"),
    (b'{"inputs": "a", "truncation_direction": "up"}', "Right or Left"), (b'{"inputs": "a", "model": 1}', "text")])
def test_a_malformed_body_gets_one_sentence(ask, body, said):
    answer = ask("/embed", body=body)
    assert answer.status == 400
    assert said in answer.said
    assert "Traceback" not in answer.said
    assert ask("/embed", GOOD).status == 200


@pytest.mark.parametrize("text", ["", " ", "\x00", "\u202e\ufeff", "\U0001f600" * 50, "e\u0301" * 30, "<b>cat</b>"])
def test_any_text_is_a_text(ask, text):
    assert ask("/embed", {"inputs": text}).status == 200


@pytest.mark.parametrize("path", ["/../../etc/passwd", "/docs/../docs", "//docs", "/docs/", "/static/docs.html",
                                  "/DOCS",
                                  "/docs.html", "/%2e%2e/etc/passwd", "/v1/models/../../embed", "/v1", "/docs\x00.js",
                                  "/v1/models/a/b", "http://evil.example/docs", "*", "/<script>alert(1)</script>"])
def test_odd_addresses_lead_nowhere(ask, path):
    answer = ask(path)
    assert answer.status == 404
    assert "script" not in answer.body.decode()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_long_address_and_another_method_are_refused(ask):
    assert ask("/health?" + "x" * 5000).status == 414
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert ask("/embed", method=method).status == 405
    assert ask("/health", GOOD).status == 405


def test_what_a_client_sends_is_not_in_html_and_one_line_in_the_log(ask):
    evil = "<script>alert(1)</script>\r\nX: y"
    answer = ask("/v1/embeddings", {"input": "a", "model": evil})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    ask("/\n{fake}: line")
    lines = ask.log.getvalue().splitlines()
    assert [json.loads(line)["path"] for line in lines] == ["/v1/embeddings", "/\n{fake}: line"]


# -------------------------------------------------------------------- what is too much

def test_sizes_are_limited(small):
    limits = Limits(body=1000, inputs=3, tokens=40, cache=0)
    with asked_of(small, limits=limits) as ask:
        assert ask("/embed", {"inputs": "a" * 2000}).status == 413
        assert ask("/embed", GOOD, headers={"content-length": "5000000"}).status == 413
        assert ask("/embed", GOOD, headers={"content-length": "9" * 40}).status == 413
        many = ask("/embed", {"inputs": ["a"] * 4})
        assert (many.status, "at most 3" in many.said) == (413, True)
        long = ask("/embed", {"inputs": "a " * 60})
        assert (long.status, "62 tokens" in long.said) == (413, True)
        assert ask("/v1/embeddings", {"input": "a " * 60}).json["error"]["code"] == "too_large"
        assert ask("/embed", {"inputs": "a " * 60, "truncate": True}).status == 200
        assert ask("/embed", GOOD).status == 200


def test_work_far_beyond_the_tokens_is_refused(small):
    with asked_of(small, limits=Limits(tokens=20, cache=0)) as ask:          # and so 320 of work
        assert ask("/score", {"inputs": "a cat sat on a mat ."}).status == 200
        filled = ask("/fill-mask", {"inputs": "[MASK] " * 10, "top": 18})
        assert (filled.status, "1,800 tokens" in filled.said) == (413, True)
        seen = ask("/explain", {"inputs": "a cat sat on a mat", "method": "attention"})
        assert seen.status == 200                     # 2 layers, 2 heads, 8 x 8
        seen = ask("/explain", {"inputs": "a cat sat on a big mat .", "method": "attention"})
        assert (seen.status, "ask for one layer" in seen.said) == (413, True)


def test_a_slow_body_and_too_many_bodies_at_once_are_refused(small):
    async def never():
        await asyncio.Event().wait()

    limits = Limits(receive=0.02, cache=0, bodies=100)
    with asked_of(small, limits=limits) as ask:
        assert ask("/embed", GOOD, receive=never).status == 408
        assert ask("/embed", {"inputs": "cat " * 50}).status == 503
        assert ask.service.receiving == 0
        assert ask("/embed", GOOD).status == 200


class Held:
    """Keeps a model's thread busy until it is released."""

    def __init__(self, service):
        self.batcher = next(iter(service.models.by_name.values())).batcher
        self.running, self.release = Event(), Event()

    def __enter__(self):
        def work():
            self.running.set()
            self.release.wait(10)

        self.job = self.batcher.submit("call", work, 1)
        self.running.wait(10)
        return self

    def __exit__(self, *_):
        self.release.set()
        self.job.result(10)


def test_a_full_queue_says_when_to_come_again(small):
    with asked_of(small, limits=Limits(queue=2, cache=0, answer=0.1)) as ask:
        with Held(ask.service):
            answers = ask.many([("/embed", GOOD)] * 5)
        busy = [answer for answer in answers if answer.status == 429]
        assert len(busy) == 3
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in busy)
        assert "Too many requests" in busy[0].said
        ask.service.limits = Limits(cache=0)
        assert ask("/embed", GOOD).status == 200


def test_an_answer_that_takes_too_long_is_given_up(small):
    with asked_of(small, limits=Limits(cache=0, answer=0.05)) as ask:
        with Held(ask.service) as held:
            assert ask("/embed", GOOD).status == 504
            assert held.batcher.depth[0] == 1
        computed = []
        ask.service.limits = Limits(cache=0)
        batcher, run = held.batcher, held.batcher._run
        batcher._run = lambda kind, given: computed.append(given) or run(kind, given)
        assert ask("/embed", GOOD).status == 200
        assert len(computed) == 1                 # the request that was given up has not been computed


def test_nothing_is_computed_for_a_client_that_has_left(small):
    parts = [{"type": "http.request", "body": json.dumps(GOOD).encode(), "more_body": False},
             {"type": "http.disconnect"}]

    async def leaves():
        return parts.pop(0)

    with asked_of(small, limits=Limits(cache=0)) as ask:
        model = ask.service.models.find("small")
        computed = []
        run = model.batcher._run
        model.batcher._run = lambda kind, given: computed.append(kind) or run(kind, given)
        with Held(ask.service):
            assert ask("/embed", GOOD, receive=leaves) is None
        assert ask("/embed", GOOD).status == 200
        assert computed == ["call", "embed"]          # what kept it busy, and the second request
        assert '"status": 499' in ask.log.getvalue()


def test_a_fault_is_one_sentence_and_told_in_the_log(ask, monkeypatch, caplog):
    monkeypatch.setattr(ask.service.models.find("small"), "ids", lambda *rest, **named: 1 // 0)
    answer = ask("/embed", GOOD)
    assert (answer.status, answer.said) == (500, "The server failed at this; its log says how.")
    assert "ZeroDivisionError" in caplog.text
    assert ask("/health").status == 200


def test_a_server_that_stops_refuses_politely(ask):
    ask.service.stopping = True
    answer = ask("/embed", GOOD)
    assert (answer.status, answer.headers["connection"], answer.headers["retry-after"]) == (503, "close", "5")
    assert ask("/health").status == 503
    assert ask("/metrics").status == 200


def test_json_is_asked_for_by_its_type(ask):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert ask("/embed", body=json.dumps(GOOD).encode(), headers={**JSON, "content-type": kind}).status == 415
    assert ask("/embed", body=json.dumps(GOOD).encode(),
               headers={"content-type": "application/json; charset=utf-8"}).status == 200
