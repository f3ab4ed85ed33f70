"""Which files of a folder an evaluation uses."""

import pytest

from mini_bert.errors import DataError
from mini_bert.evaluation.samples import sampled
from mini_bert.evaluation.tasks.folder import EXPECTED_FILES, TaskFolder, find_tasks, question_files


def touch(root, *names, text="x\n"):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_an_empty_folder_lists_the_expected_files(tmp_path):
    found = find_tasks(tmp_path)
    for what, looked_for in EXPECTED_FILES.items():
        assert looked_for in found.missing(what)
        assert "--tasks" in TaskFolder().missing(what)
    with pytest.raises(DataError, match="There is no task folder"):
        find_tasks(tmp_path / "none")


def test_the_first_treebank_and_the_first_with_entities_are_used(tmp_path):
    touch(tmp_path, "b/b-ud-train.conllu",
          text="# global.Entity = GRP-etype\n1\tx\t_\t_\t_\t_\t_\t_\t_\tEntity=(e-x)\n")
    touch(tmp_path, "b/b-ud-dev.conllu", "b/b-ud-test.conllu", "a/a-ud-train.conllu", "a/a-ud-dev.conllu",
          "0/alone-ud-train.conllu")
    found = find_tasks(tmp_path)
    assert found.treebank.name == "a"                     # `alone` has no test or development set
    assert found.treebank.dev is None                     # without a test set, the development set is `test`
    assert found.treebank.test.name == "a-ud-dev.conllu"
    assert (found.entities.name, found.entities.dev.name) == ("b", "b-ud-dev.conllu")
    assert found.missing("treebank") is None


def test_entities_without_a_header_are_reported(tmp_path):
    touch(tmp_path, "b/b-ud-train.conllu", "b/b-ud-test.conllu", text="1\tx\t_\t_\t_\t_\t_\t_\t_\tEntity=(e-x)\n")
    found = find_tasks(tmp_path)
    assert found.entities is None
    assert "b-ud-train.conllu has Entity= but no line '# global.Entity" in found.missing("entities")
    touch(tmp_path, "ner/train.conll", "ner/test.conll")
    assert find_tasks(tmp_path).missing("entities") is None


def test_conll_columns_are_used_if_no_treebank_has_entities(tmp_path):
    touch(tmp_path, "a/a-ud-train.conllu", "a/a-ud-test.conllu", "ner/train.conll", "ner/test.conll")
    assert find_tasks(tmp_path).entities.train == tmp_path / "ner/train.conll"


def test_text_tasks_and_files_in_subfolders_are_found(tmp_path):
    touch(tmp_path, "sst2/train.tsv", "sst2/dev.tsv", "mrpc/train.tsv", "mrpc/dev.tsv", "x/train.tsv",
          "agreement/one.text", "agreement/one.gold", "agreement/two.text", "lama/a/b/P1.jsonl", "wordsim/w.txt",
          "blimp/p.jsonl", "other/p.jsonl")
    found = find_tasks(tmp_path)
    assert [pair.name for pair in found.texts] == ["mrpc", "sst2"]
    assert [path.name for path in found.agreement] == ["one.text"]
    assert [len(found.facts), len(found.words), len(found.pairs)] == [1, 1, 1]


def test_questions_to_train_and_to_measure_on(tmp_path):
    touch(tmp_path, "a.json", "small.json")
    touch(tmp_path, "large.json", text="longer\n" * 9)
    a, large, small = (tmp_path / f"{name}.json" for name in ("a", "large", "small"))
    assert question_files([large, small]) == (large, small)
    assert question_files([a]) == (a, None)
    touch(tmp_path, "dev-v1.json", "train-v1.json")
    train, dev = tmp_path / "train-v1.json", tmp_path / "dev-v1.json"
    assert question_files([dev, large, train]) == (train, dev)
    assert question_files([large, train]) == (train, large)


def test_samples_keep_their_order_and_depend_on_seed_and_purpose():
    items = list("abcdefghij")
    first = sampled(items, 4, 0, "one")
    assert first == sorted(first)
    assert first == sampled(items, 4, 0, "one")
    assert {tuple(sampled(items, 4, seed, "one")) for seed in range(20)} != {tuple(first)}
    assert sampled(items, None, 0) == sampled(items, 10, 0) == items
