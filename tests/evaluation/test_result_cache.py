"""The cache of results."""

import pytest

from mini_bert.evaluation.suite.result_cache import cached_result


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))


def test_a_result_is_cached_until_something_changes(tmp_path):
    calls = []
    data = tmp_path / "data.txt"
    data.write_text("one")

    def result(**options):
        return cached_result("test", options, [data], lambda: calls.append(1) or {"n": len(calls), "pair": (1, 2)})

    first = result(seed=0)
    assert result(seed=0) == first == {"n": 1, "pair": [1, 2]}
    assert result(seed=1)["n"] == 2
    data.write_text("two")
    assert result(seed=0)["n"] == 3
    assert cached_result("test", {"seed": 0}, [data], lambda: {"n": 9}, fresh=True) == {"n": 9}
    assert result(seed=0) == {"n": 9}


@pytest.mark.parametrize("file", ["model-00002-of-00002.safetensors", "0_Transformer/model.safetensors",
                                  "pytorch_model.bin", "vocab.txt"])
def test_a_change_in_any_file_of_a_model_changes_the_key(tmp_path, file):
    model = tmp_path / "model"
    (model / "0_Transformer").mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / file).write_text("one")
    assert cached_result("test", {}, [model], lambda: {"n": 1}) == {"n": 1}
    assert cached_result("test", {}, [model], lambda: {"n": 2}) == {"n": 1}
    (model / file).write_text("two")
    assert cached_result("test", {}, [model], lambda: {"n": 3}) == {"n": 3}


def test_a_damaged_or_missing_cache_is_ignored(tmp_path, monkeypatch):
    assert cached_result("test", {}, [], lambda: {"n": 1}) == {"n": 1}
    for file in (tmp_path / "cache").iterdir():
        file.write_text("{")
    assert cached_result("test", {}, [], lambda: {"n": 2}) == {"n": 2}
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "file"))
    assert cached_result("test", {}, [], lambda: {"n": 3}) == {"n": 3}


@pytest.mark.parametrize("change", [lambda text: text.replace("1", "2", 1), lambda text: "{}", lambda text: '{"n": 1}',
                                    lambda text: '{"result": 5, "digest": "x"}'])
def test_an_entry_that_has_changed_since_it_was_written_is_computed_again(tmp_path, change):
    assert cached_result("test", {}, [], lambda: {"n": 1}) == {"n": 1}
    file, = (tmp_path / "cache").iterdir()
    file.write_text(change(file.read_text()))
    assert cached_result("test", {}, [], lambda: {"n": 3}) == {"n": 3}
