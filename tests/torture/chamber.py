"""The torture chamber: crashes at every file operation, SIGKILLs, full disks and races, over every command that writes.

    python tests/torture/chamber.py [--minutes 15] [--seed N] [--kills 1000] [--only NAME] [--jobs 2]

After each attempt what is visible must be the old state or the new one, everything must open, and the same command must
then succeed and leave nothing behind but the new state.
"""

import argparse
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from commands import COMMANDS, Command
from shim import STOPPED, Shim

from mini_bert.errors import MiniBertError

REFUSED, BROKEN = 2, 70
_RUN_TRUTH = ("config.yaml", "best/model.safetensors", "final/model.safetensors")


def forked(work: Callable[[], None]) -> int:
    """Run in a child of this warmed-up process; its process id."""
    child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        work()
        code = 0
    except MiniBertError as error:
        code = REFUSED if "\n" not in str(error) else BROKEN
        os.write(2, f"refused: {error}\n".encode()) if os.environ.get("TORTURE_SAYS") else None
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of a child, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(work: Callable[[], None]) -> int:
    return ended(forked(work))


def visible(folder: Path) -> dict[str, bytes]:
    """The files that are not hidden, nor in a hidden directory."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*"))
            if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)}


def hidden(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob(".*")]


class Trial:
    """One command: the folder before it, and what it makes of it."""

    def __init__(self, command: Command, base: Path):
        self.command, self.base = command, base
        self.template, self.place = base / "template", base / "place"
        for folder in (self.template, self.place):
            shutil.rmtree(folder, ignore_errors=True)
        command.begin(base / "warm")                  # here, so that the children find everything imported
        command.act(base / "warm")
        shutil.rmtree(base / "warm")
        assert run(lambda: command.begin(self.place)) == 0
        self.place.rename(self.template)              # the same path each time: some files hold it
        self.old = visible(self.template)
        self.fresh()
        count = base / "count"

        def counted() -> None:
            shim = Shim()
            command.act(self.place)
            number = shim.count
            count.write_text(str(number))

        began = time.monotonic()
        assert run(counted) == 0, command.name
        self.seconds = time.monotonic() - began
        self.operations, self.new = int(count.read_text()), visible(self.place)

    def fresh(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place, symlinks=True)

    def problem(self, code: int, *, allowed: tuple[int, ...]) -> str | None:
        """What is wrong after an attempt that ended with `code`, if anything."""
        if code not in allowed:
            return f"it ended with {code}"
        if self.command.exact and visible(self.place) not in (self.old, self.new):
            return "what is visible is neither the old state nor the new one"
        if run(lambda: self.command.check(self.place)) != 0:
            return "what is visible does not open"
        if run(lambda: self.command.act(self.place)) != 0:
            return "the same command then fails"
        if left := hidden(self.place):
            return f"it leaves {left}"
        now = visible(self.place)
        if self.command.exact and now != self.new:
            return "the same command then makes something else"
        if not self.command.exact and self.command.name != "fit":
            wrong = [name for name in _RUN_TRUTH if now.get(f"made/{name}") != self.new.get(f"made/{name}")]
            if wrong:
                return f"the same command then makes another {wrong}"
        return None

    # ---------------------------------------------------------------- the attempts

    def crash(self, at: int, exchange: bool = True) -> str | None:
        """End the process at its n-th file operation."""
        self.fresh()
        code = run(lambda: (Shim(stop_at=at, exchange=exchange), self.command.act(self.place)))
        if not exchange and self.command.exact and code == STOPPED and visible(self.place) not in (self.old, self.new):
            code = run(lambda: self.command.act(self.place))      # two renames: the next command restores
            return None if code == 0 and visible(self.place) == self.new and not hidden(self.place) else \
                f"it is not restored ({code})"
        return self.problem(code, allowed=(STOPPED, 0))

    def full_disk(self, at: int) -> str | None:
        """From the n-th operation on, there is no space left."""
        self.fresh()
        code = run(lambda: (Shim(full_from=at), self.command.act(self.place)))
        left = hidden(self.place)
        return self.problem(code, allowed=(REFUSED, 0)) or (f"it leaves {left}" if left and code == 0 else None)

    def kill(self, random: Random) -> str | None:
        self.fresh()
        child = forked(lambda: self.command.act(self.place))
        time.sleep(random.uniform(0, 1.2 * self.seconds))
        os.kill(child, signal.SIGKILL)
        return self.problem(ended(child), allowed=(-signal.SIGKILL, 0))

    def race(self, processes: int = 2) -> str | None:
        """Several processes at once: at least one succeeds, and the others are refused with a sentence."""
        self.fresh()
        children = [forked(lambda: self.command.act(self.place)) for _ in range(processes)]
        codes = [ended(child) for child in children]
        if 0 not in codes or not set(codes) <= {0, REFUSED}:
            return f"they end with {codes}"
        if left := hidden(self.place):
            return f"they leave {left}"
        return self.problem(0, allowed=(0,))


def attempts(trial: Trial, random: Random, points: int | None, kills: int, races: int,
             ) -> Iterator[tuple[str, int, str | None]]:
    """Kind, number and problem of each attempt; `points` limits the crash points to a sample."""
    def some(most: int | None) -> list[int]:
        everything = range(1, trial.operations + 1)
        return list(everything) if most is None or most >= len(everything) else \
            sorted(random.sample(everything, most))

    for at in some(points):
        yield "crash", at, trial.crash(at)
    for number in range(kills):
        yield "SIGKILL", number, trial.kill(random)
    for number in range(races):
        yield "race", number, trial.race()
    for at in some(points):
        yield "full disk", at, trial.full_disk(at)
    for at in some(points):
        yield "crash, without exchange", at, trial.crash(at, exchange=False)


def scratch() -> str | None:
    """A file system in memory, if there is one: nothing here needs a disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Work(NamedTuple):
    """All attempts at one command, for one process."""

    name: str
    seconds: float                             # allowed
    seed: str
    kills: int
    races: int


def torture(work: Work) -> tuple[Counter[str], list[str], str]:
    """The attempts by kind, the failures, and a line about both."""
    began, counts, failures, cut = time.monotonic(), Counter[str](), list[str](), ""
    with TemporaryDirectory(dir=scratch(), prefix="torture-") as folder:
        os.environ["MINI_BERT_CACHE"] = f"{folder}/cache"
        trial = Trial(next(command for command in COMMANDS if command.name == work.name), Path(folder) / "trial")
        for kind, which, problem in attempts(trial, Random(work.seed), None, work.kills, work.races):
            counts[kind] += 1
            if problem is not None:
                failures.append(f"FAILED {work.name}: {kind} {which}: {problem}")
            if time.monotonic() - began > work.seconds:
                cut = "; time was up"
                break
    tried = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    return counts, failures, f"{work.name}: {trial.operations} operations; {tried}{cut}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=1000, help="in all")
    parser.add_argument("--races", type=int, default=10, help="of each command")
    parser.add_argument("--only", help="the beginning of a command's name")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    chosen = [command for command in COMMANDS if command.name.startswith(options.only or "")]
    chosen.sort(key=lambda command: command.exact)                    # runs take longest, so they come first
    shares = [1 if command.exact else 6 for command in chosen]
    whole = 60 * options.minutes * options.jobs / sum(shares)
    works = [Work(command.name, share * whole, f"{options.seed} {command.name}", -(-options.kills // len(chosen)),
                  options.races) for command, share in zip(chosen, shares, strict=True)]
    print(f"seed {options.seed}", flush=True)
    began, failed, done = time.monotonic(), 0, Counter[str]()
    with get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for counts, failures, line in pool.imap_unordered(torture, works):
            print(*failures, line, sep="\n", flush=True)
            done += counts
            failed += len(failures)
    print(f"{sum(done.values())} attempts ({', '.join(f'{kind} {count}' for kind, count in done.items())}), "
          f"{failed} failures, {time.monotonic() - began:.0f} s, seed {options.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
