// Counts completions of tasks: one lane a task, and a lane that is done takes the next at once.
//
// A task is a node {L << 1, R, F, board}: diagonals as seen from its row, free columns, and the board whose masks it goes
// by. masks[32 * board + k] are the allowed columns of the row that has k rows left, itself included; [0] is 0. Rows between
// open ones are rows with one allowed cell, so that every step goes down exactly one row. Every task has 2..ROWS rows left
// and a candidate; the host deals with others.
//
// A step takes the lowest candidate of the node that is held in registers, and makes the child. The child is entered if its
// row and the one below keep a cell; what is left of the parent is pushed if it has candidates, so a pop always finds one.
// With one row left a candidate is a completion ([0] = 0 keeps such a child from being entered). Under the stack lie STEPS
// empty nodes: a lane whose task is done pops these, harmlessly, until it next looks for work.
//
// dialect.cl stands before it. `gate` beside this folder judges its machine code.

// The masks of the lane's board, by rows left. The address is in bytes, so that one multiplication makes it.
#define ROW(left) ((LOCAL uint *)(table + (left) * (4 * GROUP)))

#define STEP() { \
    uint others = C - 1, queen = C & ~others; \
    uint left = queen * 2 + L, right = (R | queen) >> 1, free = F ^ queen, rows = BITS(free); \
    uint here = free & ~(left | right) & ROW(rows)[0]; \
    uint below = free & ~(left << 1 | right >> 1) & ROW(rows)[-GROUP]; \
    sum += rows == 1 && here != 0; \
    C &= others; \
    if (here != 0 && below != 0) { \
        if (C != 0) { *top = NODE(L, R, F, C); top += GROUP; } \
        L = left << 1; R = right; F = free; C = here; \
    } else if (C == 0) { \
        top -= GROUP; \
        uint4 node = *top; \
        L = node.x; R = node.y; F = node.z; C = node.w; \
    } }

// Completions of each task, and rounds of STEPS steps; UNFINISHED where a task takes more than `rounds_max`.
KERNEL(GROUP) search(GLOBAL const uint4 *tasks, uint count, GLOBAL const uint *masks, GLOBAL uint *next,
              GLOBAL uint2 *results, uint rounds_max)
{
    LOCAL_ARRAY uint4 stack[(ROWS - 2 + STEPS) * GROUP];
    LOCAL_ARRAY uint rows_of[(ROWS + 2) * GROUP]; // what lies below [0] is read by lanes without work alone
    const uint lane = LANE;
    LOCAL char *table = (LOCAL char *)(rows_of + GROUP + lane);
    LOCAL uint4 *top = stack + STEPS * GROUP + lane;
    uint L = 0, R = 0, F = 0, C = 0, sum = 0, rounds = 0, task = NONE;
    for (uint k = 0; k < STEPS; k++)
        stack[k * GROUP + lane] = NODE(0, 0, 0, 0);
    for (;;) {
        if (C == 0 || rounds == 0) {
            if (task != NONE)
                results[task] = PAIR(C == 0 ? sum : UNFINISHED, rounds_max - rounds);
            task = TAKE(next);
            if (task >= count)
                return;
            uint4 node = tasks[task];
            uint left = BITS(node.z);
            // They end at the same place for all tasks. An address that depends on the task stays in a register; compilers
            // put others together anew in each step.
            table = (LOCAL char *)(rows_of + (1 + ROWS - left) * GROUP + lane);
            #pragma unroll 4 // all at once takes too many registers
            for (uint k = 0; k <= left; k++)
                *ROW(k) = masks[node.w * 32 + k];
            L = node.x; R = node.y; F = node.z;
            C = F & ~(L >> 1 | R) & *ROW(left);
            sum = 0;
            rounds = rounds_max;
            top = stack + STEPS * GROUP + lane;
        }
        STEP(); STEP(); STEP(); STEP();
        rounds -= 1;
    }
}
