"""Heads off, weights edited, two sides, pairs: what the page is told."""

import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.errors import InputError
from mini_bert.explorer.answers import ANSWERS
from mini_bert.explorer.session import Session

TEXT = {"text": "the cat sat on a mat .", "mask": "2"}


def asked(session, name, **more):
    return ANSWERS[name](session, TEXT | more)


def test_a_head_switched_off_moves_the_prediction_and_nothing_stays(session):
    before = session.model.params.flat.copy()
    plain, found = asked(session, "intervene"), asked(session, "intervene", off="0.1,1.0", edit="W_Q_0:3,5:0.7")
    assert plain["loss_before"] == plain["loss_after"]
    assert found["loss_after"] != found["loss_before"] == plain["loss_before"]
    (word, *_), = ([w for w in p["words"] if w["id"] == p["target_id"]] for p in found["predictions"])
    assert word["before"] != word["after"]
    assert found["edits"] == [{"name": "W_Q_0", "index": [3, 5], "before": pytest.approx(float(
        session.model.params["W_Q_0"][3, 5])), "value": 0.7}]
    assert session.model.params.flat.tobytes() == before.tobytes()
    assert session.taken == 0


@pytest.mark.parametrize(("more", "message"), [
    ({"off": "1"}, "its layer and its number"), ({"off": "9.0"}, "no head 0 in layer 9"),
    ({"off": "a.b"}, "whole numbers"), ({"edit": "W_Q_0:1,2"}, "An edit is a parameter"),
    ({"edit": "W_Q_0:1,2:inf"}, "An edit is a parameter"), ({"edit": "nothing:1:2"}, "no parameter"),
    ({"edit": "W_Q_0:99,0:1"}, "no place"), ({"edit": "\n".join(["W_Q_0:1,1:1"] * 65)}, "65 edits"),
    ({"mask": ""}, "Nothing is masked")])
def test_a_change_that_cannot_be_made_is_refused(session, more, message):
    with pytest.raises(InputError, match=message):
        asked(session, "intervene", **more)


def test_a_weight_that_makes_the_model_infinite_is_refused_and_put_back(session):
    before = session.model.params.flat.copy()
    with pytest.raises(Exception, match="finite"):
        asked(session, "intervene", edit="W1_0:1,1:3e38\nW1_0:2,1:3e38")
    assert session.model.params.flat.tobytes() == before.tobytes()


def test_without_another_sentence_the_words_are_compared_in_reverse_order(session):
    found = asked(session, "compare")
    assert found["chosen"]
    assert not found["models"]
    assert found["sides"][1]["text"] == ". mat a on sat cat the"
    assert [side["masks"] for side in found["sides"]] == [[2], [6]]      # the same word is masked on both sides
    assert len(found["cosine"]) == len(found["layers"])


def test_two_sentences_and_two_models_are_compared(session, tokenizer):
    found = asked(session, "compare", other="the dog ran .", othermask="none")
    assert "cosine" not in found                          # of other lengths
    assert found["sides"][1]["masks"] == []
    assert found["sides"][1]["loss"] is None
    same = asked(session, "compare", other=TEXT["text"])
    assert same["sides"][0]["loss"] == same["sides"][1]["loss"]
    assert min(map(min, same["cosine"])) == pytest.approx(1, abs=1e-9)
    model = MiniBERT(ModelConfig.from_dict({**session.model.config.to_dict(), "hidden_size": 8}), seed=5)
    session.other = Session(model, tokenizer, name="narrow")
    two = asked(session, "compare")
    assert two["models"]
    assert [side["name"] for side in two["sides"]] == ["small", "narrow"]
    assert two["sides"][0]["text"] == two["sides"][1]["text"]
    assert "cosine" not in two


def test_a_pair_is_read_with_its_token_types(tokenizer, session):
    model = MiniBERT(ModelConfig.from_dict({**session.model.config.to_dict(), "token_types": 2}), seed=5)
    paired = Session(model, tokenizer)
    found = asked(paired, "sentence", text="the cat sat .", pair="a dog ran .", mask="2")
    assert found["tokens"] == ["[CLS]", "the", "[MASK]", "sat", ".", "[SEP]", "a", "dog", "ran", ".", "[SEP]"]
    assert found["types"] == [0] * 6 + [1] * 5
    pair = {"text": "the cat sat .", "pair": "a dog ran .", "mask": "2"}
    steps = ANSWERS["forward"](paired, pair)["steps"]
    assert "type_vectors" in [step["name"] for step in steps]
    check = ANSWERS["verify"](paired, pair | {"name": "dtype_vectors", "index": "7,3"})
    assert check["passed"]
    assert ANSWERS["verify"](paired, pair | {"name": "dtoken_type_embeddings", "index": "1,3"})["passed"]
    before = ANSWERS["backward"](paired, pair)["loss"]
    done = ANSWERS["saliency"](paired, pair | {"position": "2"})
    assert done["methods"]
    model.params["token_type_embeddings"][1] += 1.0
    paired._changed()
    assert ANSWERS["backward"](paired, pair)["loss"] != before
    assert asked(session, "sentence", text="the cat sat .", pair="a dog ran .", mask="2")["types"][-1] == 1
