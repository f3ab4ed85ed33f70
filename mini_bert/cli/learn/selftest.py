"""mini-bert selftest: check that the installation computes what it should."""

import typer

from ...selftest import selftest
from ..output import Output, SeedOption, verdict


def selftest_command(seed: SeedOption = 0, *, output: Output) -> None:
    """Check that the installation works: sizes, forward, loss near ln V, backward, one step, memory, every gradient.

    Exits with 1 if a check fails.

    Example: mini-bert selftest --json
    """
    results = []
    for result in selftest(seed):
        results.append(result)
        output.say(f"[bold]{result.name:<11}[/bold]{verdict(result.passed)}  {result.detail}")
    passed = all(result.passed for result in results)
    output.result({"passed": passed, "tests": [result._asdict() for result in results]},
                  "All checks passed." if passed else "[bold red]The self-test failed.[/bold red]")
    raise typer.Exit(0 if passed else 1)
