"""The torture chamber: crashes at every file operation, SIGKILLs, full disks and races, over every command that writes.

    python tests/torture/chamber.py [--minutes 10] [--seed N] [--kills 1000] [--only NAME] [--point N] [--jobs 2]

After each attempt what is visible must be the old state or the new one, everything must open, and the same command must
then succeed and leave nothing behind but the new state.

Every crash point of every command, all SIGKILLs and all races are tried, however long it takes. --minutes bounds the
rest: full disks from each point on, and crashes where two names cannot be exchanged in one step, in an order that the
seed decides; 20 of them are always tried. --point repeats the attempts at one point of the command that --only names.
"""

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from beginnings import Command
from commands import COMMANDS
from shim import STOPPED, Shim

from mini_bert.errors import MiniBertError

REFUSED, BROKEN, UNOPENED, MIXED = 2, 70, 71, 72
CRASH, KILL, RACE, FULL, TWO_STEPS = "crash", "SIGKILL", "race", "full disk", "crash, without exchange"
LEAST_REST = 20               # attempts of the last two kinds, whatever time it is


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
        after = run(self.check_and_act)
        if after != 0:
            return {UNOPENED: "what is visible does not open", MIXED: "what is visible is neither the old state nor the "
                    "new one"}.get(after, "the same command then fails")
        if left := hidden(self.place):
            return f"it leaves {left}"
        now = visible(self.place)
        if self.command.exact and now != self.new:
            return "the same command then makes something else"
        if wrong := [name for name in self.command.same if now.get(name) != self.new[name]]:
            return f"the same command then makes another {wrong}"
        return None

    def check_and_act(self) -> None:
        """In one process, as starting one takes longer than most commands."""
        try:
            self.command.check(self.place)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(UNOPENED)
        if self.command.exact and visible(self.place) not in (self.old, self.new):
            os._exit(MIXED)                   # whoever opens files finishes the renames that are left
        self.command.act(self.place)

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
        """Kill the process at a random moment of its life; one that has ended before is started again."""
        wait = random.uniform(0, self.seconds)
        while True:
            self.fresh()
            child = forked(lambda: self.command.act(self.place))
            time.sleep(wait)
            os.kill(child, signal.SIGKILL)
            code = ended(child)
            if code != 0:
                return self.problem(code, allowed=(-signal.SIGKILL,))
            wait *= 0.7

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


def attempts(trial: Trial, random: Random, points: int | None, kills: int, races: int, only: int | None = None,
             ) -> Iterator[tuple[str, int, str | None]]:
    """Kind, number and problem of each attempt; `points` limits the crash points to a sample, `only` to one of them."""
    def some() -> list[int]:
        everything = range(1, trial.operations + 1)
        if only is not None:
            return [only]
        return list(everything) if points is None or points >= len(everything) else \
            sorted(random.sample(everything, points))

    for at in some():
        yield CRASH, at, trial.crash(at)
    for number in range(kills):
        yield KILL, number, trial.kill(random)
    for number in range(races):
        yield RACE, number, trial.race()
    rest = [(kind, at) for kind in (FULL, TWO_STEPS) for at in some()]
    random.shuffle(rest)
    for kind, at in rest:
        yield kind, at, trial.full_disk(at) if kind == FULL else trial.crash(at, exchange=False)


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
    only: int | None


def torture(work: Work) -> tuple[Counter[str], list[str], str]:
    """The attempts by kind, the failures, and a line about both."""
    began, counts, failures, cut = time.monotonic(), Counter[str](), list[str](), ""
    with TemporaryDirectory(dir=scratch(), prefix="torture-") as folder:
        os.environ["MINI_BERT_CACHE"] = f"{folder}/cache"
        trial = Trial(next(command for command in COMMANDS if command.name == work.name), Path(folder) / "trial")
        for kind, which, problem in attempts(trial, Random(work.seed), None, work.kills, work.races, work.only):
            counts[kind] += 1
            if problem is not None:
                failures.append(f"FAILED {work.name}: {kind} {which}: {problem}")
            rest = counts[FULL] + counts[TWO_STEPS]
            if LEAST_REST <= rest < 2 * trial.operations and time.monotonic() - began > work.seconds:
                cut = f" of {trial.operations} each: time was up"
                break
    tried = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    return counts, failures, f"{work.name}: {trial.operations} crash points; {tried}{cut}"


def sample(name: str, seed: int) -> list[str]:
    """What goes wrong at a few crash points, kills and races of one command."""
    with TemporaryDirectory(dir=scratch(), prefix="torture-") as folder:
        os.environ["MINI_BERT_CACHE"] = f"{folder}/cache"
        command = next(command for command in COMMANDS if command.name == name)
        points, kills, races = (1, 0, 0) if command.slow else (3, 2, 1)
        return [f"seed {seed}: {kind} {number}: {problem}" for kind, number, problem
                in attempts(Trial(command, Path(folder) / "trial"), Random(seed), points, kills, races)
                if problem is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=1000, help="in all")
    parser.add_argument("--races", type=int, default=10, help="of each command")
    parser.add_argument("--only", help="the beginning of a command's name")
    parser.add_argument("--point", type=int, help="only this crash point, of one command")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    chosen = [command for command in COMMANDS if command.name.startswith(options.only or "")]
    chosen.sort(key=lambda command: command.exact)                    # runs take longest, so they come first
    shares = [1 if command.exact else 6 for command in chosen]
    whole = 60 * options.minutes * options.jobs / sum(shares)
    weights = [1 if command.slow else 6 for command in chosen]
    works = [Work(command.name, share * whole, f"{options.seed} {command.name}",
                  -(-options.kills * weight // sum(weights)), options.races, options.point)
             for command, share, weight in zip(chosen, shares, weights, strict=True)]
    if options.point is not None:
        works = [work._replace(kills=0, races=0) for work in works]
    print(f"seed {options.seed}", flush=True)
    began, failed, done = time.monotonic(), 0, Counter[str]()
    with get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for counts, failures, line in pool.imap_unordered(torture, works):
            print(*failures, line, sep="\n", flush=True)
            done += counts
            failed += len(failures)
    tried = ", ".join(f"{kind} {count}" for kind, count in done.items())
    print(f"{len(works)} commands, {sum(done.values())} attempts ({tried}), "
          f"{failed} failures, {time.monotonic() - began:.0f} s, seed {options.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
