"""The server as a process: many and slow connections, a stop that loses nothing, and what the command says."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from shutil import copytree
from urllib.parse import urlsplit

import numpy as np
import pytest
from asking import JSON, small_model

from mini_bert.serve.limits import Limits
from mini_bert.serve.run import serving

GOOD = json.dumps({"inputs": ["the cat sat"]}).encode()
HEAD = b"POST /embed HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def running(small):
    limits = Limits(connections=20, head=1, receive=1, send=1, keep_alive=2, cache=0)
    with serving([small], limits=limits, threads=1) as (address, _):
        yield urlsplit(address)


def connect(address):
    return socket.create_connection((address.hostname, address.port), 20)


def status(address, path="/health", body=None, **headers):
    client = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
    client.request("GET" if body is None else "POST", path, body, {**(JSON if body else {}), **headers})
    answer = client.getresponse()
    content = answer.read()
    client.close()
    return answer.status, content


def rest(client):
    """Everything that the server sends until it closes."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_requests_are_answered_over_the_network(running):
    code, content = status(running, "/embed", GOOD)
    assert (code, len(json.loads(content)[0])) == (200, 16)
    with connect(running) as client:                   # several on one connection
        for _ in range(3):
            client.sendall(HEAD % (running.netloc.encode(), len(GOOD)) + GOOD)
            answer = b""
            while not answer.endswith(b"]]"):
                answer += client.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_connections_beyond_the_limit_are_told_so(running):
    clients = [connect(running) for _ in range(40)]
    refused = [client for client in clients[20:] if rest(client).startswith(b"HTTP/1.1 503 Service Unavailable")]
    assert len(refused) == 20
    for client in clients:
        client.close()
    end = time.monotonic() + 10
    while status(running)[0] != 200:                   # until the server has seen them go
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_connection_that_sends_no_head_in_time_is_closed(running):
    with connect(running) as silent, connect(running) as slow:
        begin = time.monotonic()
        try:
            for letter in b"POST /embed HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * 100:
                slow.send(bytes([letter]))
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - begin < 5
        assert rest(silent) == b""
    assert status(running)[0] == 200


def test_a_body_that_does_not_come_is_given_up(running):
    with connect(running) as client:
        client.sendall(HEAD % (running.netloc.encode(), 500) + b'{"inputs"')
        assert client.recv(65536).startswith(b"HTTP/1.1 408")


def test_a_large_body_is_refused_before_it_has_come_and_is_not_kept(running):
    with connect(running) as client:
        client.sendall(HEAD % (running.netloc.encode(), 50_000_000) + b" " * 100_000)
        assert client.recv(65536).startswith(b"HTTP/1.1 413")
    with connect(running) as client:                   # of no declared size
        client.sendall(b"POST /embed HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n" % running.netloc.encode())
        sent = 0
        try:
            while sent < 30_000_000:
                client.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass
        assert rest(client).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("request_line", [
    b"GET /../../etc/passwd HTTP/1.1", b"GET /%2e%2e%2f%2e%2e%2fetc/passwd HTTP/1.1", b"GET /docs%00.js HTTP/1.1",
    b"GET //evil.example/ HTTP/1.1", b"GET http://evil.example/docs HTTP/1.1", b"GET \\..\\docs HTTP/1.1"])
def test_odd_paths_are_not_found(running, request_line):
    with connect(running) as client:
        client.sendall(request_line + b"\r\nHost: " + running.netloc.encode() + b"\r\nConnection: close\r\n\r\n")
        assert rest(client).split(b"\r\n")[0] in (b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request")


@pytest.mark.parametrize("noise", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, b"\r\n" * 5000, b"GET\r\n\r\n",
                                   b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n",
                                   b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                   b"POST /embed HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                                   b"POST /embed HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n"])
def test_noise_is_refused(running, noise):
    with connect(running) as client:
        with suppress(OSError):
            client.sendall(noise)
        answer = rest(client)
        assert answer == b"" or re.match(rb"HTTP/1.1 4\d\d ", answer)
    assert status(running)[0] == 200


def test_clients_that_do_not_read_are_cut_off(running):
    body = json.dumps({"inputs": ["the big red cat sat on a mat ."] * 2000}).encode()
    asked = HEAD.replace(b"/embed", b"/tokenize") % (running.netloc.encode(), len(body)) + body
    with connect(running) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0.1)                         # each answer has a megabyte
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                client.sendall(asked)
            except TimeoutError:
                pass
            except OSError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("The server went on writing.")
    assert status(running, "/embed", GOOD)[0] == 200


# -------------------------------------------------------------------- the command

def command(*arguments, folder, **environment):
    return subprocess.Popen([sys.executable, "-m", "mini_bert", "serve", *arguments], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment})


def started(*arguments, folder, **environment):
    process = command("--json", *arguments, folder=folder, **environment)
    lines = [process.stdout.readline() for _ in range(3)]
    return process, urlsplit(json.loads("".join(lines))["address"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer) -> Path:
    made = tmp_path_factory.mktemp("served")
    small_model().save(made / "small")
    tokenizer.save(made / "small")
    copytree(made / "small", made / "other" / "small")
    return made


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_sigterm_loses_no_answer(folder):
    process, address = started("--model", "small", "--cache", "0", folder=folder)
    known = json.loads(status(address, "/embed", GOOD)[1])[0]
    stopped, counts = [], {200: 0, 503: 0}

    def ask(number):
        client = http.client.HTTPConnection(address.hostname, address.port, timeout=20)
        while True:
            try:
                client.connect()
            except ConnectionRefusedError:
                return
            while True:
                client.request("POST", "/embed", GOOD, JSON)
                answer = client.getresponse()
                content = answer.read()
                counts[answer.status] += 1
                if answer.status != 200:
                    return
                assert np.allclose(json.loads(content)[0], known, atol=1e-5)
                if stopped and answer.getheader("connection") == "close":
                    client.close()
                    break

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(ask, number) for number in range(8)]
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        stopped.append(True)
        for job in jobs:
            job.result(30)
    assert counts[200] > 8
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    lines = [json.loads(line) for line in said.splitlines()]
    assert sum(line["status"] == 200 for line in lines) == counts[200] + 1
    assert {"time", "client", "method", "path", "status", "ms", "bytes", "model", "tokens", "cached"} == set(lines[0])


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_the_command_takes_keys_and_a_collection(folder):
    (folder / "texts.txt").write_text("the cat sat\na dog ran\n")
    (folder / "keys").write_text("a-long-key\n")
    subprocess.run([sys.executable, "-m", "mini_bert", "embed", "texts.txt", "--model", "./small", "--out", "v.npy"],
                   cwd=folder, check=True, capture_output=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    process, address = started("--model", "./small", "--collection", "v.npy", "--texts", "texts.txt", "--api-key-file",
                               "keys", "--no-access-log", folder=folder)
    asked = json.dumps({"inputs": "a dog ran", "top": 1}).encode()
    assert status(address, "/similar", asked)[0] == 401
    code, content = status(address, "/similar", asked, Authorization="Bearer a-long-key")
    assert (code, json.loads(content)[0][0]["text"]) == (200, "a dog ran")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


@pytest.mark.parametrize(("arguments", "said"), [
    (["--model", "nothing-here"], "There is no directory"), (["--texts", "x"], "--collection"),
    (["--model", "./small", "--model", "other/small"], "Two models are called small"),
    (["--model", "./small", "--collection", "absent.npy"], "absent.npy"),
    (["--model", "./small", "--collection", "small/config.json"], "not a .npy file"),
    (["--model", "./small", "--api-key-file", "absent"], "absent"), (["--host", "256.1.1.1"], "Cannot listen")])
def test_what_cannot_be_served_is_refused_in_one_sentence(folder, arguments, said):
    from typer.testing import CliRunner

    from mini_bert.cli.app import app
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, ["serve", *arguments])
    finally:
        os.chdir(before)
    assert done.exit_code != 0
    assert said in str(done.exception)
