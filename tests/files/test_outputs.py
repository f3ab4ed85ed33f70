"""Files that a user names for what a command writes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mini_bert import MiniBERT, ModelConfig
from mini_bert.cli.app import app
from mini_bert.errors import InputError
from mini_bert.files import PAGES, output_file


def test_a_page_never_replaces_weights_a_config_or_a_table(tmp_path: Path) -> None:
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=8, intermediate_size=8, vocab_size=20))
    model.save(tmp_path / "model")
    (tmp_path / "table.csv").write_text("text\nmine\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for path in before:
        for command in (["report", str(tmp_path), "--out", str(path)],
                        ["explore", "a word", "--export", str(path)],
                        ["evaluate", "--only", "blimp", "--report", str(path)],
                        ["predict", "--model", "mini", "a word", "--out", f"{path}.txt"]):
            assert "must end in" in str(CliRunner().invoke(app, command).exception), command
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_output_has_an_ending_of_its_kind_a_directory_and_is_not_the_input(tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_text("text\n")
    (tmp_path / "link.csv").symlink_to(given)
    for path, wrong in ((tmp_path / "page.txt", "must end in .html or .htm"),
                        (tmp_path / "nowhere" / "page.html", "There is no directory")):
        with pytest.raises(InputError, match=wrong):
            output_file(path, PAGES)
    for path in (given, tmp_path / "link.csv", tmp_path / ".." / tmp_path.name / "given.csv"):
        with pytest.raises(InputError, match="is the file that is read"):
            output_file(path, [".csv"], [given])
    assert output_file(tmp_path / "Page.HTML", PAGES).name == "Page.HTML"
    assert output_file(tmp_path / "new.csv", [".csv"], [given]).name == "new.csv"
