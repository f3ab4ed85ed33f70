"""The Containerfile and the systemd unit start the server as it is."""

import json
import re
import shlex
from pathlib import Path

from typer.main import get_command

from mini_bert.cli.app import app

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "serving"


def require_options(words):
    """Are these words of the command line, as `mini-bert serve` takes them?"""
    command = get_command(app).commands["serve"]
    assert words[:2] == ["mini-bert", "serve"]
    with command.make_context("serve", words[2:]) as context:
        assert context.params["model"] in (["mini"], ("mini",))
        return context.params


def test_the_container_starts_the_server_and_has_what_it_copies():
    lines = (EXAMPLES / "Containerfile").read_text("utf-8").splitlines()
    given = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    params = require_options([*json.loads(given["ENTRYPOINT"]), *json.loads(given["CMD"])])
    assert str(params["port"]) == given["EXPOSE"]
    copied = [name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert "USER 10001" in lines
    health = json.loads(re.search(r"HEALTHCHECK .*?CMD (.*)", "\n".join(lines))[1])
    compile(health[2], "health", "exec")


def test_the_unit_starts_the_server_and_waits_longer_than_the_server_does():
    text = (EXAMPLES / "mini-bert.service").read_text("utf-8")
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    words = shlex.split(settings["ExecStart"])
    params = require_options([Path(words[0]).name, *words[1:]])
    assert params["api_key_file"].name == settings["LoadCredential"].split(":")[0]
    from mini_bert.serve.limits import Limits

    assert int(settings["TimeoutStopSec"]) > Limits().stop
    assert int(settings["LimitNOFILE"]) > 2 * Limits().connections
