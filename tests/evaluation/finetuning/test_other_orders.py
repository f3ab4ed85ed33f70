"""Tasks and probes with models that do not read [CLS] A [SEP]: XLNet has its [CLS] last, GPT-2 has none at all."""

import json

import numpy as np
import pytest
from task_files import CONFIG, WORDS, run
from test_finetune_command import command

from mini_bert import MiniBERT, ModelConfig, load_preset
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.formats.squad import Question
from mini_bert.evaluation.formats.tables import Labelled
from mini_bert.evaluation.probes.word_vectors import align_words
from mini_bert.evaluation.tasks.encode import encode_questions, encode_texts, encode_words
from mini_bert.inference.embed import embed
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer
from mini_bert.text.opening import load_tokenizer
from mini_bert.text.template import Template

SPECIAL = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
LEARN = {"learning-rate": 0.01, "max-samples": 120, "seeds": 1, "epochs": 10}
SIZES = {name: getattr(CONFIG, name) for name in ("num_layers", "num_heads", "hidden_size", "intermediate_size")}


def xlnet_tokenizer(folder):
    """A Unigram tokenizer of whole words with XLNet's template."""
    pieces = [*SPECIAL, "▁", *(f"▁{word}" for word in WORDS if word[0] not in "#."), "▁Anna", "▁Paris", "▁London", "."]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    template = Template.parse("$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2", {"<sep>": 4, "<cls>": 3})
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False,
                                            "rstrip": False, "normalized": False, "special": True}
                                           for i, name in enumerate(SPECIAL)],
        "normalizer": None, "pre_tokenizer": metaspace, "decoder": metaspace, "post_processor": template.to_json(),
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [[piece, -float(i)] for i, piece in enumerate(pieces)],
                  "byte_fallback": False}}))
    return load_tokenizer(folder)


def gpt2_tokenizer(folder):
    words = [*WORDS, "Anna", "Paris", "London"]
    return learn_tokenizer(count_words([*words, *(f"a {word}" for word in words)] * 3), 350, layout="gpt2")


@pytest.fixture(scope="module", params=[("xlnet-base", xlnet_tokenizer), ("gpt2", gpt2_tokenizer)],
                ids=["xlnet", "gpt2"])
def other(request, tmp_path_factory):
    """The directory of an untrained model with its tokenizer, and both."""
    preset, make = request.param
    folder = tmp_path_factory.mktemp("other")
    tokenizer = make(folder)
    config = ModelConfig.from_dict({**load_preset(preset).to_dict(), **SIZES, "vocab_size": len(tokenizer),
                                    "max_seq_length": 64, "mlm_head": "none", "dropout": 0.0, "attention_dropout": 0.0})
    model = MiniBERT(config, seed=2)
    model.save(folder)
    tokenizer.save(folder)
    return folder, model, tokenizer


def test_a_text_is_encoded_as_its_template_says(other):
    _, _, tokenizer = other
    made = encode_texts([Labelled("good film", None, "x")], tokenizer, 64, [], with_types=True)
    cls = tokenizer.vocabulary.roles.get("cls")
    assert made.rows == [tokenizer.encode("good film")]
    assert (made.types[0][-1] == 2) == (cls is not None)                 # the segment of XLNet's [CLS]
    empty = encode_texts([Labelled("", None, "x")], tokenizer, 64, [], with_types=True)
    assert len(empty.rows[0]) >= 1


def test_words_and_answers_are_read_where_they_are(other):
    _, _, tokenizer = other
    words = ["anna", "lives", "in", "paris"]
    made = encode_words([words], None, tokenizer, 64)
    first = [tokenizer.word_ids(word)[0] for word in words]
    assert [made.rows[0][place] for place in made.places[0]] == first
    aligned = align_words(tokenizer, [words], 64)
    assert [aligned.windows[0][place] for place in aligned.start] == first

    text = "the film was good. anna lives in paris"
    windows = encode_questions([Question("1", "where lives anna", text, ("paris",), text.index("paris"))], tokenizer,
                               64, with_types=True)
    (start, end), row = windows.encoded.answers[0], windows.encoded.rows[0]
    a, b = windows.offsets[0][start][0], windows.offsets[0][end][1]
    assert text[a:b].strip() == "paris"
    cls = tokenizer.vocabulary.roles.get("cls")
    assert windows.nowhere == [0 if cls is None else row.index(cls)]
    assert windows.nowhere[0] in windows.encoded.places[0]


def test_sentence_vectors_do_not_depend_on_the_batch(other):
    _, model, tokenizer = other
    texts = ["good film", "the plot was bad . anna lives in paris", ""]
    together = embed(model, tokenizer, texts)
    alone = np.concatenate([embed(model, tokenizer, [text]) for text in texts])
    assert np.abs(together - alone).max() <= 1e-5


@pytest.mark.parametrize("head", ["sequence", "last_token"])
def test_texts_are_classified(other, data, head, tmp_path):
    folder, _, _ = other
    found = run(*command(data, model=folder, head=head, out=tmp_path / "task", **LEARN))
    assert min(found["figures"]["accuracy"]) >= 0.95
    answers = run("predict", "--model", tmp_path / "task", "the film good was", "a bad plot the")["answers"]
    assert [answer["answer"] for answer in answers] == ["pos", "neg"]


def test_words_are_labelled(other, data, tmp_path):
    folder, _, _ = other
    found = run(*command(data, ".conll", task="ner", model=folder, out=tmp_path / "task", **LEARN))
    assert next(iter(found["figures"].values()))[0] >= 0.9
    (answer,) = run("predict", "--model", tmp_path / "task", "anna lives in paris .")["answers"]
    assert [(entity["text"], entity["kind"]) for entity in answer["entities"]] == [("anna", "PER"), ("paris", "LOC")]


def test_questions_are_answered(other, data, tmp_path):
    folder, _, _ = other
    found = run(*command(data, ".json", task="qa", model=folder, out=tmp_path / "task", **{**LEARN, "epochs": 15}))
    assert min(found["figures"]["f1"]) >= 0.8
    asked = "where lives anna\tfilm the was a. Anna lives in London. plot the."
    (answer,) = run("predict", "--model", tmp_path / "task", asked)["answers"]
    assert answer["answer"].strip() == "London"


@pytest.mark.parametrize(("loss", "problem", "outputs"), [
    ("squared_error", "regression", 1), ("binary_cross_entropy", "multi_label_classification", 3),
    ("cross_entropy", None, 1)])
def test_scores_are_read_as_the_config_says(other, loss, problem, outputs, tmp_path):
    _, model, tokenizer = other
    labels = [f"label {i}" for i in range(outputs)]
    head = "last_token(transform=tanh)" if model.config.token_types else "last_token(bias=false)"
    task = TaskModel(model, head, outputs, labels=labels, seed=1, loss=loss)
    task.described = {"model_type": "xlnet" if model.config.token_types else "gpt2"}
    task.save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()).get("problem_type") == problem
    tokenizer.save(tmp_path)
    (answer,) = run("predict", "--model", tmp_path, "good film")["answers"]
    ids, types = tokenizer.template.apply(tokenizer.ids("good film"))
    scores, _ = task.forward(np.array([ids]), token_types=np.array([types]) if task.config.token_types else None)
    if outputs == 1:
        assert answer["values"] == pytest.approx({"label 0": float(scores[0, 0])}, abs=1e-5)
        assert answer["probability"] is None
    else:
        expected = dict(zip(labels, 1 / (1 + np.exp(-scores[0])), strict=True))
        assert answer["probabilities"] == pytest.approx(expected, abs=1e-5)
