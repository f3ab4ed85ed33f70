"""The page about variants shows the files that `mini-bert new variant` writes."""

from pathlib import Path

from run_page import blocks_of

from mini_bert.templates import KINDS, template

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
NAMES = {"activation": "squared_relu", "score_term": "distance_penalty", "block": "side_by_side",
         "task_head": "max_pooling", "objective": "focal", "optimiser": "sign_descent"}


def test_every_kind_is_on_the_page_as_the_command_writes_it():
    shown = [block.body for block in blocks_of(PAGE) if block.language == "python"]
    assert shown == [template(kind, NAMES[kind]) for kind in KINDS]
