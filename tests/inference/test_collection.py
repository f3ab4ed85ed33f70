"""Vectors in files: written block by block, and searched exactly in bounded memory."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mini_bert
from mini_bert.cli.app import app
from mini_bert.cli.use import inference
from mini_bert.errors import DataError, InputError
from mini_bert.inference import collection
from mini_bert.inference.collection import Collection
from mini_bert.workers import workers


def expected(vectors, query, top):
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = (unit @ (query / np.linalg.norm(query))).astype(np.float64)
    order = np.lexsort((np.arange(len(vectors)), -cosines))[:top]
    return order.tolist(), cosines[order]


@pytest.fixture
def vectors(tmp_path):
    made = np.random.default_rng(0).standard_normal((1000, 24)).astype(np.float32)
    made[500] = 0
    np.save(tmp_path / "v.npy", made)
    return made


@pytest.mark.parametrize("block", [2000, 9000, 1 << 20])
@pytest.mark.parametrize("top", [1, 10, 1000, 5000])
def test_the_nearest_are_exact(tmp_path, vectors, monkeypatch, block, top):
    monkeypatch.setattr(collection, "BLOCK", block)
    queries = np.random.default_rng(1).standard_normal((3, 24))
    opened = Collection(tmp_path / "v.npy")
    for _ in range(2):                            # the lengths are known the second time
        for query, hits in zip(queries, opened.search(queries, top), strict=True):
            numbers, cosines = expected(vectors, query, top)
            assert [hit.number for hit in hits] == numbers
            assert [hit.cosine for hit in hits] == pytest.approx(cosines, abs=1e-6)


def test_threads_change_no_bit(tmp_path, vectors, monkeypatch):
    monkeypatch.setattr(collection, "BLOCK", 3000)
    query = vectors[7]
    alone = Collection(tmp_path / "v.npy").search(query, 50)
    for threads in (1, 2, 3):
        with workers(threads) as team:
            assert Collection(tmp_path / "v.npy").search(query, 50, team) == alone


def test_of_equal_vectors_the_first_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "BLOCK", 1000)
    same = np.ones((500, 4), np.float32)
    same[3] = [-1, 1, 1, 1]
    np.save(tmp_path / "same.npy", same)
    with workers(2) as team:
        hits, = Collection(tmp_path / "same.npy").search(np.ones(4), 6, team)
    assert [hit.number for hit in hits] == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("dtype", ["<f2", "<f8"])
def test_other_kinds_of_numbers_are_read(tmp_path, vectors, dtype):
    np.save(tmp_path / "other.npy", vectors.astype(dtype))
    hits, = Collection(tmp_path / "other.npy").search(vectors[3], 1)
    assert hits[0] == (3, pytest.approx(1, abs=1e-3))


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "BLOCK", 1 << 16)
    np.save(tmp_path / "large.npy", np.random.default_rng(0).standard_normal((100_000, 48)).astype(np.float32))
    opened = Collection(tmp_path / "large.npy")
    tracemalloc.start()
    opened.search(np.ones(48), 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 < (tmp_path / "large.npy").stat().st_size / 15


@pytest.mark.parametrize(("content", "said"), [
    (np.zeros(3, np.float32), "one vector per row"), (np.zeros((0, 3), np.float32), "one vector per row"),
    (np.zeros((2, 3), np.int64), "int64"), (np.asfortranarray(np.ones((2, 3), np.float32)), "by columns"),
    (np.zeros((2, 3), ">f4"), "one vector per row"), (b"", "not a .npy"), (b"\x93NUMPY\x01\x00\xff\xff{", "not a .npy"),
    (b"\x93NUMPY\x01\x00\x10\x00__import__('os')", "not a .npy"), (b"PK\x03\x04" + b"0" * 100, "not a .npy")])
def test_a_file_of_another_kind_is_refused(tmp_path, content, said):
    path = tmp_path / "odd.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(DataError, match=said):
        Collection(path)


def test_damaged_files_are_refused(tmp_path, vectors):
    path = tmp_path / "v.npy"
    content = path.read_bytes()
    (tmp_path / "short.npy").write_bytes(content[:-5])
    with pytest.raises(DataError, match="cut off"):
        Collection(tmp_path / "short.npy")
    with pytest.raises(DataError, match="cannot be read"):
        Collection(tmp_path / "absent.npy")
    with pytest.raises(DataError, match="not a regular file"):
        Collection(tmp_path)
    vectors[700, 3] = np.nan
    np.save(tmp_path / "nan.npy", vectors)
    with pytest.raises(DataError, match="row 701"):
        Collection(tmp_path / "nan.npy").search(np.ones(24), 3)
    opened = Collection(path)
    with pytest.raises(InputError, match="different models"):
        opened.search(np.ones(25), 3)
    with pytest.raises(InputError, match="top"):
        opened.search(np.ones(24), 0)
    path.write_bytes(content[:2000])              # shortened in place: an error, and the process lives
    with pytest.raises(DataError, match="shorter"):
        opened.search(np.ones(24), 3)


# -------------------------------------------------------------------- the commands

def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


TEXTS = ["A dog barks.", "", "The train is late.", "A cat sleeps.", "Rain falls on the roof."]


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "_BLOCK", 2)
    (tmp_path / "t.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    monkeypatch.chdir(tmp_path)
    return mini_bert.pipeline("mini").embed(TEXTS)


def test_embed_writes_vectors_in_blocks(written, tmp_path):
    run("embed", "t.txt", "--out", "v.npy")
    assert np.load(tmp_path / "v.npy") == pytest.approx(written, abs=1e-6)
    run("embed", "t.txt", "--out", "v.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    assert np.array([row["vector"] for row in rows]) == pytest.approx(written, abs=1e-6)
    assert run("embed", "t.txt").stdout == (tmp_path / "v.jsonl").read_text()
    with pytest.raises(InputError, match=r"\.npy, \.jsonl or \.parquet"):
        run("embed", "t.txt", "--out", "v.txt")


def test_embed_writes_parquet(written, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is missing: pip install 'mini-bert[parquet]'")
    run("embed", "t.txt", "--out", "v.parquet")
    found = parquet.read_table(tmp_path / "v.parquet")
    assert found.column("text").to_pylist() == TEXTS
    assert np.array(found.column("vector").to_pylist()) == pytest.approx(written, abs=1e-6)


def test_similar_searches_a_file_of_vectors(written):
    run("embed", "t.txt", "--out", "v.npy")
    plain = json.loads(run("similar", "A cat sleeps.", "t.txt", "--json", "--top", 2).stdout)["neighbours"]
    found = json.loads(run("similar", "A cat sleeps.", "--vectors", "v.npy", "t.txt", "--json", "--top", 2).stdout)
    for ours, theirs in zip(found["neighbours"], plain, strict=True):
        assert (ours["text"], ours["line"]) == (theirs["text"], theirs["line"])
        assert ours["cosine"] == pytest.approx(theirs["cosine"], abs=1e-6)
    without = json.loads(run("similar", "A cat sleeps.", "--vectors", "v.npy", "--json", "--top", 2).stdout)
    assert [item["line"] for item in without["neighbours"]] == [item["line"] for item in found["neighbours"]]
    assert without["neighbours"][0]["text"] is None
    Path("more.txt").write_text("one line\n")
    with pytest.raises(InputError, match="1 texts and 5 vectors"):
        run("similar", "A cat sleeps.", "--vectors", "v.npy", "more.txt")
