"""What each address answers, beside what the pipeline gives."""

from base64 import b64decode

import numpy as np
import pytest
from asking import asked_of, with_head

from mini_bert.serve.app import STATIC
from mini_bert.serve.openapi import openapi
from mini_bert.serve.routes import ROUTES

TEXTS = ["the cat sat on a mat .", "a big red dog ran",
         "the cat , the dog , the mat , the big red cat sat on a dog ran"]


def test_vectors_are_those_of_the_pipeline(ask, small):
    answer = ask("/v1/embeddings", {"input": TEXTS, "model": "small"})
    assert answer.status == 200
    found = answer.json
    assert [item["index"] for item in found["data"]] == [0, 1, 2]
    assert np.array([item["embedding"] for item in found["data"]]) == pytest.approx(small.embed(TEXTS), abs=1e-6)
    assert found["model"] == "small"
    tokens = sum(len(small.tokenizer.encode(text)) for text in TEXTS)
    assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_base64_holds_the_same_numbers_and_ids_are_read_as_their_text(ask, small):
    plain = ask("/v1/embeddings", {"input": TEXTS[0]}).json["data"][0]["embedding"]
    packed = ask("/v1/embeddings", {"input": TEXTS[0], "encoding_format": "base64"}).json["data"][0]["embedding"]
    assert np.frombuffer(b64decode(packed), "<f4") == pytest.approx(plain, abs=1e-6)
    ids = small.tokenizer.ids(TEXTS[0])
    for given in (ids, [ids]):
        assert ask("/v1/embeddings", {"input": given}).json["data"][0]["embedding"] == plain


def test_vectors_can_be_raw_and_long_texts_cut(ask, small):
    raw = np.array(ask("/embed", {"inputs": TEXTS, "normalize": False}).json)
    assert raw == pytest.approx(small.embed(TEXTS, normalise=False), abs=1e-6)
    ids = small.tokenizer.ids(TEXTS[2])
    assert len(ids) > 14
    for direction, kept in (("Right", ids[:14]), ("left", ids[-14:])):
        cut = ask("/embed", {"inputs": TEXTS[2], "truncate": True, "truncation_direction": direction}).json[0]
        assert cut == ask("/embed", {"inputs": [kept]}).json[0]
        assert cut != pytest.approx(ask("/embed", {"inputs": TEXTS[2]}).json[0], abs=1e-3)


def test_a_vector_that_comes_again_comes_from_the_cache(ask):
    first = ask("/embed", {"inputs": TEXTS}).json
    assert ask("/embed", {"inputs": TEXTS[:2]}).json == first[:2]
    assert '"cached": 2' in ask.log.getvalue().splitlines()[-1]
    assert 'minibert_cache_total{model="small",result="hit"} 2' in ask("/metrics").body.decode()


def test_requests_that_come_together_get_their_own_answers(ask, small):
    texts = [f"{a} {b} sat on {c} ." for a in ("the", "a") for b in ("cat", "dog", "mat") for c in ("the", "a", "big")]
    requests = [("/embed", {"inputs": [text, texts[-i]]}) for i, text in enumerate(texts)]
    answers = [answer.json for answer in ask.many(requests)]
    for (_, given), found in zip(requests, answers, strict=True):
        assert np.array(found) == pytest.approx(small.embed(given["inputs"]), abs=1e-6)


def test_models_are_listed_and_chosen_by_name(small, films):
    with asked_of(small, films) as ask:
        assert [model["id"] for model in ask("/v1/models").json["data"]] == ["small", "films"]
        assert ask("/v1/models/films").json["id"] == "films"
        assert ask("/v1/models/other").status == 404
        mine, theirs = (ask("/v1/embeddings", {"input": TEXTS[0], "model": name}).json["data"][0]["embedding"]
                        for name in ("small", "films"))
        assert mine != theirs
        missing = ask("/v1/embeddings", {"input": "a", "model": "gone"})
        assert (missing.status, missing.json["error"]["code"]) == (404, "model_not_found")
        assert ask("/predict", {"inputs": "a dog"}).status == 200        # the first that can


def test_labels_come_with_the_highest_score_first(films):
    with asked_of(films) as ask:
        expected = films.predict("the cat sat").probabilities
        found = ask("/predict", {"inputs": "the cat sat"}).json
        assert {item["label"]: item["score"] for item in found} == pytest.approx(expected, abs=1e-6)
        assert [item["score"] for item in found] == sorted((item["score"] for item in found), reverse=True)
        many = ask("/predict", {"inputs": [["the cat sat"], ["a dog"]]}).json
        assert many[0] == found
        assert len(many) == 2
        raw = {item["label"]: item["score"]
               for item in ask("/predict", {"inputs": "the cat sat", "raw_scores": True}).json}
        odds = np.exp([raw[label] for label in expected])
        assert odds / odds.sum() == pytest.approx(list(expected.values()), abs=1e-5)
        pair = ask("/predict", {"inputs": ["the cat", "a dog"]})
        assert (pair.status, "takes single texts" in pair.said) == (400, True)


def test_a_tagger_answers_with_words(tokenizer):
    tagger = with_head("tagger", tokenizer, ["NOUN", "VERB"], pairs=False, head="tokens", task="ner")
    with asked_of(tagger) as ask:
        found = ask("/predict", {"inputs": "the cat sat"}).json
        assert [word["text"] for word in found["words"]] == ["the", "cat", "sat"]


def test_a_model_of_pairs_ranks_texts_and_without_one_cosines_do(small, ranker):
    asked = {"query": TEXTS[0], "texts": TEXTS, "return_text": True}
    with asked_of(small, ranker) as ask:
        raw = ask("/rerank", asked | {"raw_scores": True}).json
        ids, types = ranker.tokenizer.encode_pair(TEXTS[0], TEXTS[1])
        score, = ranker.model.forward(np.array([ids]), token_types=np.array([types]))[0][0]
        assert next(item["score"] for item in raw if item["index"] == 1) == pytest.approx(score, abs=1e-6)
        assert [item["score"] for item in raw] == sorted((item["score"] for item in raw), reverse=True)
        assert {item["index"]: item["text"] for item in raw} == dict(enumerate(TEXTS))
        shares = {item["index"]: item["score"] for item in ask("/rerank", asked).json}
        assert shares == pytest.approx({item["index"]: 1 / (1 + np.exp(-item["score"])) for item in raw}, abs=1e-6)
    with asked_of(small) as ask:
        found = ask("/rerank", asked).json
        vectors = small.embed(TEXTS)
        assert {item["index"]: item["score"] for item in found} == pytest.approx(
            dict(enumerate((vectors @ vectors[0]).tolist())), abs=1e-6)
        assert found[0]["index"] == 0


def test_tokens_have_their_characters(ask, small):
    found, = ask("/tokenize", {"inputs": "the cats sat"}).json
    assert [token["text"] for token in found] == ["[CLS]", "the", "cat", "##s", "sat", "[SEP]"]
    assert [token["special"] for token in found] == [True, False, False, False, False, True]
    assert ["the cats sat"[token["start"] : token["stop"]] for token in found[1:-1]] == ["the", "cat", "s", "sat"]
    assert found[0]["start"] is None
    plain, = ask("/tokenize", {"inputs": ["the cats sat"], "add_special_tokens": False}).json
    assert plain == found[1:-1]


def test_masks_are_filled_texts_scored_and_predictions_explained(mini):
    sentence = "They met for the first [MASK] in Paris."
    with asked_of(mini) as ask:
        filled, = ask("/fill-mask", {"inputs": sentence, "top": 2}).json
        assert filled == mini.fill_mask([sentence], 2).to_dict()[0]
        scores = ask("/score", {"inputs": ["The cat sat.", ""]}).json
        assert scores[0]["total"] == pytest.approx(mini.score("The cat sat.").total, rel=1e-5)
        assert scores[1]["perplexity"] is None
        explained = ask("/explain", {"inputs": sentence}).json
        expected = mini.explain(sentence)
        assert explained["prediction"] == expected.prediction == "time"
        assert explained["attributions"] == pytest.approx(expected.attributions, abs=1e-4)
        weights = ask("/explain", {"inputs": "a dog", "method": "attention", "layer": 2}).json
        assert weights["layers"] == [2]
        _, cache = mini.model.encode(np.array([mini.tokenizer.encode("a dog")]))
        assert np.array(weights["attention"][0]) == pytest.approx(cache["attention_weights_2"][0], abs=1e-5)


def test_the_nearest_of_given_texts_are_found(ask, small):
    found, = ask("/similar", {"inputs": TEXTS[1], "texts": TEXTS, "top": 2}).json
    assert [item["index"] for item in found] == [hit.number for hit in small.similar(TEXTS[1], TEXTS, 2)]
    assert found[0] == {"index": 1, "score": pytest.approx(1, abs=1e-6), "text": TEXTS[1]}
    missing = ask("/similar", {"inputs": "a"})
    assert (missing.status, "--collection" in missing.said) == (400, True)


def test_a_loaded_collection_is_searched(small, films, tmp_path):
    np.save(tmp_path / "vectors.npy", small.embed(TEXTS))
    with asked_of(films, small, collection=tmp_path / "vectors.npy", texts=iter(TEXTS)) as ask:
        ask.service.collection.model = "small"
        found = ask("/similar", {"inputs": [TEXTS[2], TEXTS[0]], "top": 1}).json
        assert [hits[0]["text"] for hits in found] == [TEXTS[2], TEXTS[0]]
        assert ask("/info").json["collection"]["vectors"] == 3
        other = ask("/similar", {"inputs": "a", "model": "films"})
        assert (other.status, "of small" in other.said) == (400, True)


def test_health_and_what_it_is(ask):
    assert ask("/health").json == {"status": "ok"}
    about = ask("/info").json
    assert (about["model_id"], about["max_input_length"], about["models"][0]["dimensions"]) == ("small", 16, 16)
    assert about["models"][0]["offers"] == ["embeddings", "embed", "similar", "tokenize", "fill_mask", "score",
                                            "explain"]


def test_every_example_of_the_table_is_answered(mini):
    with asked_of(mini) as ask:
        for route in ROUTES:
            answer = ask(route.path.replace("{name}", "mini"), route.example)
            assert answer.status == (400 if route.path == "/predict" else 200), route.path


def test_openapi_describes_the_table(ask):
    described = ask("/openapi.json").json
    assert described == openapi(keys=False)
    assert described["openapi"] == "3.1.0"
    assert set(described["paths"]) == {route.path for route in ROUTES} | {"/metrics"}
    for route in ROUTES:
        operation = described["paths"][route.path][route.method.lower()]
        if route.fields:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            assert set(route.example) <= set(schema["properties"])
            assert set(schema["required"]) <= set(route.example)
    names = [operation["operationId"] for methods in described["paths"].values() for operation in methods.values()]
    assert len(set(names)) == len(names)


def test_the_page_loads_nothing_from_elsewhere(ask):
    page = ask("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert ask("/").headers["location"] == "/docs"
    for file in STATIC.iterdir():
        assert ask(f"/{file.name.removesuffix('.html')}").body == file.read_bytes()
        assert "http://" not in file.read_text("utf-8")
        assert "https://" not in file.read_text("utf-8")
        assert "innerHTML" not in file.read_text("utf-8")


def test_metrics_are_in_the_format_of_prometheus(ask):
    ask("/embed", {"inputs": TEXTS})
    ask("/nowhere/at/all")
    lines = ask("/metrics").body.decode().splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert all(float(value) >= 0 for value in samples.values())
    assert samples['minibert_requests_total{path="/embed",status="200"}'] == "1"
    assert samples['minibert_requests_total{path="other",status="404"}'] == "1"
    assert samples['minibert_request_seconds_bucket{path="/embed",le="+Inf"}'] == "1"
    assert samples['minibert_batch_tokens_count{model="small"}'] == "1"
    assert not any("nowhere" in line for line in lines)
