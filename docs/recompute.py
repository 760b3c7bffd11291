#!/usr/bin/env python3
"""Recomputes the total of a ledger that 'nqueens export --format ledger' wrote, and checks its chain.

Another program than nqueens, with Python's standard library alone: docs/ledger.md has the format.

Usage: python3 recompute.py LEDGER
"""
import hashlib
import json
import sys

SEAL = len(',"chain":"' + 64 * "0" + '"}\n')


class Wrong(Exception):
    """What does not hold."""


def demand(holds, otherwise):
    """Raises Wrong unless it holds."""
    if not holds:
        raise Wrong(otherwise)


def quarter_turn(queens):
    """The columns of the queens, row by row, after a quarter turn."""
    turned = [0] * len(queens)
    for row, column in enumerate(queens):
        turned[column] = len(queens) - 1 - row
    return turned


def symmetric(n):
    """COUNT2 and COUNT4, by a search of its own: queens come in pairs that are each other's half turn."""
    found = {2: 0, 4: 0}

    def place(queens):
        row = next((row for row, column in enumerate(queens) if column is None), None)
        if row is None:
            found[2 if quarter_turn(queens) == queens else 4] += 1
            return
        for column in range(n):
            pair = {row: column, n - 1 - row: n - 1 - column}
            board = [pair.get(r, c) for r, c in enumerate(queens)]
            placed = [(r, c) for r, c in enumerate(board) if c is not None]
            if all(
                r == s or (c != d and abs(r - s) != abs(c - d))
                for r, c in pair.items() for s, d in placed
            ):
                place(board)

    place([None] * n)
    return found[2] // 2, found[4] // 4


def recompute(lines):
    """The total and the last hash; raises Wrong if something is."""
    before, next_job, last, by_worker = 64 * "0", 0, None, {}
    sums = dict.fromkeys(("count2", "count4", "count8", "solutions"), 0)
    for number, line in enumerate(lines, 1):
        demand(last is None, f"line {number} stands after the total")
        unsealed, stated = line[:-SEAL], line[-67:-3].decode()
        before = hashlib.sha256(before.encode() + unsealed).hexdigest()
        demand(before == stated, f"the hash does not fit on line {number}")
        entry = json.loads(line)
        if number == 1:
            demand(entry["line"] == "ledger" and entry["format"] == 1, "this is no ledger of format 1")
            head = entry
        elif entry["line"] == "job":
            demand(entry["number"] == next_job, f"job {entry['number']} stands where job {next_job} should")
            next_job += 1
            result = entry["result"]
            of_worker = by_worker.setdefault(result["worker"], dict.fromkeys(sums, 0))
            for name in sums:
                sums[name] += int(result["counts"][name])
                of_worker[name] += int(result["counts"][name])
        elif entry["line"] == "worker":
            found = by_worker.get(entry["worker"], dict.fromkeys(sums, 0))
            stated = {name: int(count) for name, count in entry["counts"].items()}
            demand(found == stated, f"the results of worker {entry['worker']} have other sums than its line says")
        elif entry["line"] == "total":
            last = entry
    demand(last is not None, "the file is cut off")
    demand(next_job == head["jobs"], f"there are {next_job} jobs, not {head['jobs']}")
    total = 2 * sums["count2"] + 4 * sums["count4"] + 8 * sums["count8"] + sums["solutions"]
    # The one solution of N = 1 stands in none of the counts, but on a board with cells.
    total += head["n"] == 1 and head["plan"] != "cells"
    demand(total == int(head["total"]) == int(last["total"]), f"the jobs add up to {total}")
    if head["plan"] == "cells":
        # The solutions of a variant are not sorted into orbits.
        demand(sums["solutions"] == sum(sums.values()), "a job of a variant counted orbits")
        return total, before
    orbits = {name: int(count) for name, count in last["orbits"].items()}
    demand(2 * orbits["count2"] + 4 * orbits["count4"] + 8 * orbits["count8"] + (head["n"] == 1) == total,
           "the orbits of the last line do not make the total")
    demand(sums["solutions"] or sums == orbits, "the orbits of the last line are not those of the jobs")
    # A search in Python takes its time; from N = 17 on there is nqueens verify.
    if 1 < head["n"] < 17:
        count2, count4 = symmetric(head["n"])
        demand((orbits["count2"], orbits["count4"]) == (count2, count4), "other symmetric orbits")
        if sums["solutions"]:
            demand((total - 2 * count2 - 4 * count4) % 8 == 0, "the solutions make no whole orbits")
        else:
            demand((sums["count2"], sums["count4"]) == (count2, count4), "other symmetric solutions")
    return total, before


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as ledger:
        try:
            TOTAL, HASH = recompute(ledger)
        except (Wrong, KeyError, ValueError) as wrong:
            sys.exit(f"WRONG: {wrong}")
    print(f"total {TOTAL}, last hash {HASH}")
