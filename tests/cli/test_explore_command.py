"""mini-bert explore: what it prints when the server starts."""

import json

from typer.testing import CliRunner

from mini_bert.cli.app import app
from mini_bert.cli.look import explore


def test_json_gives_the_address_of_the_server(monkeypatch):
    def serve(session, *, say, fragment, **options):
        say("Warning: 0.0.0.0 can be reached by other machines.")
        say(f"The explorer is at http://127.0.0.1:8640/{fragment}; Ctrl-C ends it.")

    monkeypatch.setattr(explore, "_server", lambda: serve)
    done = CliRunner().invoke(app, ["explore", "The cat sat.", "--mask", "2", "--no-browser", "--json"])
    assert done.exit_code == 0, done.output
    address = json.loads(done.stdout)["address"]
    assert address.startswith("http://127.0.0.1:8640/#")
    assert ";" not in address
    assert "Warning" in done.stderr
    plain = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert "The explorer is at http://127.0.0.1:8640/" in plain.stdout
