// The sums of nqueens_kernel::engine::PairWork, in pieces: a work-group has some column sets l, a lane each, and every
// stripes-th p, of one row set. The list of p is read by all lanes at once, that of l by its own.

// Pairs without a common bit, of a list that all lanes have and one of the lane's own.
uint fits(__global const ulong *all, uint from, uint to, __global const ulong *own, uint own_from, uint own_to,
          __local ulong *tile)
{
    uint count = 0;
    for (uint at = from; at < to; at += GROUP) {
        uint length = min(to - at, (uint)GROUP);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < length)
            tile[get_local_id(0)] = all[at + get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = own_from; i < own_to; i++) {
            ulong mask = own[i];
            for (uint k = 0; k < length; k++)
                count += (mask & tile[k]) == 0;
        }
    }
    return count;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void multiply(__global const uint *leaf_starts_1, __global const ulong *leaves_1,
              __global const uint *lane_starts_1, __global const ulong *lanes_1,
              __global const uint *leaf_starts_2, __global const ulong *leaves_2,
              __global const uint *lane_starts_2, __global const ulong *lanes_2,
              __global const uint2 *factors_p, __global const uint2 *factors_l,
              uint ps, uint ls, uint row_set, __global ulong2 *sums)
{
    __local ulong tile[GROUP];
    __local ulong2 lane_sums[GROUP];
    const uint lane = get_local_id(0), l = get_global_id(0);
    leaf_starts_1 += (row_set + get_group_id(2)) * (ps + 1);
    leaf_starts_2 += (row_set + get_group_id(2)) * (ls + 1);
    const bool is_set = l < ls;
    const uint lane_from = is_set ? lane_starts_1[l] : 0, lane_to = is_set ? lane_starts_1[l + 1] : 0;
    const uint leaf_from = is_set ? leaf_starts_2[l] : 0, leaf_to = is_set ? leaf_starts_2[l + 1] : 0;
    const uint2 factor_l = is_set ? factors_l[l] : (uint2)(0, 0);
    ulong low = 0, high = 0;
    for (uint p = get_group_id(1); p < ps; p += get_num_groups(1)) {
        uint first = fits(leaves_1, leaf_starts_1[p], leaf_starts_1[p + 1], lanes_1, lane_from, lane_to, tile);
        // What is multiplied by nothing is not counted.
        uint end = first == 0 ? leaf_from : leaf_to;
        uint second = fits(lanes_2, lane_starts_2[p], lane_starts_2[p + 1], leaves_2, leaf_from, end, tile);
        ulong factor = (ulong)factors_p[p].x * factor_l.x + (ulong)factors_p[p].y * factor_l.y;
        ulong product = (ulong)first * second, part = product * factor;
        low += part;
        high += mul_hi(product, factor) + (low < part);
    }
    lane_sums[lane] = (ulong2)(low, high);
    for (uint half_way = GROUP / 2; half_way > 0; half_way /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_way) {
            ulong2 one = lane_sums[lane], other = lane_sums[lane + half_way];
            ulong sum = one.x + other.x;
            lane_sums[lane] = (ulong2)(sum, one.y + other.y + (sum < one.x));
        }
    }
    if (lane == 0)
        sums[(get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)] = lane_sums[0];
}
