/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The usual blocked algorithm. A panel of B, DEPTH rows of COLUMNS columns, is
 * copied to a contiguous buffer and multiplied by all strips of A; a strip is
 * ROWS rows of A, also copied. A tile of C stays in registers meanwhile. While
 * a panel is used, the cache lines of the next panel are prefetched, a few in
 * each tile.
 *
 * If A is small, all of A is copied once, and C is finished panel by panel.
 * Otherwise A is processed in blocks of BLOCK_ROWS rows, and the panels are
 * copied again for each block, into the same buffer: storing all panels would
 * evict the blocks of A and C from the cache and cost more. Both ways sum each
 * element over k in order, slice by slice, and give the same bits.
 *
 * Threads divide the columns, or the rows if there are more rows, and each
 * thread makes its copies. Compiled with fused multiply-add, like
 * gemm_small.c.
 *
 * Why not oneDNN's dnnl_sgemm: it takes 0.91 to 1.07 of our time, but its bits
 * change with the number of threads where K is large, and it allocates in each
 * call. BLIS is not faster (figures: docs/benchmarks/libraries.md).
 */
#include "op/cpu/vector/gemm.h"

#include <string.h>

#include "base/check.h"
#include "simd/math.h"
#include "simd/team.h"
#include "simd/zip.h"

#define WIDE 16
#define ROWS 8
#define VECTORS 3
#define COLUMNS (VECTORS * WIDE)
#define DEPTH 384
#define BLOCK_ROWS 512
#define BLOCK_COLUMNS 768
/* Maximum padded elements of A that are copied at once: fits a 2 MB cache. */
#define WHOLE_ELEMS (320 * 1024)
/* Rows to prefetch ahead of the one that is copied. */
#define AHEAD 8

/* The smallest product for which this file is used (see cpu_gemm_is_faster). */
#define PAYS_SIDE 128
#define PAYS_WORK (64 * 1024 * 1024)

#define A_ELEMS WHOLE_ELEMS
#define B_ELEMS (COLUMNS * DEPTH)
_Static_assert(WIDE == SIMD_ZIP, "SIMD_ZIP_MIX");
_Static_assert(BLOCK_ROWS *DEPTH <= A_ELEMS, "a block of A fits");

bool cpu_gemm_is_faster(int64_t M, int64_t N, int64_t K)
{
    return M >= PAYS_SIDE && N >= PAYS_SIDE && K >= PAYS_SIDE &&
           (double)M * (double)N * (double)K >= PAYS_WORK;
}

size_t cpu_gemm_bytes(int threads)
{
    return (size_t)threads * (A_ELEMS + B_ELEMS) * sizeof(float);
}

#if defined(__x86_64__)

#define GEMM_TARGET __attribute__((target("avx512f")))

typedef float wide_t __attribute__((vector_size(4 * WIDE), aligned(4)));

bool cpu_gemm_supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

SIMD_INLINE int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A slice of k: [at, at + depth). */
typedef struct slice {
    int64_t at, depth;
} slice_t;

SIMD_INLINE int64_t slice_count(int64_t K)
{
    return (K + DEPTH - 1) / DEPTH;
}

/* Slice number [step] of K; slices are as equal as possible. */
SIMD_INLINE slice_t slice_make(int64_t K, int64_t step)
{
    const int64_t count = slice_count(K), at = K * step / count;

    return (slice_t){.at = at, .depth = K * (step + 1) / count - at};
}

/* ---- copying ------------------------------------------------------------- */

/* Transpose 16 vectors: exchange halves, then quarters, pairs, neighbours. */
SIMD_INLINE void transpose_square(wide_t r[WIDE])
{
    wide_t t[WIDE];

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[i] = SIMD_ZIP_MIX(r[i], r[i + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18,
                            19, 20, 21, 22, 23);
        t[i + 8] = SIMD_ZIP_MIX(r[i], r[i + 8], 8, 9, 10, 11, 12, 13, 14, 15,
                                24, 25, 26, 27, 28, 29, 30, 31);
    }
#pragma GCC unroll 8
    for (int n = 0; n < 8; n++) {
        const int i = n / 4 * 8 + n % 4;

        r[i] = SIMD_ZIP_MIX(t[i], t[i + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9,
                            10, 11, 24, 25, 26, 27);
        r[i + 4] = SIMD_ZIP_MIX(t[i], t[i + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12,
                                13, 14, 15, 28, 29, 30, 31);
    }
#pragma GCC unroll 8
    for (int n = 0; n < 8; n++) {
        const int i = n / 2 * 4 + n % 2;

        t[i] = SIMD_ZIP_MIX(r[i], r[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9,
                            24, 25, 12, 13, 28, 29);
        t[i + 2] = SIMD_ZIP_MIX(r[i], r[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10,
                                11, 26, 27, 14, 15, 30, 31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < WIDE; i += 2) {
        r[i] = SIMD_ZIP_MIX(t[i], t[i + 1], 0, 16, 2, 18, 4, 20, 6, 22, 8, 24,
                            10, 26, 12, 28, 14, 30);
        r[i + 1] = SIMD_ZIP_MIX(t[i], t[i + 1], 1, 17, 3, 19, 5, 21, 7, 23, 9,
                                25, 11, 27, 13, 29, 15, 31);
    }
}

/* Where to write 16 numbers for each k: the first 8 at out[k * step], the
 * others at out[k * step + second]. */
typedef struct places {
    float *out;
    int64_t step, second;
} places_t;

SIMD_INLINE void places_put(const places_t *to, int64_t k, const float *lanes)
{
    float *out = to->out + k * to->step;

    if (to->second == 8) { /* a constant after inlining */
        memcpy(out, lanes, WIDE * sizeof *out);
        return;
    }
    memcpy(out, lanes, 8 * sizeof *out);
    memcpy(out + to->second, lanes + 8, 8 * sizeof *out);
}

/* Transpose [lines] <= 16 rows of [depth] numbers. Missing rows are 0. */
SIMD_INLINE void copy_transposed(const float *from, int64_t row, int64_t lines,
                                 int64_t depth, const places_t *to)
{
    int64_t k = 0;

    for (; lines == WIDE && k + WIDE <= depth; k += WIDE) {
        wide_t square[WIDE];

#pragma GCC unroll 16
        for (int i = 0; i < WIDE; i++) {
            square[i] = *(const wide_t *)(from + i * row + k);
            __builtin_prefetch(from + (i + WIDE) * row + k);
        }
        transpose_square(square);
#pragma GCC unroll 16
        for (int i = 0; i < WIDE; i++)
            places_put(to, k + i, (const float *)&square[i]);
    }
    for (; k < depth; k++) {
        float line[WIDE] = {0};

        for (int64_t i = 0; i < lines; i++)
            line[i] = from[i * row + k];
        places_put(to, k, line);
    }
}

/* Copy [lines] <= 16 numbers of each of [depth] rows. Missing numbers are 0. */
SIMD_INLINE void copy_straight(const float *from, int64_t row, int64_t lines,
                               int64_t depth, const places_t *to)
{
    for (int64_t k = 0; lines == WIDE && k < depth; k++, from += row) {
        const wide_t line = *(const wide_t *)from;

        __builtin_prefetch(from + AHEAD * row);
        places_put(to, k, (const float *)&line);
    }
    for (int64_t k = 0; lines < WIDE && k < depth; k++, from += row) {
        float line[WIDE] = {0};

        for (int64_t i = 0; i < lines; i++)
            line[i] = from[i];
        places_put(to, k, line);
    }
}

/* Copy 32 numbers of each of [depth] rows. */
SIMD_INLINE void copy_twice(const float *from, int64_t row, int64_t depth,
                            const places_t *to)
{
    const places_t behind = {to->out + 2 * to->second, to->step, to->second};

    for (int64_t k = 0; k < depth; k++, from += row) {
        const wide_t left = *(const wide_t *)from;
        const wide_t right = *(const wide_t *)(from + WIDE);

        __builtin_prefetch(from + AHEAD * row);
        __builtin_prefetch(from + AHEAD * row + WIDE);
        places_put(to, k, (const float *)&left);
        places_put(&behind, k, (const float *)&right);
    }
}

/* Copy rows [first, first + rows) to strips [depth][ROWS], 2 or 4 at once. */
GEMM_TARGET static void copy_rows(const cpu_gemm_t *gemm, int64_t first,
                                  int64_t rows, slice_t s, float *out)
{
    const cpu_matrix_t a = gemm->a;

    for (int64_t i = 0, lines; i < rows; i += lines) {
        const places_t to = {out + i * s.depth, ROWS, ROWS * s.depth};
        const float *from = a.data + (first + i) * a.row + s.at * a.column;
        const bool two = a.row == 1 && rows - i >= 2 * WIDE;

        lines = two ? 2 * WIDE : least(rows - i, WIDE);
        if (two)
            copy_twice(from, a.column, s.depth, &to);
        else if (a.row == 1)
            copy_straight(from, a.column, lines, s.depth, &to);
        else
            copy_transposed(from, a.row, lines, s.depth, &to);
    }
}

/* Copy COLUMNS numbers of each of [depth] rows. */
SIMD_INLINE void copy_whole(const float *from, int64_t row, int64_t depth,
                            float *out)
{
    for (int64_t k = 0; k < depth; k++, from += row, out += COLUMNS)
#pragma GCC unroll 3
        for (int v = 0; v < COLUMNS; v += WIDE)
            *(wide_t *)(out + v) = *(const wide_t *)(from + v);
}

/* Copy columns [first, first + columns) of B to a panel [depth][COLUMNS]. */
GEMM_TARGET static void copy_panel(const cpu_gemm_t *gemm, int64_t first,
                                   int64_t columns, slice_t s, float *out)
{
    const cpu_matrix_t b = gemm->b;
    const float *from = b.data + s.at * b.row + first * b.column;

    if (b.column == 1 && columns == COLUMNS) {
        copy_whole(from, b.row, s.depth, out);
        return;
    }
    for (int64_t j = 0; j < columns; j += WIDE, from += WIDE * b.column) {
        const places_t to = {out + j, COLUMNS, 8};
        const int64_t lines = least(columns - j, WIDE);

        if (b.column == 1)
            copy_straight(from, b.row, lines, s.depth, &to);
        else
            copy_transposed(from, b.column, lines, s.depth, &to);
    }
}

/* ---- tiles --------------------------------------------------------------- */

/* What to prefetch while a tile is computed: [count] times three cache lines,
 * which are [side] bytes apart and begin [step] bytes further on each time. */
typedef struct fetch {
    const char *at;
    int64_t side, step, count;
} fetch_t;

#define FETCH_EVERY 4 /* steps of k between two prefetches */

typedef struct tile {
    const float *a, *b; /* a copied strip and a copied panel */
    int64_t depth;
    float *c;
    int64_t c_row;
    const float *bias; /* NULL: no bias */
    bool first;        /* first slice of k: C is not read */
    fetch_t fetch;
} tile_t;

/* Add [count] products to each sum. [vectors] and [count] are constants. */
SIMD_INLINE void tile_steps(wide_t sum[ROWS][VECTORS], int vectors, int count,
                            const float *a, const float *b)
{
#pragma GCC unroll 4
    for (int k = 0; k < count; k++, a += ROWS, b += COLUMNS) {
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                sum[i][v] += a[i] * *(const wide_t *)(b + v * WIDE);
    }
}

SIMD_INLINE void tile_end(const tile_t *tile, wide_t sum[ROWS][VECTORS],
                          int vectors)
{
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            wide_t *c = (wide_t *)(tile->c + i * tile->c_row + v * WIDE);

            if (!tile->first)
                sum[i][v] += *c;
            else if (tile->bias != NULL)
                sum[i][v] += *(const wide_t *)(tile->bias + v * WIDE);
            *c = sum[i][v];
        }
}

SIMD_INLINE void tile_full(const tile_t *tile, int vectors)
{
    const float *a = tile->a, *b = tile->b;
    fetch_t fetch = tile->fetch;
    int64_t left = tile->depth;
    wide_t sum[ROWS][VECTORS];

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = (wide_t){0};
            __builtin_prefetch(tile->c + i * tile->c_row + v * WIDE, 1);
        }
    for (; fetch.count > 0 && left >= FETCH_EVERY; left -= FETCH_EVERY) {
        __builtin_prefetch(fetch.at, 0, 2);
        __builtin_prefetch(fetch.at + fetch.side, 0, 2);
        __builtin_prefetch(fetch.at + 2 * fetch.side, 0, 2);
        fetch.at += fetch.step;
        fetch.count--;
        tile_steps(sum, vectors, FETCH_EVERY, a, b);
        a += FETCH_EVERY * ROWS;
        b += FETCH_EVERY * COLUMNS;
    }
    for (; left >= 4; left -= 4, a += 4 * ROWS, b += 4 * COLUMNS)
        tile_steps(sum, vectors, 4, a, b);
    for (; left > 0; left--, a += ROWS, b += COLUMNS)
        tile_steps(sum, vectors, 1, a, b);
    tile_end(tile, sum, vectors);
}

GEMM_TARGET static void tile_run(const tile_t *tile, int vectors)
{
    if (vectors == 3)
        tile_full(tile, 3);
    else if (vectors == 2)
        tile_full(tile, 2);
    else
        tile_full(tile, 1);
}

/* A tile at the edge of C, of [rows] x [columns]. Computed in a buffer, with
 * the same order of sums. */
static void tile_edge(const tile_t *tile, int64_t rows, int64_t columns)
{
    float buffer[ROWS * COLUMNS], bias[COLUMNS] = {0};
    const size_t bytes = (size_t)columns * sizeof(float);
    tile_t inside = *tile;

    inside.c = buffer;
    inside.c_row = COLUMNS;
    memset(buffer, 0, sizeof buffer);
    for (int64_t i = 0; !tile->first && i < rows; i++)
        memcpy(buffer + i * COLUMNS, tile->c + i * tile->c_row, bytes);
    if (tile->bias != NULL) {
        memcpy(bias, tile->bias, bytes);
        inside.bias = bias;
    }
    tile_run(&inside, (int)((columns + WIDE - 1) / WIDE));
    for (int64_t i = 0; i < rows; i++)
        memcpy(tile->c + i * tile->c_row, buffer + i * COLUMNS, bytes);
}

/* ---- panels -------------------------------------------------------------- */

/* A panel of B: columns [first, first + columns), slice [s]. */
typedef struct panel {
    int64_t first, columns;
    slice_t s;
} panel_t;

/* Part [part] of [parts] of the prefetches for panel [next]. */
static fetch_t fetch_make(const cpu_gemm_t *gemm, const panel_t *next,
                          int64_t part, int64_t parts)
{
    const cpu_matrix_t b = gemm->b;
    const slice_t s = next->s;
    const int64_t bytes = sizeof(float);
    const int64_t lines = (s.depth + WIDE - 1) / WIDE;
    const bool transposed = b.column != 1;
    const int64_t all = transposed ? WIDE * lines : s.depth;
    const int64_t from = all * part / parts, to = all * (part + 1) / parts;
    fetch_t fetch = {.count = to - from};

    if (next->columns < COLUMNS)
        return (fetch_t){.count = 0};
    if (transposed) {
        fetch.at = (const char *)(b.data + s.at + from % lines * WIDE +
                                  (next->first + from / lines) * b.column);
        fetch.side = WIDE * b.column * bytes;
        fetch.step = WIDE * bytes;
    } else {
        fetch.at = (const char *)(b.data + next->first + (s.at + from) * b.row);
        fetch.side = WIDE * bytes;
        fetch.step = b.row * bytes;
    }
    return fetch;
}

/* Compute the tiles of [panel] in rows [first, first + rows). [b]: copy of the
 * panel; [a]: copy of the rows; [next]: panel to prefetch, or NULL. */
static void panel_run(const cpu_gemm_t *gemm, const panel_t *panel,
                      const float *b, int64_t first, int64_t rows,
                      const float *a, const panel_t *next)
{
    const int64_t strips = (rows + ROWS - 1) / ROWS;
    const int64_t columns = panel->columns, depth = panel->s.depth;

    tile_t tile = {.b = b,
                   .depth = depth,
                   .c_row = gemm->c_row,
                   .first = panel->s.at == 0};

    check(columns > 0 && panel->first + columns <= gemm->N, "columns");
    if (gemm->bias != NULL)
        tile.bias = gemm->bias + panel->first;
    for (int64_t i = 0; i < strips; i++) {
        const int64_t left = least(rows - i * ROWS, ROWS);

        tile.a = a + i * ROWS * depth;
        tile.c = gemm->c + (first + i * ROWS) * gemm->c_row + panel->first;
        if (next != NULL)
            tile.fetch = fetch_make(gemm, next, i, strips);
        if (left == ROWS && columns % WIDE == 0)
            tile_run(&tile, (int)(columns / WIDE));
        else
            tile_edge(&tile, left, columns);
    }
}

/* The last END columns are two panels: a panel of one vector is slow. */
#define END (COLUMNS + WIDE)

static panel_t panel_make(const cpu_gemm_t *gemm, int64_t first, slice_t s)
{
    const int64_t left = gemm->N - first;

    return (panel_t){first, left == END ? END / 2 : least(left, COLUMNS), s};
}

/* ---- the product --------------------------------------------------------- */

/* The part of the product that one thread computes, and its buffers. */
typedef struct share {
    cpu_gemm_t gemm;
    float *a, *b;
} share_t;

static int64_t rows_padded(int64_t rows)
{
    return (rows + WIDE - 1) / WIDE * WIDE;
}

/* Copy all of A at once, then finish C panel by panel. */
static void gemm_whole(const share_t *share)
{
    const cpu_gemm_t *gemm = &share->gemm;
    const int64_t count = slice_count(gemm->K), rows = rows_padded(gemm->M);

    check(rows * gemm->K <= A_ELEMS, "A has no room: %d rows", (int)rows);
    for (int64_t step = 0; step < count; step++) {
        const slice_t s = slice_make(gemm->K, step);

        copy_rows(gemm, 0, gemm->M, s, share->a + s.at * rows);
    }
    for (int64_t j = 0, columns = 0; j < gemm->N; j += columns)
        for (int64_t step = 0; step < count; step++) {
            const panel_t panel =
                panel_make(gemm, j, slice_make(gemm->K, step));
            const panel_t next =
                step + 1 < count
                    ? panel_make(gemm, j, slice_make(gemm->K, step + 1))
                    : panel_make(gemm, j + panel.columns,
                                 slice_make(gemm->K, 0));

            columns = panel.columns;
            copy_panel(gemm, j, columns, panel.s, share->b);
            panel_run(gemm, &panel, share->b, 0, gemm->M,
                      share->a + panel.s.at * rows, &next);
        }
}

/* Add slice [s] to rows [i, i + rows) of C, columns [first, last). */
static void gemm_block(const share_t *share, int64_t i, int64_t rows,
                       int64_t first, int64_t last, slice_t s)
{
    const cpu_gemm_t *gemm = &share->gemm;

    copy_rows(gemm, i, rows, s, share->a);
    for (int64_t j = first, columns = 0; j < last; j += columns) {
        const panel_t panel = panel_make(gemm, j, s);
        const panel_t next = panel_make(gemm, j + panel.columns, s);

        columns = panel.columns;
        copy_panel(gemm, j, columns, s, share->b);
        panel_run(gemm, &panel, share->b, i, rows, share->a,
                  j + columns < last ? &next : NULL);
    }
}

/* Compute C block by block; all slices of a block before the next block. */
static void gemm_blocks(const share_t *share)
{
    const cpu_gemm_t *gemm = &share->gemm;

    for (int64_t j = 0, last; j < gemm->N; j = last) {
        last = gemm->N - j < 2 * BLOCK_COLUMNS ? gemm->N : j + BLOCK_COLUMNS;
        for (int64_t i = 0; i < gemm->M; i += BLOCK_ROWS)
            for (int64_t step = 0; step < slice_count(gemm->K); step++)
                gemm_block(share, i, least(gemm->M - i, BLOCK_ROWS), j, last,
                           slice_make(gemm->K, step));
    }
}

typedef struct gemm_work {
    const cpu_gemm_t *gemm;
    bool by_rows;
    int threads; /* number of threads that scratch has buffers for */
    float *scratch;
} gemm_work_t;

/* Compute strips of rows, or panels of columns, [first, last). */
static void gemm_body(void *context, int64_t first, int64_t last)
{
    const gemm_work_t *work = context;
    share_t share = {.gemm = *work->gemm};
    cpu_gemm_t *gemm = &share.gemm;

    share.a = work->scratch + simd_team_number() * (A_ELEMS + B_ELEMS);
    share.b = share.a + A_ELEMS;
    check(simd_team_number() < work->threads, "%d threads", work->threads);
    if (work->by_rows) {
        gemm->M = least(gemm->M, last * ROWS) - first * ROWS;
        gemm->a.data += first * ROWS * gemm->a.row;
        gemm->c += first * ROWS * gemm->c_row;
    } else {
        gemm->N = least(gemm->N, last * COLUMNS) - first * COLUMNS;
        gemm->b.data += first * COLUMNS * gemm->b.column;
        gemm->c += first * COLUMNS;
        if (gemm->bias != NULL)
            gemm->bias += first * COLUMNS;
    }
    if (gemm->M <= BLOCK_ROWS && rows_padded(gemm->M) * gemm->K <= WHOLE_ELEMS)
        gemm_whole(&share);
    else
        gemm_blocks(&share);
}

void cpu_gemm_run(const cpu_gemm_t *gemm, int threads, void *scratch)
{
    gemm_work_t work = {.gemm = gemm, .threads = threads, .scratch = scratch};
    int64_t strips = (gemm->M + ROWS - 1) / ROWS;
    int64_t panels = (gemm->N + COLUMNS - 1) / COLUMNS;

    work.by_rows = gemm->M > gemm->N;
    simd_team_run(threads, work.by_rows ? strips : panels, 1, gemm_body, &work);
}

#else

bool cpu_gemm_supported(void)
{
    return false;
}

void cpu_gemm_run(const cpu_gemm_t *gemm, int threads, void *scratch)
{
    (void)gemm;
    (void)threads;
    (void)scratch;
}

#endif
