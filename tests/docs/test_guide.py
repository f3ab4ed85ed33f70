"""The guide keeps its promises: a place for every planned lesson, five parts to a day, a proof behind each box.

The plans are four: a learning guide of six phases, a larger model, a plan of improvements, and a comparison of models.
LESSONS maps each of their Python examples, in order, to the heading under which its counterpart runs, and to the names
that a reader of the plan would look for: the guide uses each of them, and the page of the lesson at least one.
"""

import ast
import re
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from run_page import blocks_of

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
BLOCKS, ATTENTION, MODEL, TRAINING, EVALUATION, EXPERIMENTS = PAGES = (
    "1-building-blocks.md", "2-attention.md", "3-the-full-model.md", "4-training.md", "5-evaluation.md",
    "6-experiments.md")
HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
PARTS = ("Run: ", "Derive: ", "Change and predict: ", "Check of day ")


class Lesson(NamedTuple):
    plan: str
    title: str
    page: str
    heading: str
    names: str = ""                       # importable ones, "module:Name.attribute", with blanks between


LESSONS = [
    # the learning guide: 29
    Lesson("learning guide", "embedding lookup", BLOCKS, "Run: embeddings are rows of a matrix"),
    Lesson("learning guide", "linear layer", BLOCKS, "Run: a linear map"),
    Lesson("learning guide", "ReLU", BLOCKS, "Run: ReLU keeps positive numbers"),
    Lesson("learning guide", "layer normalisation", BLOCKS, "Run: layer normalisation"),
    Lesson("learning guide", "embeddings of a model", BLOCKS, "Run: from ids to the first layer",
           "mini_bert:MiniBERT.token_embeddings mini_bert:MiniBERT.position_embeddings"),
    Lesson("learning guide", "configuration", BLOCKS, "Run: every size of the config"),
    Lesson("learning guide", "attention of three words", ATTENTION, "Run: three words look at each other"),
    Lesson("learning guide", "scaling of scores", ATTENTION, "Run: why divide by the root of d_k"),
    Lesson("learning guide", "splitting into heads", ATTENTION, "Run: the arithmetic of heads"),
    Lesson("learning guide", "attention of a layer and its cache", ATTENTION,
           "Run: multi-head attention from its parts",
           "mini_bert:MiniBERT.attend"),
    Lesson("learning guide", "picture of attention", ATTENTION, "Run: a picture of attention",
           "mini_bert:WordPieceTokenizer.load"),
    Lesson("learning guide", "residual connections", MODEL, "Run: what a sum keeps"),
    Lesson("learning guide", "a whole block", MODEL,
           "Run: a block from two sub-layers", "mini_bert:MiniTransformerLayer"),
    Lesson("learning guide", "stack of layers", MODEL, "Run: the stack"),
    Lesson("learning guide", "parameter count", MODEL, "Run: count the parameters",
           "mini_bert:MiniBERT.get_parameter_count"),
    Lesson("learning guide", "traced forward pass", MODEL, "Run: a pass step by step"),
    Lesson("learning guide", "masking", TRAINING, "Run: hide some words", "mini_bert:mask_tokens"),
    Lesson("learning guide", "cross-entropy", TRAINING, "Run: the loss of one guess"),
    Lesson("learning guide", "what a gradient is", TRAINING, "Run: a slope, predicted and measured"),
    Lesson("learning guide", "gradient checking", TRAINING,
           "Run: every gradient of a model", "mini_bert:gradient_check"),
    Lesson("learning guide", "a step of Adam", TRAINING, "Run: one step of AdamW by hand", "mini_bert:AdamW"),
    Lesson("learning guide", "training loop", TRAINING, "Run: the training loop"),
    Lesson("learning guide", "metrics", EVALUATION, "Run: accuracy and loss on held-out words"),
    Lesson("learning guide", "perplexity", EVALUATION, "Run: perplexity"),
    Lesson("learning guide", "what probes ask", EVALUATION, "Run: a probe for parts of speech"),
    Lesson("learning guide", "probe for parts of speech", EVALUATION, "Run: a probe for parts of speech",
           "mini_bert.evaluation.probes.probing:probe_labels"),
    Lesson("learning guide", "what fine-tuning is", EVALUATION, "Run: a task that needs what pre-training taught"),
    Lesson("learning guide", "fine-tuning on sentiment", EVALUATION, "Run: a task that a baseline solves"),
    Lesson("learning guide", "attention analysis", EXPERIMENTS, "Run: importance of heads"),
    # the larger model: 6
    Lesson("larger model", "creating it", EXPERIMENTS, "Run: the larger model",
           "larger_bert:LargerBERT larger_bert:LARGER_BERT_CONFIG"),
    Lesson("larger model", "forward pass", EXPERIMENTS, "Run: the larger model", "larger_bert:LargerBERT.forward"),
    Lesson("larger model", "training", EXPERIMENTS, "Run: train it, save it, load it",
           "larger_bert.train:LargerBERTTrainer.load_tokenizer mini_bert.data:MLMDataGenerator"),
    Lesson("larger model", "loading a checkpoint", EXPERIMENTS, "Run: train it, save it, load it",
           "larger_bert:LargerBERT.load_checkpoint larger_bert:LargerBERT.set_training"),
    Lesson("larger model", "initialisation by depth", EXPERIMENTS, "Run: two measures for deeper models"),
    Lesson("larger model", "gradient accumulation", EXPERIMENTS, "Run: two measures for deeper models",
           "mini_bert:MiniBERTGradients.accumulate_mlm"),
    # the improvements: 22
    Lesson("improvements", "pictures of attention, gradients and weights", EXPERIMENTS,
           "Run: gradients and weights over a run",
           "mini_bert.plots:visualize_attention_patterns mini_bert.plots:plot_gradient_flow "
           "mini_bert.analysis.dynamics.weight_evolution:analyze_weight_evolution"),
    Lesson("improvements", "analyser of components", BLOCKS, "Run: layer normalisation",
           "mini_bert:MathematicalAnalyzer.analyze_attention_computation "
           "mini_bert:MathematicalAnalyzer.analyze_layer_norm_statistics "
           "mini_bert:MathematicalAnalyzer.analyze_ffn_activation_patterns"),
    Lesson("improvements", "training metrics", EXPERIMENTS, "Run: the loss around a model",
           "mini_bert.evaluation.representations.geometry:compute_effective_rank "
           "mini_bert.analysis.dynamics.sensitivity:analyze_learning_rate_sensitivity "
           "mini_bert.analysis.dynamics.sensitivity:compute_layer_wise_learning_rates"),
    Lesson("improvements", "stability of training", EVALUATION, "Change and predict: what fine-tuning forgets",
           "mini_bert.analysis.dynamics.loss_landscape:analyze_loss_landscape "
           "mini_bert.analysis.dynamics.sensitivity:detect_mode_collapse "
           "mini_bert.evaluation.tasks.forgetting:measure_catastrophic_forgetting"),
    Lesson("improvements", "relative positions, RoPE, gates", EXPERIMENTS,
           "Run: a learned bias for each distance, and a gate on each head"),
    Lesson("improvements", "Lion, adaptive clipping, Lookahead", EXPERIMENTS, "Run: four ways to take a step"),
    Lesson("improvements", "model factory", MODEL, "Run: create models by name",
           "mini_bert:ModelFactory.create_model mini_bert:ModelFactory.load_model "
           "mini_bert:ModelFactory.create_tokenizer"),
    Lesson("improvements", "order of modules", MODEL, "Run: create models by name",
           "mini_bert.core.model: mini_bert.core.modules.attention.self_attention: "
           "mini_bert.core.modules.embeddings.embeddings: mini_bert.core.modules.linear: "
           "mini_bert.training.optimisers.adamw: mini_bert.training.schedules: "
           "mini_bert.text.batches: mini_bert.training.trainer: "
           "mini_bert.evaluation.metrics: mini_bert.evaluation.probes.probing: mini_bert.evaluation.tasks.run: "
           "mini_bert.analysis.explorer: mini_bert.plots:"),
    Lesson("improvements", "order of configurations", MODEL, "Run: create models by name",
           "mini_bert:load_config mini_bert:load_preset mini_bert:preset_names"),
    Lesson("improvements", "explorer", MODEL, "Run: a pass step by step",
           "mini_bert:MathematicalExplorer.explore_attention_heads "
           "mini_bert:MathematicalExplorer.step_through_forward_pass "
           "mini_bert:MathematicalExplorer.analyze_gradient_flow "
           "mini_bert:MathematicalExplorer.compare_layer_representations"),
    Lesson("improvements", "analyser of training", TRAINING, "Run: train on a text, and read the curve",
           "mini_bert:TrainingAnalyzer.loss_components mini_bert:TrainingAnalyzer.analyze_parameter_updates "
           "mini_bert:TrainingAnalyzer.detect_training_issues"),
    Lesson("improvements", "metrics, first level", EVALUATION, "Run: accuracy and loss on held-out words",
           "mini_bert.evaluation.metrics:masked_accuracy mini_bert.evaluation.metrics:compute_perplexity "
           "mini_bert.evaluation.metrics:compute_gradient_norm"),
    Lesson("improvements", "metrics, second level", EVALUATION, "Run: representations in numbers",
           "mini_bert.evaluation.representations.geometry:compute_token_diversity "
           "mini_bert.evaluation.representations.geometry:compute_layer_similarity "
           "mini_bert.evaluation.representations.geometry:compute_attention_entropy "
           "mini_bert.evaluation.representations.geometry:compute_effective_dimensionality"),
    Lesson("improvements", "metrics, third level", EVALUATION, "Run: knowledge without training a probe",
           "mini_bert.evaluation.probes.probing:analyze_linguistic_probes "
           "mini_bert.evaluation.representations.geometry:compute_representation_geometry "
           "mini_bert.evaluation.representations.composition:measure_compositional_understanding"),
    Lesson("improvements", "attention heat map", ATTENTION, "Run: a picture of attention",
           "mini_bert.report.figures:create_attention_heatmap"),
    Lesson("improvements", "gradients by layer", EXPERIMENTS,
           "Change and predict: gradients by layer, post-LN and pre-LN",
           "mini_bert.analysis.dynamics.gradient_flow:analyze_gradient_magnitudes_by_layer"),
    Lesson("improvements", "weights over checkpoints", EXPERIMENTS, "Run: how do attention patterns evolve",
           "mini_bert.analysis.dynamics.weight_evolution:track_weight_changes"),
    Lesson("improvements", "curriculum learning", EXPERIMENTS, "Run: a curriculum"),
    Lesson("improvements", "adaptive masking", EXPERIMENTS, "Run: masking that adapts to the model",
           "mini_bert.text.masking:Masking"),
    Lesson("improvements", "auxiliary tasks", EXPERIMENTS, "Run: a second task",
           "mini_bert.training.config:make_objective"),
    Lesson("improvements", "syntax, meaning and facts", EVALUATION, "Run: knowledge without training a probe",
           "mini_bert.evaluation.probes.probing:probe_syntactic_knowledge "
           "mini_bert.evaluation.representations.similarity:probe_semantic_knowledge "
           "mini_bert.evaluation.zero_shot.facts:probe_factual_knowledge"),
    Lesson("improvements", "geometry and stability of vectors", EVALUATION, "Run: knowledge without training a probe",
           "mini_bert.evaluation.representations.geometry:compute_representation_geometry "
           "mini_bert.evaluation.representations.stability:measure_representation_stability"),
    # the comparison: 1
    Lesson("comparison", "attention in two lines", ATTENTION, "Run: why divide by the root of d_k"),
]


def of_page(page: str) -> str:
    return (GUIDE / page).read_text("utf-8")


def headings(page: Path) -> list[tuple[int, int, str]]:
    """Level, line and text of each heading outside fences."""
    text = re.sub(r"```.*?```", lambda fence: re.sub(r"[^\n]", " ", fence[0]), page.read_text("utf-8"), flags=re.DOTALL)
    return [(len(found[1]), text.count("\n", 0, found.start()) + 1, found[2].strip())
            for found in HEADING.finditer(text)]


def section(page: str, title: str) -> tuple[int, int]:
    """First line of a section and the one behind it."""
    found = headings(GUIDE / page)
    level, line = next((level, line) for level, line, text in found if text == title)
    return line, min((other for depth, other, _ in found if other > line and depth <= level), default=10**9)


def runs_in(page: str, first: int, behind: int) -> bool:
    return any(first < block.line < behind and block.reason is None for block in blocks_of(GUIDE / page))


@cache
def used_names(page: str) -> frozenset[str]:
    """The names that a page's Python blocks use; to import one is not to use it."""
    nodes = [node for block in blocks_of(GUIDE / page) if block.language == "python" and block.reason is None
             for node in ast.walk(ast.parse(block.body))]
    return frozenset({node.id for node in nodes if isinstance(node, ast.Name)}
                     | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


def test_every_example_of_the_plans_has_a_row():
    counts = Counter(lesson.plan for lesson in LESSONS)
    assert counts == {"learning guide": 29, "larger model": 6, "improvements": 22, "comparison": 1}
    assert len({(lesson.plan, lesson.title) for lesson in LESSONS}) == len(LESSONS)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: f"{lesson.plan}, {lesson.title}")
def test_a_lesson_has_a_heading_a_block_that_runs_and_its_names(lesson: Lesson):
    assert lesson.heading in [text for _, _, text in headings(GUIDE / lesson.page)]
    assert runs_in(lesson.page, *section(lesson.page, lesson.heading))
    last = set()
    for name in lesson.names.split():
        module, _, path = name.partition(":")
        thing = import_module(module)
        for part in filter(None, path.split(".")):
            thing = getattr(thing, part)
        last |= {path.split(".")[-1]} - {""}
    assert last <= set().union(*map(used_names, PAGES))
    assert not last or last & used_names(lesson.page)


DAYS = [(page, text) for page in PAGES for level, _, text in headings(GUIDE / page) if level == 2]


def test_the_days_are_in_order():
    assert [int(re.match(r"Day (\d+): ", text)[1]) for _, text in DAYS] == list(range(1, len(DAYS) + 1))
    assert [sum(page == name for page, _ in DAYS) for name in PAGES[:5]] == [3] * 5
    assert len(DAYS) >= 16


@pytest.mark.parametrize(("page", "day"), DAYS, ids=[day.partition(":")[0] for _, day in DAYS])
def test_a_day_has_its_five_parts(page: str, day: str):
    first, behind = section(page, day)
    lines = of_page(page).splitlines()
    inside = [(line, text) for level, line, text in headings(GUIDE / page) if level == 3 and first < line < behind]
    assert {part for _, text in inside for part in PARTS if text.startswith(part)} == set(PARTS)
    assert all(text.startswith(PARTS) for _, text in inside)
    assert "**Goal.**" in "\n".join(lines[first : inside[0][0]])
    for line, text in inside:
        _, end = section(page, text)
        content = "\n".join(lines[line : end - 1])
        if text.startswith("Run: "):
            assert runs_in(page, line, end), text
        elif text.startswith("Derive: "):
            assert "](../math/" in content, text
        elif text.startswith("Change and predict: "):
            assert content.index("**Prediction.**") < content.index("```"), text
            assert runs_in(page, line, end), text
        else:
            questions, answers = content.split("<details")
            numbers = [re.findall(r"^(\d)\. ", part, re.MULTILINE) for part in (questions, answers)]
            assert numbers[0] == numbers[1], text
            assert 3 <= len(numbers[0]) <= 5, text
            assert "</details>" in answers


def slug(heading: str) -> str:
    """The anchor that a renderer gives a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_links_to_headings_of_the_guide_lead_there(page: str):
    for target, anchor in re.findall(r"\]\(((?:[^)#\s]+\.md)?)#([^)\s]+)\)", of_page(page)):
        there = GUIDE / (target or page)
        assert anchor in [slug(text) for _, _, text in headings(there)], f"{target}#{anchor}"


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_the_exercises_that_are_named_exist(page: str):
    from mini_bert.exercises import NAMES

    named = set(re.findall(r"mini-bert exercise (?:start|check|hint|solution|run) ([a-z][\w-]*)", of_page(page)))
    assert named <= set(NAMES)


def test_each_box_of_the_checklists_names_its_proof():
    from mini_bert.exercises import NAMES

    text = of_page("README.md")
    weeks = [int(week) for week in re.findall(r"^### After week (\d)", text, re.MULTILINE)]
    assert weeks == [2, 4, 6, 8]
    boxes = re.findall(r"^- \[ \] (.*?)(?=^- \[ \]|^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert len(boxes) == 3 * len(weeks)
    for box in boxes:
        assert re.search(r"\]\([^)]+\)", box) or "mini-bert exercise" in box, box
    derived = next(box for box in boxes if "Derive the gradients" in box)
    assert set(re.findall(r"`(\w+)`", derived)) <= set(NAMES)
