"""The module against the program on the path: python3 -m unittest discover python"""

import doctest
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nqueens


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(nqueens))
    return tests


class Counting(unittest.TestCase):
    def test_a_board(self):
        count = nqueens.count(12, threads=2)
        self.assertEqual((count.n, count.total, count.unique), (12, 14200, 1787))
        self.assertEqual(2 * count.count2 + 4 * count.count4 + 8 * count.count8, count.total)
        self.assertEqual((count.check, count.confirmed), ("published", True))
        self.assertGreater(count.seconds, 0)
        for plan in ["rows", "border", "colours"]:
            self.assertEqual((nqueens.count(10, plan).total, nqueens.count(10, plan).plan), (724, plan))

    def test_given_queens_and_blocked_cells(self):
        free = sum(1 for _ in nqueens.solutions(8))
        drawing = lambda corner: "\n".join(["." * 8] * 7 + [corner + "." * 7])
        with_queen = nqueens.count(8, cells=drawing("Q"))
        without = nqueens.count(8, cells=drawing("#"))
        self.assertEqual((with_queen.total + without.total, with_queen.unique, with_queen.plan), (free, None, "cells"))
        self.assertEqual(with_queen.total, len(list(nqueens.solutions(8, cells=drawing("Q")))))

    def test_a_database_is_counted_once(self):
        with tempfile.TemporaryDirectory() as folder:
            first = nqueens.count(9, db=Path(folder, "nine.db"))
            self.assertEqual(nqueens.count(9, db=Path(folder, "nine.db")), first)
        self.assertEqual(first.total, 352)

    def test_errors_are_the_programs(self):
        with self.assertRaisesRegex(nqueens.Error, r"N must be a whole number from 1 to 31, not '99'"):
            nqueens.count(99)
        with self.assertRaisesRegex(nqueens.Error, "a drawing of the 2 by 2 board"):
            nqueens.count(8, cells="..\n..")
        with self.assertRaisesRegex(nqueens.Error, "has 3 cells, but the drawing has 2 rows"):
            next(nqueens.solutions(2, cells="..\n..."))

    def test_progress_is_told_and_ctrl_c_passes_on(self):
        # In a process of its own, as Ctrl-C is for all of a process.
        script = """
import signal, sys, nqueens
# As at a terminal, also where these tests run in the background of a script, which ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    nqueens.count(20, "rows", 1, db=sys.argv[1], progress=lambda line: print(line, flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
        with tempfile.TemporaryDirectory() as folder:
            db = Path(folder, "n.db")
            with subprocess.Popen([sys.executable, "-c", script, db], stdout=subprocess.PIPE, text=True) as counting:
                self.assertIn("%", counting.stdout.readline())
                counting.send_signal(signal.SIGINT)
                printed = counting.stdout.readlines()
            self.assertEqual((printed[-1], counting.returncode), ("interrupted\n", 0))
            # The program has ended, too: it would hold its database.
            with self.assertRaisesRegex(nqueens.Error, "holds a run of N = 20"):
                nqueens.count(8, db=db)


class Listing(unittest.TestCase):
    def test_solutions_are_lazy(self):
        first = next(nqueens.solutions(20))
        self.assertEqual(first.columns[:5], (0, 2, 4, 1, 3))

    def test_unique_solutions(self):
        unique = list(nqueens.solutions(8, unique=True))
        self.assertEqual((len(unique), sum(solution.orbit for solution in unique)), (12, 92))
        self.assertEqual({solution.symmetry for solution in unique}, {"none", "half-turn"})
        self.assertEqual(list(nqueens.solutions(3)), [])
        self.assertEqual(len(list(nqueens.solutions(8, limit=5))), 5)


class Estimating(unittest.TestCase):
    def test_intervals(self):
        estimate = nqueens.estimate(17, samples=2000, seed=7, speed=1_000_000, threads_total=4)
        self.assertLess(estimate.total.low, estimate.total.value)
        self.assertEqual((estimate.n, estimate.published, estimate.samples), (17, 95815104, 2000))
        hours = estimate.states.value / 1e6 / 3600
        self.assertAlmostEqual(estimate.core_hours.value, hours, delta=hours / 1e3)
        self.assertAlmostEqual(estimate.wall_hours.value, hours / 4, delta=hours / 1e3)
        with self.assertRaisesRegex(nqueens.Error, "N must be"):
            nqueens.estimate(0)


class Verifying(unittest.TestCase):
    def test_a_ledger_and_a_wrong_one(self):
        with tempfile.TemporaryDirectory() as folder:
            db, ledger = Path(folder, "n.db"), Path(folder, "n.ledger")
            nqueens.count(8, "rows", db=db)
            export = ["nqueens", "export", "--db", db, "--format", "ledger", "--output", ledger]
            subprocess.run(export, check=True, capture_output=True)
            good = nqueens.verify(ledger, sample=2, seed=1)
            self.assertTrue(good)
            checks = {check.name: check for check in good.checks}
            self.assertEqual((checks["total"].passed, checks["total"].detail), (True, "92"))
            self.assertTrue(checks["sample"].detail.startswith("2 of "), checks["sample"].detail)
            self.assertEqual(good.verdict, "believable")
            ledger.write_text(ledger.read_text().replace('"92"', '"93"'))
            wrong = nqueens.verify(ledger)
            self.assertEqual(wrong.verdict, "wrong")
            self.assertEqual([check.name for check in wrong.checks if check.passed is False][0], "chain")
            with self.assertRaisesRegex(nqueens.Error, "nothing: No such file"):
                nqueens.verify("nothing")


if __name__ == "__main__":
    unittest.main()
