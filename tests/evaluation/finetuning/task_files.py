"""The config and vocabulary of a small model, and a function that runs a command."""

import json

from typer.testing import CliRunner

from mini_bert import ModelConfig
from mini_bert.cli.app import app

WORDS = ["good", "bad", "film", "plot", "a", "the", "was", "paris", "london", "anna", "who", "where", "lives", "in",
         "##s", "."]
CONFIG = ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=21, max_seq_length=16)


def run(*arguments: object) -> dict:
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)
