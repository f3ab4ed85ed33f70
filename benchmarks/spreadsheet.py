"""How long the tutorial docs/tutorials/spreadsheet.md takes, command by command.

    python benchmarks/spreadsheet.py [--json]

The page's blocks are run in order in an empty folder; those of Python, which make and check the tables, are not
counted. Wall-clock time, which other programs lengthen: a figure of one machine at one moment. Fails if a command
fails, or if all of them together take more than five minutes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

PAGE = Path(__file__).parents[1] / "docs" / "tutorials" / "spreadsheet.md"
MOST_SECONDS = 300
_BLOCK = re.compile(r"(<!-- not run:[^\n]*-->\n)?^```(python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the commands of the tutorial about spreadsheets.")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    names: dict[str, object] = {"__name__": "__main__"}
    times: dict[str, float] = {}
    with TemporaryDirectory() as folder, chdir(folder):
        for skipped, language, body in _BLOCK.findall(PAGE.read_text("utf-8")):
            if skipped:
                continue
            if language == "python":
                with redirect_stdout(StringIO()):
                    exec(compile(body, str(PAGE), "exec"), names)
                continue
            begin = perf_counter()
            subprocess.run(["bash", "-euo", "pipefail", "-c", body], check=True, stdout=subprocess.DEVNULL,
                           env={**environment, "MINI_BERT_CACHE": str(Path(folder) / "cache")})
            times[body.strip()] = perf_counter() - begin
    total = sum(times.values())
    if arguments.json:
        print(json.dumps({"commands": times, "total": total}, indent=2))
    else:
        for command, seconds in times.items():
            print(f"{seconds:6.1f} s   {command}")
        print(f"{total:6.1f} s   in total")
    if total > MOST_SECONDS:
        sys.exit(f"The commands took more than {MOST_SECONDS} s.")


if __name__ == "__main__":
    main()
