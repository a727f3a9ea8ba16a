// C = A * B, row-major, as a person writes it: one work-item for each element of C.

#define TILE 16

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void tiled(uint m, uint n, uint k,
           __global const float *a, __global const float *b, __global float *c)
{
    __local float a_tile[TILE][TILE];
    __local float b_tile[TILE][TILE];
    uint x = get_local_id(0), y = get_local_id(1);
    uint row = get_group_id(1) * TILE + y;
    uint col = get_group_id(0) * TILE + x;
    float sum = 0.0f;

    for (uint k0 = 0; k0 < k; k0 += TILE) {
        // Zeros outside of A and B, so that the products below need no condition.
        a_tile[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.0f;
        b_tile[y][x] = k0 + y < k && col < n ? b[(k0 + y) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE); // both tiles are complete

        for (uint i = 0; i < TILE; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        barrier(CLK_LOCAL_MEM_FENCE); // every work-item has finished reading the tiles
    }
    // Not before: all work-items of a group must reach the barriers.
    if (row < m && col < n)
        c[row * n + col] = sum;
}
