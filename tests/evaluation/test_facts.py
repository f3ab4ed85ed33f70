"""Facts with a model whose ranking of words is known."""

import json
from pathlib import Path

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError
from mini_bert.evaluation.formats.lama import Fact, read_facts
from mini_bert.evaluation.statistics import wilson_interval
from mini_bert.evaluation.zero_shot.facts import probe_factual_knowledge
from mini_bert.text.vocabulary import SPECIAL_TOKENS

LAMA = Path(__file__).parents[3] / "shared" / "data" / "eval" / "lama" / "trex"
PLACES = ["paris", "rome", "oslo", "bern", "lima", "cairo", "delhi", "dakar", "quito", "minsk", "tokyo", "seoul"]
WORDS = [*PLACES, "france", "is", "not", "in", "new", "##york", "."]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def model() -> MiniBERT:
    """For every prompt, ranks the places in their order, above all other words but below [MASK]."""
    made = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=24,
                                max_seq_length=16), seed=None)
    made.params["mlm_head_b"][5 : 5 + len(PLACES)] = np.arange(len(PLACES), 0, -1)
    made.params["mlm_head_b"][4] = 99
    return made


def record(answer: str, subject: str = "France", **more: object) -> dict[str, object]:
    return {"sub_label": subject, "obj_label": answer, "masked_sentences": [f"{subject} is in [MASK] ."],
            "masked_negations": [f"{subject} is not in [MASK] ."], **more}


def write(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def test_ranks_by_relation(model, tokenizer, tmp_path):
    write(tmp_path / "P1.jsonl", record("Oslo"), record("Paris"), record("Oslo"), record("Seoul"), record("New York"))
    write(tmp_path / "P2.jsonl", record("Rome", "Rome"))
    write(tmp_path / "P3.jsonl", record("Atlantis"))
    found = probe_factual_knowledge(model, tokenizer, [tmp_path])
    first, second = found.relations
    assert (first.relation, first.facts, first.left_out, first.in_prompt) == ("P1", 4, 1, 0)
    assert first.prompts.p_at_1 == first.among_objects == wilson_interval(1, 4)
    assert first.prompts.p_at_10 == wilson_interval(3, 4)                             # Seoul is the twelfth
    assert first.prompts.mrr == pytest.approx((1 / 3 + 1 + 1 / 3 + 1 / 12) / 4)
    assert first.negations == first.prompts
    assert first.same_answer == wilson_interval(4, 4)
    assert first.frequent.p_at_1 == wilson_interval(2, 4)                                # Oslo
    assert first.frequent.mrr == pytest.approx((1 + 1 / 2 + 1 + 1 / 3) / 4)
    assert (second.in_prompt, second.prompts.p_at_1.mean, second.among_objects.mean) == (1, 0, 1)
    assert (found.facts, found.left_out, found.left_out_relations, found.windowed) == (5, 2, ["P3"], 0)
    assert found.means["p_at_1"].mean == pytest.approx(0.125)
    assert found.means["frequent_p_at_1"].mean == pytest.approx(0.75)
    assert json.loads(json.dumps(found.to_dict()))["relations"][0]["prompts"]["p_at_1"]["mean"] == 0.25


def test_equal_scores_for_all_words_give_chance_precision(tokenizer, tmp_path):
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=24,
                                 max_seq_length=16), seed=None)
    write(tmp_path / "P1.jsonl", record("Oslo"), record("Paris"))
    found = probe_factual_knowledge(model, tokenizer, [tmp_path]).relations[0]
    assert found.prompts.p_at_1.mean == pytest.approx(1 / 19)              # chance among nineteen words
    assert found.prompts.p_at_10.mean == pytest.approx(10 / 19)
    assert found.prompts.mrr == pytest.approx(1 / 10)              # the mean of ranks 1 to 19
    assert found.among_objects.mean == pytest.approx(1 / 2)


def test_a_model_that_reads_the_negation_answers_differently(tokenizer, tmp_path):
    model = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=24,
                                 max_seq_length=16))
    model.params.flat += 0.5 * np.random.default_rng(0).standard_normal(model.params.flat.size).astype(np.float32)
    write(tmp_path / "P1.jsonl", *(record(place, place) for place in PLACES))
    found = probe_factual_knowledge(model, tokenizer, [tmp_path / "P1.jsonl"])
    same, ranks = 0, []
    for place in PLACES:
        tops = []
        for text in (f"{place} is in [MASK] .", f"{place} is not in [MASK] ."):
            ids = np.array([tokenizer.encode(text)])
            logits = model.forward(ids)[0][ids == tokenizer.vocabulary.mask][0, 5:]
            tops.append(int(logits.argmax()))
            ranks.append(1 + int((logits > logits[PLACES.index(place)]).sum()))
        same += tops[0] == tops[1]
    assert found.relations[0].same_answer == wilson_interval(same, len(PLACES))
    assert found.relations[0].prompts.mrr == pytest.approx(np.mean(1 / np.array(ranks[::2])))
    assert found.relations[0].negations.mrr == pytest.approx(np.mean(1 / np.array(ranks[1::2])))


def test_prompts_without_negations_and_long_ones(model, tokenizer, tmp_path):
    long = {"sub_label": "x", "obj_label": "paris", "masked_sentences": ["is in " * 20 + "[MASK] ."]}
    found = probe_factual_knowledge(model, tokenizer, [write(tmp_path / "P1.jsonl", long)])
    assert found.relations[0].negations is found.relations[0].same_answer is None
    assert found.relations[0].prompts.p_at_1.mean == 1
    assert found.windowed == 1
    assert "same_answer" not in found.means


def test_several_prompts_are_several_facts(tmp_path):
    path = write(tmp_path / "P1.jsonl", record("Rome", masked_sentences=["a [MASK]", "b [MASK]"],
                                               masked_negations=["no a [MASK]", "no b [MASK]"]))
    assert read_facts(path) == [Fact("P1", "France", "Rome", "a [MASK]", "no a [MASK]"),
                                Fact("P1", "France", "Rome", "b [MASK]", "no b [MASK]")]


@pytest.mark.parametrize(("bad", "words"), [
    (record("Rome", masked_sentences="a [MASK]"), "'masked_sentences' is missing or is not a list"),
    (record("Rome", masked_sentences=[]), "'masked_sentences' is missing"),
    (record("Rome", masked_sentences=["nothing"]), "MASK. 0 times"),
    (record("Rome", masked_negations=["[MASK] [MASK]"]), "'masked_negations' contains .MASK. 2 times"),
    (record("Rome", masked_sentences=["[MASK]", "[MASK]"]), "2 prompts but 1 negations"),
    (record(" "), "'obj_label' is empty"),
    ({"sub_label": "x"}, "'obj_label' is missing"),
])
def test_a_malformed_line_is_refused_with_its_number(tmp_path, bad, words):
    with pytest.raises(DataError, match=f"P1.jsonl, line 2: .*{words}"):
        read_facts(write(tmp_path / "P1.jsonl", record("Rome"), bad))


def test_facts_without_a_single_piece_object_are_refused(model, tokenizer, tmp_path):
    with pytest.raises(DataError, match="has no facts"):
        read_facts(write(tmp_path / "P1.jsonl"))
    with pytest.raises(DataError, match="No object of these facts"):
        probe_factual_knowledge(model, tokenizer, [write(tmp_path / "P1.jsonl", record("Atlantis"))])


def test_samples_are_drawn_from_each_relation(model, tokenizer, tmp_path):
    for name in ("P1", "P2"):
        write(tmp_path / f"{name}.jsonl", *(record(place) for place in PLACES))
    found = probe_factual_knowledge(model, tokenizer, [tmp_path], max_samples=5, seed=1)
    assert [relation.facts for relation in found.relations] == [5, 5]
    assert found == probe_factual_knowledge(model, tokenizer, [tmp_path], max_samples=5, seed=1)


@pytest.mark.skipif(not LAMA.is_dir(), reason=f"there is no {LAMA}")
def test_the_published_lama_files_are_read():
    facts = read_facts(sorted(LAMA.glob("*.jsonl"))[0])
    assert all(fact.negation is not None for fact in facts)
