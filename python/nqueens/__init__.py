"""Counts the solutions of the N-Queens problem, exactly.

>>> import nqueens
>>> nqueens.count(8).total
92
>>> [solution.columns for solution in nqueens.solutions(6, limit=1)]
[(1, 3, 5, 0, 2, 4)]

This module runs the program ``nqueens``, which is in the same wheel, and reads what it prints. Settings from the
environment (``NQUEENS_MEMORY`` and others) hold as they do for the program.

Ctrl-C ends the program, too; a count in a database (``db=``) goes on from there when it is asked for again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Union

__all__ = ["Check", "Count", "Error", "Estimate", "Interval", "Solution", "Verification"]
__all__ += ["count", "estimate", "solutions", "verify"]

_Path = Union[str, "os.PathLike[str]"]


class Error(Exception):
    """The program refused, or failed; the message is its own."""


@dataclass(frozen=True)
class Count:
    """What a board counts."""

    n: int
    #: All solutions.
    total: int
    #: Solutions up to rotation and reflection; None for variants.
    unique: int | None
    #: Orbits of 2, 4 and 8 solutions; None for variants.
    count2: int | None
    count4: int | None
    count8: int | None
    #: How the board was split into jobs; "cells" for a board with blocked cells.
    plan: str
    #: Counting engine.
    kernel: str
    #: Wall time of the count, also of one that was stored.
    seconds: float
    #: What the total was compared with, such as "published", or "none".
    check: str
    #: Whether that and the second counts make it certain.
    confirmed: bool


@dataclass(frozen=True)
class Solution:
    """One solution: N queens of which no two attack each other."""

    #: Column of each row's queen, top row first, columns from 0.
    columns: tuple[int, ...]
    #: "none", "half-turn" or "quarter-turn"; only of unique solutions.
    symmetry: str | None = None
    #: Number of its different images; only of unique solutions.
    orbit: int | None = None

    def __str__(self) -> str:
        """The board, top row first: ``Q`` is a queen."""
        size = range(len(self.columns))
        return "\n".join(" ".join("Q" if column == queen else "." for column in size) for queen in self.columns)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """What counting a board would find and take."""

    n: int
    plan: str
    #: Solutions.
    total: Interval
    #: The published number of solutions, if there is one.
    published: int | None
    #: Queens put down, or the plan's measure of work in their place.
    states: Interval
    #: Processor time.
    core_hours: Interval
    #: Time on `threads_total` threads that do nothing else.
    wall_hours: Interval
    threads_total: int
    jobs: int
    samples: int
    seed: int


@dataclass(frozen=True)
class Check:
    """One check on a ledger."""

    name: str
    #: None if it could not be made.
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Verification:
    """All checks on a ledger."""

    checks: tuple[Check, ...]
    #: "believable", "counted" (nothing is wrong, and too little is known) or "wrong".
    verdict: str
    #: Why.
    detail: str

    def __bool__(self) -> bool:
        return self.verdict == "believable"


def count(
    n: int,
    plan: str | None = None,
    threads: int | None = None,
    *,
    cells: str | None = None,
    db: _Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Count:
    """Counts the solutions of an N by N board.

    :param plan: how to split the board: rows, border or colours; the fastest way by default
    :param threads: number of counting threads; all by default
    :param cells: a drawing of the board: N lines of N cells, ``.`` open, ``#`` blocked, ``Q`` a given queen
    :param db: file that keeps the progress, and the result; by default none is kept
    :param progress: is called with a line of text about every 10 seconds

    >>> count(4, cells="Q...\\n....\\n....\\n....").total
    0
    """
    # Blocked cells leave no choice of the plan.
    options = _option("plan", plan) + _option("threads", threads)
    with tempfile.TemporaryDirectory(prefix="nqueens-") as folder:
        options += _drawing(cells, folder)
        place = os.fspath(db) if db is not None else os.path.join(folder, "nqueens.db")
        answer = json.loads(_run("run", str(n), "--json", "--db", place, *options, progress=progress))
    whole = {name: _whole(answer[name]) for name in ("unique", "count2", "count4", "count8")}
    return Count(
        n=answer["n"],
        total=int(answer["total"]),
        **whole,
        plan=answer["plan"],
        kernel=answer["kernel"],
        seconds=answer["elapsed_s"],
        check=answer["check"],
        confirmed=answer["confirmed"],
    )


def solutions(
    n: int,
    *,
    unique: bool = False,
    limit: int | None = None,
    cells: str | None = None,
) -> Iterator[Solution]:
    """The solutions of a board in lexicographic order, one at a time as they are found.

    :param unique: one of each orbit under rotation and reflection, with its symmetry; not with ``cells``
    :param limit: stop after this many
    :param cells: see :func:`count`

    >>> print(next(solutions(4)))
    . Q . .
    . . . Q
    Q . . .
    . . Q .
    """
    options = _option("limit", limit) + (["--unique"] if unique else [])
    with tempfile.TemporaryDirectory(prefix="nqueens-") as folder:
        options += _drawing(cells, folder)
        with _started(["solutions", str(n), "--format", "json", *options]) as (program, stdout, stderr):
            for line in stdout:
                found = json.loads(line)
                yield Solution(tuple(found["queens"]), found.get("symmetry"), found.get("orbit"))
            _conclude(program, stderr.read().splitlines())


def estimate(
    n: int,
    plan: str | None = None,
    threads: int | None = None,
    *,
    samples: int | None = None,
    seed: int | None = None,
    speed: int | None = None,
    threads_total: int | None = None,
) -> Estimate:
    """Estimates the number of solutions of a board and the cost of counting them, from a random sample.

    :param threads: number of threads that sample and measure here
    :param samples: number of random descents; four times as many halve the interval
    :param seed: the same seed gives the same estimates of solutions and states
    :param speed: states per second of one thread; measured here by default
    :param threads_total: number of threads of the cluster

    >>> 365596 in estimate(14).total
    True
    """
    options = _option("plan", plan) + _option("threads", threads) + _option("samples", samples) + _option("seed", seed)
    options += _option("speed", speed) + _option("threads-total", threads_total)
    answer = json.loads(_run("estimate", str(n), "--json", *options))

    def interval(name: str) -> Interval:
        return Interval(**answer[name])

    return Estimate(
        n=answer["n"],
        plan=answer["plan"],
        total=interval("total"),
        published=_whole(answer["published"]),
        states=interval("states"),
        core_hours=interval("core_hours"),
        wall_hours=interval("wall_hours"),
        threads_total=answer["threads_total"],
        jobs=answer["jobs"],
        samples=answer["samples"],
        seed=answer["seed"],
    )


def verify(
    file: _Path,
    *,
    sample: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
) -> Verification:
    """Checks a ledger of ``nqueens export --format ledger``.

    A check that fails raises nothing: look at the result.

    :param sample: number of jobs to recount by another search
    :param seed: of that sample; random by default
    :param threads: number of threads that recount
    """
    options = _option("sample", sample) + _option("seed", seed) + _option("threads", threads)
    with _started(["verify", os.fspath(file), "--json", *options]) as (program, _, _):
        printed, said = program.communicate()
        # A failed check has the exit code 1, like an error; too little is known: 3.
        if program.returncode not in (1, 3) or not printed:
            _conclude(program, said.splitlines())
    found = [json.loads(line) for line in printed.splitlines()]
    # The first line, if the file could be read so far, tells which run it is; the last one is the verdict.
    checks = [Check(line["check"], line["passed"], line["detail"]) for line in found if "check" in line]
    return Verification(tuple(checks), found[-1]["verdict"], found[-1]["detail"])


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"--{name}", str(value)]


def _drawing(cells: str | None, folder: str) -> list[str]:
    if cells is None:
        return []
    drawing = Path(folder, "cells.txt")
    drawing.write_text(cells)
    return ["--cells", str(drawing)]


def _program() -> str:
    """The program of this wheel; where there is no wheel, that of the user's path."""
    beside = Path(__file__).resolve().parent.parent / "bin"
    folders = [str(beside), sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    found = shutil.which("nqueens", path=os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]))
    if found is None:
        raise Error("the program nqueens is not installed")
    return found


@contextmanager
def _started(arguments: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], IO[str], IO[str]]]:
    """The program, its stdout and stderr; however this is left, the program has ended then."""
    command, pipe = [_program(), *arguments], subprocess.PIPE
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    stdout, stderr = program.stdout, program.stderr
    assert stdout is not None and stderr is not None
    try:
        yield program, stdout, stderr
    except BaseException:
        # Ctrl-C, or the caller wants no more: it keeps what it has. Another signal than a terminal's, which would be the
        # second one.
        program.terminate()
        raise
    finally:
        stdout.close()
        stderr.close()
        program.wait()


def _run(*arguments: str, progress: Callable[[str], None] | None = None) -> str:
    """What the program prints; it is short."""
    with _started(arguments) as (program, stdout, stderr):
        said = []
        for line in stderr:
            said.append(line.rstrip("\n"))
            if progress is not None:
                progress(said[-1])
        printed = stdout.read()
        _conclude(program, said)
    return printed


def _conclude(program: subprocess.Popen[str], said: Sequence[str]) -> None:
    """Raises the program's message if it failed."""
    if program.wait() == 0:
        return
    starts = ("nqueens: ", "error: ")
    messages = [line.split(": ", 1)[1].strip() for line in said if line.startswith(starts)]
    raise Error(messages[-1] if messages else "\n".join(said).strip() or f"exit code {program.returncode}")
