// Products of nqueens_kernel::engine::ProductWork, in two kernels. dialect.cl stands before it.
//
// A group of LANES lanes has SETS column sets, two a lane: set l and set LANES + l. A word of a lane has 16 placements of the
// one below 16 of the other.
#define LANES (SETS / 2)

typedef struct {
    ulong queen;
    uint level, leaves, asked, asked_end, program, program_end;
} Step;

// One more than there are bits: a queen on none of their diagonals is on the last.
#define PLANES 65

// Which of a word's placements are on a queen's diagonals.
#define EITHER(diagonals) (planes[LANES * ((diagonals) & 255)] | planes[LANES * ((diagonals) >> 8)])

// Masks of a list that are read at once, so that a lane waits once for all of them.
#define LOADS 8

// So many bits, up to 16.
#define LOW_BITS(count) ((1u << min((uint)(count), 16u)) - 1)

// planes[LANES * d] gets bit d of each placement of a word. The masks of a set are SETS apart.
FUNCTION void transpose(GLOBAL const ulong *masks, const uint *left, LOCAL uint *planes)
{
    for (uint half_way = 0; half_way < 2; half_way++) {
        uint block[32];
#pragma unroll
        for (uint i = 0; i < 32; i++)
            block[i] = i % 16 < left[i / 16]
                ? (uint)(masks[(size_t)(i % 16) * SETS + i / 16 * LANES] >> (32 * half_way)) : 0;
        uint kept = 0xffffu;
#pragma unroll
        for (uint j = 16; j != 0; j /= 2) {
#pragma unroll
            for (uint i = 0; i < 32; i++) {
                if ((i & j) == 0) {
                    uint swapped = (block[i] >> j ^ block[i + j]) & kept;
                    block[i] ^= swapped << j;
                    block[i + j] ^= swapped;
                }
            }
            kept ^= kept << (j / 2);
        }
#pragma unroll
        for (uint i = 0; i < 32; i++)
            planes[LANES * (32 * half_way + i)] = block[i];
    }
}

// What a queen leaves free of a word's placements, by its number. In bytes, so that the address takes few operations: a
// queen's table has 4 for each lane.
#define FREE(number) (*(LOCAL const uint *)(tables + ((number) * (4 * LANES) | 4 * lane)))

// The next word of a program. The one after it is on its way already, so one more is read than there are.
#define NEXT() (word = ahead, ahead = *program++, word)

// Adds what is free of a word to the row of the matrix that a leaf's word names below its highest byte. A row has 256 bytes.
FUNCTION void add(uint free, uint leaf, GLOBAL uint *matrix)
{
    if (free != 0) {
        GLOBAL uint *cells = (GLOBAL uint *)((GLOBAL char *)matrix + (leaf << 8));
        ADD(cells, BITS(free & 0xffff));
        ADD(cells + LANES, BITS(free >> 16));
    }
}

// Adds the fits of a branch's placements, whose nodes have so many queens.
FUNCTION void run(GLOBAL const uint *program, GLOBAL const uint *end, uint queens, uint valid, LOCAL const char *tables,
         uint lane, GLOBAL uint *matrix)
{
    uint word, ahead = *program++;
    while (program <= end) {
        uint head = NEXT();
        for (uint nodes = head >> 8; nodes != 0; nodes--) {
            uint free = valid;
#pragma unroll
            for (uint queen = 0; queen < queens; queen++) {
                if (queen % 4 == 0)
                    NEXT();
                free &= FREE(word >> (8 * (queen % 4)) & 255);
            }
            for (uint leaves = head & 255; leaves != 0; leaves--) {
                NEXT();
                add(free & FREE(word >> 24), word, matrix);
            }
        }
    }
}

// Joins the lists of some column sets with a part of a tree: a group for each item, of which the lists of a part and the
// groups of sets are counted first, then the parts of the tree. compared[item] are the pairs.
KERNEL(LANES) fits(GLOBAL const Step *steps, GLOBAL const uint2 *chunks, GLOBAL const uint *asked,
          GLOBAL const uint *program, uint depth, uint rest, uint rows,
          GLOBAL const uint *starts, GLOBAL const ulong *masks, uint sets, uint lists,
          GLOBAL ulong *scratch, uint room, uint first, GLOBAL uint *matrix, GLOBAL ulong *compared)
{
    LOCAL_ARRAY uint tables[TABLES * LANES] ALIGNED(4 * LANES);
    LOCAL_ARRAY uint all_planes[PLANES * LANES];
    LOCAL_ARRAY ulong sums[LANES];
    LOCAL_ARRAY uint all_lengths[2 * (DEPTH + 1) * LANES]; // of the lists above a level first
    const uint lane = LANE, item = first + ITEM(0);
    const uint groups = (sets + SETS - 1) / SETS, at = item % (groups * lists);
    const uint part = at / groups, set = at % groups * SETS + lane;
    const uint2 chunk = chunks[item / (groups * lists)];
    LOCAL uint *planes = all_planes + lane;
    starts += part * (sets + 1);
    scratch += (size_t)ITEM(0) * depth * room * SETS + lane;
    matrix += (size_t)at * rows * SETS + lane;
    LOCAL uint *lengths = all_lengths + lane;
    uint first_masks[2];
    ulong pairs = 0;
    for (uint half_way = 0; half_way < 2; half_way++) {
        bool is_set = set + half_way * LANES < sets;
        first_masks[half_way] = is_set ? starts[set + half_way * LANES] : 0;
        lengths[half_way * LANES] = is_set ? starts[set + half_way * LANES + 1] - first_masks[half_way] : 0;
    }
    planes[64 * LANES] = 0;
    for (uint number = chunk.x; number < chunk.y; number++) {
        const Step step = steps[number];
        GLOBAL ulong *below = scratch + (size_t)step.level * room * SETS;
        uint kept[2];
#pragma unroll
        for (uint half_way = 0; half_way < 2; half_way++) {
            GLOBAL ulong *to = below + half_way * LANES;
            GLOBAL const ulong *from = masks + first_masks[half_way];
            uint apart = 1, count = lengths[(2 * step.level + half_way) * LANES];
            if (step.level != 0) {
                from = to - (size_t)room * SETS;
                apart = SETS;
            }
            uint length = 0;
            for (uint i = 0; i < count; i += LOADS) {
                ulong loaded[LOADS];
#pragma unroll
                for (uint k = 0; k < LOADS; k++)
                    loaded[k] = from[(size_t)min(i + k, count - 1) * apart];
#pragma unroll
                for (uint k = 0; k < LOADS; k++)
                    if (i + k < count && (loaded[k] & step.queen) == 0)
                        to[(size_t)length++ * SETS] = loaded[k];
            }
            kept[half_way] = lengths[(2 * step.level + 2 + half_way) * LANES] = length;
        }
        if (step.level + 1 < depth)
            continue;
        pairs += (ulong)(kept[0] + kept[1]) * step.leaves;
        for (uint done = 0; done < max(kept[0], kept[1]); done += 16) {
            uint left[2] = {kept[0] - min(kept[0], done), kept[1] - min(kept[1], done)};
            uint valid = LOW_BITS(left[0]) | LOW_BITS(left[1]) << 16;
            transpose(below + (size_t)done * SETS, left, planes);
            for (uint queen = step.asked; queen < step.asked_end; queen++)
                tables[LANES * (queen - step.asked) + lane] = valid & ~EITHER(asked[queen]);
            GLOBAL const uint *words = program + step.program, *end = program + step.program_end;
            LOCAL const char *free = (LOCAL const char *)tables;
            switch (rest) {
            case 0:
                for (uint row = 0; row < rows; row++)
                    add(valid, row, matrix);
                break;
            case 1: run(words, end, 0, valid, free, lane, matrix); break;
            case 2: run(words, end, 1, valid, free, lane, matrix); break;
            case 3: run(words, end, 2, valid, free, lane, matrix); break;
            case 4: run(words, end, 3, valid, free, lane, matrix); break;
            default: run(words, end, rest - 1, valid, free, lane, matrix); break;
            }
        }
    }
    sums[lane] = pairs;
    WAIT_FOR_LANES();
    if (lane == 0) {
        for (uint i = 1; i < LANES; i++)
            pairs += sums[i];
        compared[ITEM(0)] = pairs;
    }
}

// Multiplies the cells of some column sets p and l of a row set of a part, and adds them up with 128 bits.
KERNEL(SETS) multiply(GLOBAL const uint *first, GLOBAL const uint *second, GLOBAL const uint2 *factors_p,
              GLOBAL const uint2 *factors_l, uint ps, uint ls, uint row_sets, GLOBAL ulong2 *sums)
{
    LOCAL_ARRAY uint tile[SETS][SETS + 1];
    LOCAL_ARRAY ulong2 lane_sums[SETS];
    const uint lane = LANE, l_group = ITEM(0), p_group = ITEM(1);
    const uint part = ITEM(2) / row_sets, row_set = ITEM(2) % row_sets;
    const uint l_first = l_group * SETS, p_first = p_group * SETS;
    const uint ls_here = min(ls - l_first, (uint)SETS), ps_here = min(ps - p_first, (uint)SETS);
    first += (((size_t)part * ITEMS(1) + p_group) * row_sets + row_set) * ls * SETS;
    second += (((size_t)part * ITEMS(0) + l_group) * row_sets + row_set) * ps * SETS;
    factors_p += part * ps + p_first;
    for (uint l = 0; l < ls_here; l++)
        tile[l][lane] = first[(size_t)(l_first + l) * SETS + lane];
    WAIT_FOR_LANES();
    ulong low = 0, high = 0;
    if (lane < ls_here) {
        const uint2 factor_l = factors_l[part * ls + l_first + lane];
        for (uint p = 0; p < ps_here; p++) {
            ulong product = (ulong)tile[lane][p] * second[(size_t)(p_first + p) * SETS + lane];
            ulong factor = (ulong)factors_p[p].x * factor_l.x + (ulong)factors_p[p].y * factor_l.y;
            ulong more = product * factor;
            low += more;
            high += HIGH_HALF(product, factor) + (low < more);
        }
    }
    lane_sums[lane] = WIDE_PAIR(low, high);
    for (uint half_way = SETS / 2; half_way > 0; half_way /= 2) {
        WAIT_FOR_LANES();
        if (lane < half_way) {
            ulong2 one = lane_sums[lane], other = lane_sums[lane + half_way];
            ulong sum = one.x + other.x;
            lane_sums[lane] = WIDE_PAIR(sum, one.y + other.y + (sum < one.x));
        }
    }
    if (lane == 0)
        sums[((size_t)ITEM(2) * ITEMS(1) + p_group) * ITEMS(0) + l_group] = lane_sums[0];
}
