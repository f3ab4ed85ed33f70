"""Filling masks, sentence vectors and pseudo-log-likelihoods."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.cli.app import app
from mini_bert.core.task_model import TaskModel
from mini_bert.errors import CheckpointError
from mini_bert.inference.embed import embed, similar
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.inference.score import score
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.training.runs.checkpoints import write_checkpoint

WORDS = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran", "."]
runner = CliRunner()


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="module")
def model() -> MiniBERT:
    # two ids more than the tokenizer has pieces
    return MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=16,
                                max_seq_length=12))


@pytest.fixture(scope="module")
def directory(model, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    model.save(folder)
    tokenizer.save(folder)
    return folder


def test_each_mask_gets_its_most_probable_words(model, tokenizer):
    found = fill_mask(model, tokenizer, "the [MASK] sat on [MASK] mat", top=20)
    assert [len(candidates) for candidates in found] == [len(WORDS), len(WORDS)]
    for candidates in found:
        assert {candidate.token for candidate in candidates} == set(WORDS)
        assert sum(candidate.probability for candidate in candidates) == pytest.approx(1, abs=1e-5)
        assert [c.probability for c in candidates] == sorted((c.probability for c in candidates), reverse=True)
    (best, *_), = fill_mask(model, tokenizer, "the [MASK] sat.")
    assert best.text == f"the {best.token} sat."
    first, second = (candidates[0] for candidates in found)
    assert first.text == f"the {first.token} sat on [MASK] mat"         # the other mask stays
    assert second.text == f"the [MASK] sat on {second.token} mat"


def test_a_model_of_two_streams_fills_masks_that_nothing_reads(model, tokenizer):
    streams = MiniBERT(replace(model.config, stack="two_stream", score_terms="segments + relative", token_types=2,
                               embeddings="sum(types=false)", position_embeddings="none"))
    streams.params.flat += np.random.default_rng(0).standard_normal(streams.params.flat.size).astype(np.float32) / 4
    before = fill_mask(streams, tokenizer, "the [MASK] sat")
    streams.params["token_embeddings"][tokenizer.vocabulary.mask] += 1
    assert fill_mask(streams, tokenizer, "the [MASK] sat") == before


def test_a_causal_model_fills_no_masks(model, tokenizer):
    causal = MiniBERT(replace(model.config, score_terms="causal"))
    with pytest.raises(InputError, match="only what comes before"):
        fill_mask(causal, tokenizer, "the [MASK] sat")


def test_texts_that_cannot_be_filled_are_refused(model, tokenizer):
    with pytest.raises(InputError, match="no \\[MASK\\]"):
        fill_mask(model, tokenizer, "the cat")
    with pytest.raises(InputError, match="only 16"):
        fill_mask(model, WordPieceTokenizer([*SPECIAL_TOKENS, *(f"w{i}" for i in range(20))]), "[MASK]")


def test_a_tokenizer_of_another_model_is_refused(model, tokenizer, tmp_path):
    write_checkpoint(tmp_path / "run", MiniBERT(model.config), tokenizer, {})
    loaded, own = MiniBERT.load(tmp_path / "run"), WordPieceTokenizer.load(tmp_path / "run")
    assert loaded.vocab_digest == tokenizer.vocabulary.digest()
    fill_mask(loaded, own, "the [MASK]")
    for words in (WORDS[::-1], WORDS[:-1]):                   # in another order, and one fewer
        with pytest.raises(InputError, match="does not belong to the model"):
            fill_mask(loaded, WordPieceTokenizer([*SPECIAL_TOKENS, *words]), "the [MASK]")
    assert TaskModel(loaded, "sequence", 2).encoder().vocab_digest == loaded.vocab_digest
    (tmp_path / "run/checksums.json").unlink()
    save_file(load_file(tmp_path / "run/model.safetensors"), tmp_path / "run/model.safetensors")      # without digests
    description = json.loads((tmp_path / "run/config.json").read_text())
    del description["vocab_digest"]                           # as in older files
    (tmp_path / "run/config.json").write_text(json.dumps(description))
    fill_mask(MiniBERT.load(tmp_path / "run"), own, "the [MASK]")
    (tmp_path / "run/config.json").write_text(json.dumps({**description, "vocab_digest": 3}))
    with pytest.raises(CheckpointError, match="vocab_digest 3, which is not text"):
        MiniBERT.load(tmp_path / "run")


def test_a_tokenizer_with_far_fewer_pieces_is_refused(tokenizer):
    large = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=2, intermediate_size=2, vocab_size=2000,
                                 max_seq_length=8))
    with pytest.raises(InputError, match="14 pieces, and the model's vocabulary 2000"):
        fill_mask(large, tokenizer, "the [MASK]")


def test_the_vector_of_a_text_does_not_depend_on_its_batch(model, tokenizer):
    texts = ["the cat sat on the mat", "a dog ran.", "the", "a dog ran.", "the cat " * 20]
    together = embed(model, tokenizer, texts, batch_size=2)
    alone = np.concatenate([embed(model, tokenizer, [text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-6)
    assert np.allclose(np.linalg.norm(together, axis=1), 1)
    hidden, _ = model.encode(np.array([tokenizer.encode(texts[1])]))
    assert np.allclose(embed(model, tokenizer, texts[1:2], normalise=False)[0], hidden[0].mean(axis=0), atol=1e-6)


def test_a_text_is_most_similar_to_itself(model, tokenizer):
    texts = ["a dog ran.", "the cat sat on the mat", "on the mat"]
    found = similar(model, tokenizer, "the cat sat on the mat", texts, top=2)
    assert (found[0].number, len(found)) == (1, 2)
    assert found[0].cosine == pytest.approx(1, abs=1e-5)


def test_a_score_masks_one_token_at_a_time(model, tokenizer):
    result, = score(model, tokenizer, ["the cat sat"], batch_size=2)
    ids = tokenizer.encode("the cat sat")
    expected = []
    for place in (1, 2, 3):
        masked = np.array([ids])
        masked[0, place] = tokenizer.vocabulary.mask
        logits = model.forward(masked)[0][0, place].astype(np.float64)
        expected.append(logits[ids[place]] - np.log(np.exp(logits).sum()))
    assert result.log_probabilities == pytest.approx(expected, abs=1e-5)
    assert result.total == pytest.approx(sum(expected), abs=1e-5)
    assert result.tokens == ["the", "cat", "sat"]


def test_the_commands(directory, tmp_path):
    (tmp_path / "texts.txt").write_text("the cat sat\n\na dog ran.\n")
    common = ["--model", str(directory)]

    def run(*arguments: str) -> dict:
        result = runner.invoke(app, [*arguments, *common, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert len(run("fill-mask", "the [MASK]", "-k", "3")["results"][0]["masks"][0]) == 3
    assert np.array(run("embed", str(tmp_path / "texts.txt"))["vectors"]).shape == (3, 16)      # of a blank line, too
    nearest = run("similar", "a dog ran.", str(tmp_path / "texts.txt"))["neighbours"][0]
    assert (nearest["file"], nearest["line"]) == (str(tmp_path / "texts.txt"), 3)           # blank lines count too
    assert run("score", "the cat", "cat the")["scores"][1]["tokens"] == ["cat", "the"]
    plain = runner.invoke(app, ["embed", str(tmp_path / "texts.txt"), *common])
    assert [json.loads(line)["text"] for line in plain.stdout.splitlines()] == ["the cat sat", "", "a dog ran."]
    assert "1 of 3 lines is blank, first " in plain.stderr
    runner.invoke(app, ["embed", str(tmp_path / "texts.txt"), *common, "--out", str(tmp_path / "v.npy")])
    assert np.load(tmp_path / "v.npy").shape == (3, 16)
    assert "probability" in runner.invoke(app, ["fill-mask", "the [MASK]", *common]).stdout
    refused = runner.invoke(app, ["embed", str(tmp_path / "texts.txt"), *common, "--out", str(tmp_path / "v.txt")])
    assert "must end in .npy" in str(refused.exception)
    assert "nan" not in runner.invoke(app, ["score", "", *common]).stdout


def test_a_full_disk_leaves_no_vectors_and_no_temporary_file(directory, tmp_path, monkeypatch):
    (tmp_path / "texts.txt").write_text("the cat sat")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = runner.invoke(app, ["embed", str(tmp_path / "texts.txt"), "--model", str(directory), "--out",
                               str(tmp_path / "v.npy")])
    assert "No space left" in str(done.exception)
    assert isinstance(done.exception, CheckpointError)
    assert not list(tmp_path.glob("*v.npy*")) + list(tmp_path.glob(".*"))


def test_a_vocabulary_of_the_same_size_with_other_words_is_refused(model, tokenizer, tmp_path):
    saved = MiniBERT(model.config)
    saved.vocab_digest = tokenizer.vocabulary.digest()
    saved.save(tmp_path)
    pieces = list(tokenizer.vocabulary)
    WordPieceTokenizer([*pieces[:-1], "zebra"]).save(tmp_path)
    (tmp_path / "texts.txt").write_text("the cat sat")
    for command in (["fill-mask", "the [MASK]"], ["embed", str(tmp_path / "texts.txt")], ["score", "the cat"]):
        assert "does not belong to the model" in str(runner.invoke(app, [*command, "-m", str(tmp_path)]).exception)


def test_texts_that_are_too_long_are_read_in_windows_and_reported(model, tokenizer, directory, tmp_path):
    long = "the cat sat on the mat " * 3
    cut: list[int] = []
    vectors = embed(model, tokenizer, ["a dog", long, long + "a dog ran"], too_long=cut)
    assert cut == [1, 2]
    assert vectors[1] != pytest.approx(vectors[2])            # the end is read, too
    (tmp_path / "a.txt").write_text(f"a dog\n{long}\n")
    (tmp_path / "b.txt").write_text("\nthe cat\n")
    files, common = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], ["--model", str(directory)]
    said = runner.invoke(app, ["embed", *files, *common]).stderr
    assert "1 text was longer than the model's 12 tokens, and read in overlapping windows" in said
    found = json.loads(runner.invoke(app, ["similar", long, *files, *common, "--json"]).stdout)
    assert (found["query_too_long"], found["too_long"]) == (True, 1)
    assert [(n["file"], n["line"]) for n in found["neighbours"] if n["text"] == "the cat"] == [(files[1], 2)]
    shown = runner.invoke(app, ["similar", long, *files, *common]).stdout
    assert "b.txt" in shown
    assert "2 texts were longer than" in shown                # the query is one of them
    filled = runner.invoke(app, ["fill-mask", "the [MASK]", f"[MASK] {long} [MASK]", *common, "--json"])
    filled = json.loads(filled.stdout)
    assert [len(result["masks"]) for result in filled["results"]] == [1, 2]


def test_an_unknown_model_is_answered_with_the_shipped_ones():
    assert "did you mean mini?" in str(runner.invoke(app, ["fill-mask", "[MASK]", "-m", "minni"]).exception)
    assert "the shipped names are mini." in str(
        runner.invoke(app, ["score", "x", "--model", "nowhere"]).exception)
