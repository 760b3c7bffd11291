"""Counts all solutions of the N-Queens problem by colours: docs/colours.md has the statement and its proof.

    python3 colours.py [N]        prints Q(4) to Q(N), by default Q(12)

A cell in row r and column c is white if r + c is even, else black. All cells of a diagonal have one colour, so queens of different
colours can only meet in a row or a column. The placements of each colour are counted alone, by the rows and the columns that they
fill, and multiplied where these complete each other.
"""

import sys
from collections import Counter


def placements(n, colour):
    """How many ways there are to put non-attacking queens on the cells of a colour (0 is white, 1 is black).

    The keys are pairs (rows, columns) of masks: the lines that have a queen.
    """
    ways = Counter()

    def place(row, rows, columns, left, right):
        """Goes on in this row; `left` and `right` are the columns that diagonals of queens above attack in it."""
        if row == n:
            ways[rows, columns] += 1
            return
        place(row + 1, rows, columns, left << 1, right >> 1)
        for column in range((row + colour) % 2, n, 2):
            queen = 1 << column
            if not queen & (columns | left | right):
                place(row + 1, rows | 1 << row, columns | queen, (left | queen) << 1, (right | queen) >> 1)

    place(0, 0, 0, 0, 0)
    return ways


def solutions(n):
    """Q(n): the sum over all row sets and column sets of white ways times black ways to fill all other lines."""
    white, black = placements(n, 0), placements(n, 1)
    every_line = (1 << n) - 1
    return sum(ways * black[every_line ^ rows, every_line ^ columns] for (rows, columns), ways in white.items())


if __name__ == "__main__":
    for n in range(4, int(sys.argv[1]) + 1 if len(sys.argv) > 1 else 13):
        print(n, solutions(n), flush=True)
