"""mini-bert selftest: does this installation compute what it should?"""

import typer

from ...selftest import selftest
from ..output import JsonOption, Output, QuietOption, SeedOption, verdict


def selftest_command(seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Test the installation: sizes, forward, loss near ln V, backward, a step, memory, every gradient.

    Exits with 1 if anything fails.

    Example: mini-bert selftest --json
    """
    output = Output(as_json, quiet)
    results = []
    for result in selftest(seed):
        results.append(result)
        output.say(f"[bold]{result.name:<11}[/bold]{verdict(result.passed)}  {result.detail}")
    passed = all(result.passed for result in results)
    output.result({"passed": passed, "tests": [result._asdict() for result in results]},
                  "Everything works." if passed else "[bold red]The self-test failed.[/bold red]")
    raise typer.Exit(0 if passed else 1)
