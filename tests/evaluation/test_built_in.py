"""Probes called with a model only: the tokenizer comes with the model, and the data is built in."""

import pytest

import mini_bert
from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.evaluation import (
    Phrase,
    ProbeData,
    ProbeOptions,
    analyze_linguistic_probes,
    measure_compositional_understanding,
    measure_representation_stability,
    probe_factual_knowledge,
    probe_semantic_knowledge,
    probe_syntactic_knowledge,
)
from mini_bert.evaluation.built_in import (
    SENTENCES,
    built_in_facts,
    built_in_minimal_pairs,
    built_in_words,
)
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.probes.classifier import Recipe
from mini_bert.pretrained import model_directory


@pytest.fixture(scope="module")
def model() -> MiniBERT:
    return mini_bert.load("mini")


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer.load("mini")


def test_a_loaded_model_remembers_its_directory(model, tmp_path):
    assert model.source == model_directory("mini")
    small = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=30))
    assert small.source is None
    small.save(tmp_path)
    assert mini_bert.load(tmp_path).source == tmp_path


def test_a_model_that_was_not_loaded_needs_a_tokenizer():
    with pytest.raises(InputError, match=r"not loaded by mini_bert\.load, so its tokenizer is not known; pass one"):
        probe_factual_knowledge(MiniBERT(mini_bert.load_preset("debug")))


def test_syntactic_knowledge_without_a_treebank_is_measured_on_minimal_pairs(model):
    found = probe_syntactic_knowledge(model, options=ProbeOptions(max_samples=10, threads=1))["minimal_pairs"]
    assert {group["name"] for group in found["paradigms"]} == \
        {"simple", "across a noun", "determiner and noun", "reflexives"}
    assert found["pairs"] == 40
    accuracy = {group["name"]: group["accuracy"]["token"]["mean"] for group in found["paradigms"]}
    assert accuracy["simple"] > 0.8
    with pytest.raises(InputError, match="give both train and test, or neither"):
        probe_syntactic_knowledge(model, train=[Sentence(("a",), ("X",))])


def test_linguistic_probes_find_the_tokenizer_with_the_model(model, tokenizer):
    data = ProbeData([Sentence(("the", "dog"), ("DET", "NOUN")), Sentence(("a", "king"), ("DET", "NOUN"))] * 4,
                     [Sentence(("the", "river"), ("DET", "NOUN"))])
    options = ProbeOptions(layers=("hidden_0",), seeds=1, threads=1, recipe=Recipe(max_epochs=1))
    found = analyze_linguistic_probes(model, {"pos": data}, options=options)
    assert found == analyze_linguistic_probes(model, {"pos": data}, tokenizer, options)
    assert found == analyze_linguistic_probes(model, {"pos": tuple(data)}, options=options)
    for tasks in (["pos"], {"pos": "train.conllu"}):
        with pytest.raises(InputError, match="map each task to its sentences"):
            analyze_linguistic_probes(model, tasks)


def test_semantic_and_factual_knowledge_have_built_in_data(model, tokenizer):
    words = probe_semantic_knowledge(model, layers=[3], threads=1)
    assert {score.data for score in words.similarity} == {"built-in pairs"}
    assert {score.section for score in words.analogies} == \
        {None, "family", "opposites", "plural", "past tense", "capitals"}
    assert words.similarity[0].spearman.mean > 0.2
    facts = probe_factual_knowledge(model, max_samples=5, threads=1)
    assert facts == probe_factual_knowledge(model, tokenizer, max_samples=5, threads=1)
    assert facts.facts + facts.left_out == 15


def test_composition_and_stability_take_their_cases_as_the_second_argument(model, tokenizer):
    cases = [Phrase("old", "house"), Phrase("new", "book")]
    found = measure_compositional_understanding(model, cases)
    assert found == measure_compositional_understanding(model, tokenizer, cases)
    stable = measure_representation_stability(model, ["typo"], seeds=(0,))
    assert stable == measure_representation_stability(model, tokenizer, SENTENCES, ["typo"], seeds=(0,))
    assert stable.texts == len(SENTENCES)
    assert list(measure_representation_stability(model, {"upper": lambda text, rng: text.upper()}, seeds=(0,))
                .perturbations) == ["upper"]


def test_the_built_in_data_is_consistent():
    pairs = built_in_minimal_pairs()
    assert len({pair.good for pair in pairs}) == len({pair.bad for pair in pairs}) == len(pairs)
    assert not {pair.good for pair in pairs} & {pair.bad for pair in pairs}
    for facts in built_in_facts().values():
        assert len({fact.prompt for fact in facts}) == len(facts)
        assert all(fact.prompt.count("[MASK]") == 1 and fact.negation.count(" not ") == 1 for fact in facts)
    similarity, analogies = built_in_words()
    assert len(set(similarity.pairs)) == len(similarity.pairs) == len(similarity.scores)
    assert len(set(analogies.questions)) == len(analogies.questions) == len(analogies.sections)
