"""The comprehensive evaluation on a small model and hand-written tasks."""

import json
import re

import numpy as np
import pytest
from suite_folder import make_model

import mini_bert.evaluation.suite.suite as suite
from mini_bert import MiniBERT, WordPieceTokenizer
from mini_bert.errors import CorpusError, DataError, InputError, NumericalError
from mini_bert.evaluation.ngrams import NgramCounts
from mini_bert.evaluation.statistics import Interval, clustered_mean
from mini_bert.evaluation.suite.context import FULL, QUICK, EvaluationContext, SampleSizes
from mini_bert.evaluation.suite.parts import predictions
from mini_bert.evaluation.suite.rows import NUMBER, SummaryRow, shown
from mini_bert.evaluation.suite.suite import PARTS, EvaluationListener, comprehensive_evaluation
from mini_bert.evaluation.tasks.folder import TaskFolder
from mini_bert.report.evaluation_page import evaluation_page
from mini_bert.report.evaluation_sections import SECTIONS
from mini_bert.report.page import number_cell

SMALL = QUICK.capped(40)


@pytest.fixture(scope="module")
def model(place):
    return MiniBERT.load(place / "model"), WordPieceTokenizer.load(place / "model")


def evaluate(place, model, **options):
    options = {"text": [str(place / "text.txt")], "tasks": place / "tasks", "sizes": SMALL, "length": 16, "threads": 1,
               **options}
    return comprehensive_evaluation(*model, **options)


@pytest.fixture(scope="module")
def found(place, model):
    return evaluate(place, model)


def test_every_part_is_measured_in_order_and_every_score_has_a_baseline(found):
    assert [part["name"] for part in found.parts] == list(PARTS)
    assert found.not_measured == []
    for part in found.parts:
        assert part["rows"], part["name"]
        assert part["seconds"] >= 0
        for row in part["rows"]:
            assert row["baselines"] or row["random_init"] is not None, row
            assert row["sample"], row


def test_scores_of_samples_have_an_interval(found):
    for row in found.summary():
        assert isinstance(row["value"], dict), row
        if row["part"] == "facts":                    # a mean over a single relation
            assert (row["value"]["values"], row["value"]["low"]) == (1, None)
        else:
            assert row["value"]["low"] <= row["value"]["mean"] <= row["value"]["high"], row


def test_labels_that_depend_on_the_word_are_learned_and_random_labels_are_not(found):
    rows = {(row["part"], row["figure"].split(",")[0]): row for row in found.summary()}
    assert rows["pos", "accuracy"]["baselines"]["word-type memory"] == 1.0     # each word has one tag
    trees = rows["dep", "edges right (UUAS)"]                 # the, noun, verb, a, noun: 1-2, 2-3, 3-5 and 4-5
    assert trees["baselines"]["linear chain"] == 0.75
    assert 0.25 <= trees["value"]["mean"] < 1                 # the probe has only 40 sentences to learn from
    assert rows["blimp", "average of 2 paradigms"]["baselines"]["chance"] == 0.5
    loss = rows["masked", "loss"]
    assert loss["baselines"]["uniform"] == pytest.approx(np.log(27))
    assert loss["baselines"]["bigram"] < loss["baselines"]["unigram"] < loss["baselines"]["uniform"]
    assert set(rows["forgetting", "masked accuracy after sst2"]["baselines"]) == {"before", "most frequent token"}


def test_treebanks_are_selected_by_name_and_by_entities(found):
    parts = {part["name"]: part for part in found.parts}
    assert parts["pos"]["rows"][0]["sample"].startswith("en_a:")
    assert parts["ner"]["rows"][0]["sample"].startswith("en_b:")
    assert list(parts["tagging"]["details"]) == ["en_b"]
    assert "Trained on big.json, measured on small.json." in parts["qa"]["notes"]


def test_a_second_run_computes_nothing(place, model, found, monkeypatch):
    for part in PARTS:
        def refuse(context):
            raise AssertionError("computed again")
        monkeypatch.setitem(PARTS, part, PARTS[part]._replace(run=refuse))
    again = evaluate(place, model)
    assert again.parts == found.parts
    with pytest.raises(AssertionError, match="computed again"):
        evaluate(place, model, seed=1)
    with pytest.raises(AssertionError, match="computed again"):
        evaluate(place, model, fresh=True)


def test_different_weights_are_not_the_same_cached_model(place, model, found, monkeypatch):
    other = MiniBERT.load(place / "model")
    other.params.flat[0] += 1
    monkeypatch.setitem(PARTS, "masked", PARTS["masked"]._replace(run=lambda context: 1 / 0))
    with pytest.raises(ZeroDivisionError):                    # other errors are not hidden
        evaluate(place, (other, model[1]), only=["masked"])


def test_without_tasks_the_skipped_parts_point_to_the_option(place, model):
    found = evaluate(place, model, tasks=None)
    assert {part["name"] for part in found.parts} == {name for name, part in PARTS.items() if part.needs is None}
    reasons = {part["name"]: part["reason"] for part in found.not_measured}
    assert set(reasons) == {name for name, part in PARTS.items() if part.needs}
    assert all("--tasks" in reason for reason in reasons.values())


def test_missing_data_is_listed_with_the_expected_files(place, model, tmp_path):
    (tmp_path / "blimp").mkdir()
    for file in (place / "tasks/blimp").iterdir():
        (tmp_path / "blimp" / file.name).write_bytes(file.read_bytes())
    found = evaluate(place, model, tasks=tmp_path, only=["blimp", "pos", "facts"])
    assert [part["name"] for part in found.parts] == ["blimp"]
    reasons = {part["name"]: part["reason"] for part in found.not_measured}
    assert "NAME-ud-train.conllu" in reasons["pos"]
    assert "lama/**/*.jsonl" in reasons["facts"]


def test_a_model_without_an_mlm_head_skips_the_parts_that_need_one(place, tmp_path):
    folder = make_model(tmp_path / "model", head=False)
    pair = MiniBERT.load(folder), WordPieceTokenizer.load(folder)
    found = evaluate(place, pair, only=["masked", "geometry", "blimp", "similarity"])
    assert [part["name"] for part in found.parts] == ["geometry", "similarity"]
    assert {part["reason"] for part in found.not_measured} == {"The model has no MLM head."}


def test_unsuitable_data_skips_one_part_and_does_not_stop_the_evaluation(place, model, tmp_path):
    (tmp_path / "lama").mkdir()
    fact = {"sub_label": "x", "obj_label": "unheard", "masked_sentences": ["x [MASK] ."]}
    (tmp_path / "lama/P1.jsonl").write_text(json.dumps(fact) + "\n")
    found = evaluate(place, model, tasks=tmp_path, only=["masked", "facts"])
    assert [part["name"] for part in found.parts] == ["masked"]
    assert "single piece of the vocabulary" in found.not_measured[0]["reason"]


def test_an_overflow_skips_one_part_and_does_not_stop_the_evaluation(place, model, monkeypatch):
    def overflows(context):
        raise NumericalError("The loss is not finite.")

    monkeypatch.setitem(PARTS, "qa", PARTS["qa"]._replace(run=overflows))
    found = evaluate(place, model, only=["masked", "qa"], fresh=True)
    assert [part["name"] for part in found.parts] == ["masked"]
    assert found.not_measured[0]["reason"] == "The loss is not finite."


def test_mentions_are_not_called_named_entities(found):
    titles = {part["name"]: part["title"] for part in found.parts}
    assert titles["ner"] == titles["tagging"] == "Entity mentions, named or not"      # of Entity= in a treebank
    assert PARTS["ner"].title == "Named entities"                                     # of columns


def test_the_report_shows_copyable_answers_and_candidates(found):
    html = evaluation_page("x", {}, found)
    assert "in prompt" in html
    assert "candidates" in html


def test_a_learning_curve_shows_only_its_own_shares_of_the_data():
    part = {"figures": {"accuracy": [0.8]}, "from_random": {}, "baselines": {"bag of words": 0.77},
            "curve": {"0.1": 0.6, "1.0": 0.8}}
    (chart,) = [piece for piece in SECTIONS["classification"]({"sst2": part}) if "<svg" in piece]
    assert "bag of words" not in chart
    line = re.search(r'<polyline[^>]*points="([^"]*)"', chart)
    assert line is not None
    assert len(line[1].split()) == 2                                  # a point for each share


def test_a_malformed_file_stops_before_anything_is_computed(place, model, tmp_path):
    (tmp_path / "blimp").mkdir()
    (tmp_path / "blimp/a.jsonl").write_text('{"sentence_good": "a"}\n')
    heard = []

    class Heard(EvaluationListener):
        def begins(self, title, number, total):
            heard.append(title)

    with pytest.raises(DataError, match=r"a\.jsonl, line 1: the field 'sentence_bad'"):
        evaluate(place, model, tasks=tmp_path, listener=Heard())
    assert heard == []
    found = evaluate(place, model, tasks=tmp_path, only=["masked"])        # the malformed file is not used
    assert len(found.parts) == 1


def test_bad_input_is_one_sentence(place, model, tmp_path):
    with pytest.raises(DataError, match="There is no task folder"):
        evaluate(place, model, tasks=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no part .posse.; choose some of masked, "):
        evaluate(place, model, only=["pos", "posse"])
    other = WordPieceTokenizer([*model[1].vocabulary, "more", "words"])
    with pytest.raises(InputError, match="tokenizer has 29 pieces, but the model's vocabulary has only 27"):
        evaluate(place, (model[0], other))
    with pytest.raises(InputError, match="3 to 24 tokens"):
        evaluate(place, model, length=64)
    with pytest.raises(CorpusError, match="nodir"):           # even if its counts are not needed
        evaluate(place, model, only=["geometry"], train=tmp_path / "nodir")


def test_the_report_has_all_numbers_and_loads_nothing(found):
    html = evaluation_page("Evaluation of a & b", {"model": "a", "data": ["x"], "quick": True, "tasks": None}, found)
    assert "Evaluation of a &amp; b" in html
    for row in found.summary():
        assert number_cell(shown(row["value"], row["unit"])) in html, row
    assert "<small>(" in html                                         # the interval is below the number
    assert html.count("<svg") >= 15
    assert "http://" not in html
    assert "https://" not in html
    assert "nan" not in html.lower().replace("finance", "")
    for part in found.parts:
        assert f'href="#{part["name"]}"' in html
        assert f'id="{part["name"]}"' in html


def test_parts_that_were_not_measured_are_in_the_report():
    nothing = suite.EvaluationReport([], [{"name": "pos", "title": "Parts of speech", "level": "probes",
                                           "reason": "no <treebank>"}], 0.0, 0.0)
    assert "no &lt;treebank&gt;" in evaluation_page("x", {}, nothing)


# -------------------------------------------------------------------- what it is made of


def test_a_score_without_a_baseline_is_refused():
    with pytest.raises(InputError, match="'accuracy' has no baseline"):
        SummaryRow("accuracy", 0.9)
    assert SummaryRow("loss", 2.0, {}, 9.0, NUMBER).to_dict()["random_init"] == 9.0


def test_scores_are_shown_with_their_intervals():
    assert shown(Interval(0.842, 0.836, 0.848, 100)._asdict()) == "84.2 ± 0.6"
    assert shown(3.6244, NUMBER) == "3.624"
    assert shown(None) == ""


def test_a_limit_on_samples_does_not_change_the_number_of_runs():
    capped = FULL.capped(10)
    assert (capped.sentences, capped.pairs, capped.sample_sequences) == (10, 10, 10)
    assert (capped.probe_seeds, capped.runs, capped.epochs) == (FULL.probe_seeds, FULL.runs, FULL.epochs)
    assert FULL.capped(None) is FULL
    assert SampleSizes(pairs=5).capped(10).pairs == 5
    with pytest.raises(InputError, match="at least 2, not 1"):
        FULL.capped(1)


@pytest.mark.parametrize(("most", "sequences"), [(2, 2), (40, 32)])
def test_the_number_of_sequences_is_limited(place, model, most, sequences):
    with EvaluationContext(*model, [str(place / "text.txt")], TaskFolder(), FULL.capped(most), length=8) as context:
        assert sum(len(batch.input_ids) for batch in predictions.sample(context)) <= sequences


def test_equal_values_in_a_group_count_as_one():
    apart = clustered_mean([0, 1, 0, 1], [0, 1, 2, 3])
    together = clustered_mean([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3])
    assert apart.mean == together.mean == 0.5
    assert together.high == pytest.approx(apart.high)         # the second value of each pair adds no information
    assert apart.high - apart.mean == pytest.approx(1.96 * np.std([0, 1, 0, 1], ddof=1) / 2)
    assert clustered_mean([1, 2], [0, 0]).values == 1


def test_leaving_out_removes_one_occurrence_of_the_piece():
    ids = np.array([0, 1, 0, 1, 0, 2])
    all_of_it, without = NgramCounts([ids], 3), NgramCounts([ids], 3, leave_out=True)
    assert all_of_it.unigram(np.array([0, 2])).tolist() == [4 / 9, 2 / 9]
    assert without.unigram(np.array([0, 2])).tolist() == [3 / 8, 1 / 8]
    assert without.bigram(np.array([0]), np.array([1]))[0] == pytest.approx(0.7 * 1 / 2 + 0.3 * 2 / 8)
