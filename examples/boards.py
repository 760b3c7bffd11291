"""Counts jobs of the plans `rows` and `border`, for python_worker.py. docs/protocol.md explains what they mean.

A board is a dict from each open row to the mask of the columns where its queen may stand.
"""


def place(board, row, column):
    """The board with a queen there."""
    attacked = {r: 1 << column | 1 << column + abs(r - row) | 1 << column >> abs(r - row) for r in board}
    return {r: allowed & ~attacked[r] for r, allowed in board.items() if r != row}


def children(board):
    """Each column of the first open row's queen, with what it leaves open."""
    row = min(board)
    return [(c, place(board, row, c)) for c in range(board[row].bit_length()) if board[row] >> c & 1]


def class_board(n, kind, bound1):
    """The cells that solutions of a class may use."""
    last, sides = n - 1, 1 | 1 << n - 1
    board = {row: (1 << n) - 1 for row in range(n)}
    if kind == "corner":
        return board | {0: 1, 1: 1 << bound1} | {row: board[row] & ~2 for row in range(2, bound1)}
    if kind == "edge":
        outside = [row for row in board if row < bound1 or row > last - bound1]
        board |= {row: board[row] & ~sides for row in outside}
        near_corners = sum(1 << c for c in range(n) if c < bound1 or c > last - bound1)
        return board | {0: 1 << bound1, last: board[last] & ~near_corners}
    return board


def prefix_board(n, kind, bound1, prefix):
    """The queens of a prefix, as {row: column}, and what they leave open."""
    board, queens = class_board(n, kind, bound1), {}
    cells = [None] * len(prefix)
    if kind == "border":
        top, right, bottom, left = prefix[:4]
        cells[:4] = [(0, top), (right, n - 1), (n - 1, bottom), (left, 0)]
    for column, cell in zip(prefix, cells):
        row, column = cell or (min(board), column)
        # A queen on a corner comes twice.
        if row in board:
            board, queens[row] = place(board, row, column), column
    return queens, board


def images(kind, solution):
    """The quarter, the half and the three-quarter turn of a solution, if they can be in the same job's class."""
    n, turned = len(solution), [solution]
    border = [solution[0], solution.index(n - 1), solution[-1], solution.index(0)]
    for _ in range(3):
        rows = {column: n - 1 - row for row, column in enumerate(turned[-1])}
        turned.append([rows[row] for row in range(n)])
    if kind == "border":
        return [t if [t[0], t.index(n - 1), t[-1], t.index(0)] == border else None for t in turned[1:]]
    return turned[1:] if kind == "edge" else [None] * 3


def orbit(kind, solution):
    """In which of count2, count4 and count8 a solution counts; 3: in none, for another one of its orbit does."""
    quarter, half, three_quarter = images(kind, solution)
    if any(image and image < solution for image in (quarter, half, three_quarter)):
        return 3
    return 0 if quarter == solution else 1 if half == solution else 2


def estimate(n, board):
    """The guess at the states of a board by which parts are cut: every program has to come to the same number."""
    boards = total = unattacked = 1.0
    kept, columns, before = 1.0 - 2.0 / n, float(len(board)), min(board, default=0)
    for left, row in zip(range(len(board), 0, -1), sorted(board)):
        for _ in range(before, row):
            unattacked *= kept
        boards *= bin(board[row]).count("1") * left / columns * unattacked
        total, before = total + boards, row
    for _ in range(n - len(board)):
        total *= kept
    return max(int(total), 1)


def parts(n, prefixes, states):
    """The prefixes of a job, (queens, board) each, in the groups whose counts have to be told apart."""
    wanted = min(max(states // 10**9, 1), 64)
    if wanted == 1:
        return [prefixes]
    while len(prefixes) < wanted and all(board for _, board in prefixes):
        longer = [(queens | {min(board): c}, child) for queens, board in prefixes for c, child in children(board)]
        longer = [(queens, board) for queens, board in longer if all(board.values())]
        if not longer:
            break
        prefixes = longer
    guesses = [estimate(n, board) for _, board in prefixes]
    target, groups, guess = -(-sum(guesses) // wanted), [[]], 0
    for prefix, states in zip(prefixes, guesses):
        groups[-1].append(prefix)
        guess += states
        if guess >= target:
            groups, guess = groups + [[]], 0
    return [group for group in groups if group]


def is_symmetric(n, prefix):
    """Whether a half turn maps the border configuration of a prefix to itself."""
    top, right, bottom, left = prefix[:4]
    return top + bottom == right + left == n - 1


def count(n, kind, bound1, encoded, states, tick):
    """Counts a job: [count2, count4, count8] of each of its parts. Calls tick(states visited) now and then."""
    width, queens, visited, found = encoded[0], encoded[1:], 0, []
    encoded = [queens[at:at + width] for at in range(0, len(queens), width)]
    prefixes = [prefix_board(n, kind, bound1, prefix) for prefix in encoded]

    def search(board, queens, counts):
        nonlocal visited
        visited += 1
        if visited % 1000 == 0:
            tick(visited)
        if not board:
            counts[orbit(kind, [queens[row] for row in range(n)])] += 1
            return
        row = min(board)
        for column, child in children(board):
            search(child, queens | {row: column}, counts)

    # Symmetric configurations are split in another way. That they have no parts here costs a longer recount at most.
    has_parts = kind != "border" or not any(is_symmetric(n, prefix) for prefix in encoded)
    for group in parts(n, prefixes, states) if has_parts else [prefixes]:
        counts = [0, 0, 0, 0]
        for queens, board in group:
            search(board, queens, counts)
        found.append(counts[:3])
    return found, visited
