/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A sweep along dimension 0: between two positions where a piece begins or
 * ends, the set of active pieces does not change. These pieces must cover the
 * remaining dimensions, which is the same problem with one dimension less. A
 * piece that fills all remaining dimensions answers it at once, so the usual
 * case, a dataset whose rows are divided among many files, only costs a sort.
 */
#include "hdf5io/cover.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"

/* Maximum spans of one dimension in memory. */
#define COVER_SPANS_MAX ((size_t)1 << 22)
/* Maximum spans visited, which takes some seconds. */
#define COVER_WORK_MAX ((int64_t)1 << 30)

/* A block of a piece, clipped to the extent. */
typedef struct cover_span {
    uint64_t begin, end;
    size_t piece;
} cover_span_t;

typedef struct cover_work {
    const uint64_t *extent;
    int ndim;
    const cover_side_t *sides;
    int64_t left; /* remaining work of COVER_WORK_MAX */
    uint64_t hole[2];
    err_t *err;
} cover_work_t;

/* A sweep along one dimension: all spans in order of begin, the active spans,
 * and the pieces of the active spans. */
typedef struct cover_sweep {
    cover_span_t *spans, *active;
    size_t *pieces;
    size_t count, next, active_count;
} cover_sweep_t;

static uint64_t cover_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* a + b; UINT64_MAX on overflow. */
static uint64_t cover_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Number of blocks of [side] that begin before [extent]. */
static uint64_t cover_blocks(const cover_side_t *side, uint64_t extent)
{
    uint64_t fit;

    if (side->count == 0 || side->block == 0 || side->limit == 0 ||
        side->start >= extent)
        return 0;
    fit = side->stride == 0 ? 1 : (extent - 1 - side->start) / side->stride + 1;
    fit = cover_least(fit, side->count);
    return cover_least(fit, (side->limit - 1) / side->block + 1);
}

static int cover_compare(const void *a, const void *b)
{
    const cover_span_t *left = a, *right = b;

    return (left->begin > right->begin) - (left->begin < right->begin);
}

/* Write the spans of one piece to [out]. */
static void cover_fill(const cover_side_t *side, uint64_t extent, size_t piece,
                       cover_span_t *out)
{
    uint64_t blocks = cover_blocks(side, extent), used = 0;

    for (uint64_t k = 0; k < blocks; k++) {
        uint64_t begin = side->start + k * side->stride;
        uint64_t length = cover_least(side->block, side->limit - used);

        out[k] = (cover_span_t){
            begin, cover_least(cover_sum(begin, length), extent), piece};
        used += length;
    }
}

/* Collect all spans of [pieces] along [dim], sorted by begin. */
static err_code_t cover_spans(cover_work_t *work, int dim, const size_t *pieces,
                              size_t count, cover_sweep_t *out)
{
    const uint64_t extent = work->extent[dim];
    cover_sweep_t sweep = {.spans = NULL};
    static const char what[] = "the blocks of a virtual dataset";
    size_t at = 0;
    err_code_t rc;

    for (size_t i = 0; i < count; i++) {
        uint64_t blocks = cover_blocks(
            &work->sides[pieces[i] * (size_t)work->ndim + (size_t)dim], extent);

        if (blocks > COVER_SPANS_MAX - sweep.count)
            return err_set(work->err, ERR_DATA,
                           "is made of more than %zu blocks", COVER_SPANS_MAX);
        sweep.count += (size_t)blocks;
    }
    rc = mem_new(cover_span_t, sweep.count, what, &sweep.spans, work->err);
    if (rc == ERR_OK)
        rc = mem_new(cover_span_t, sweep.count, what, &sweep.active, work->err);
    if (rc == ERR_OK)
        rc = mem_new(size_t, sweep.count, what, &sweep.pieces, work->err);
    *out = sweep;
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < count; i++) {
        const cover_side_t *side =
            &work->sides[pieces[i] * (size_t)work->ndim + (size_t)dim];

        cover_fill(side, extent, pieces[i], sweep.spans + at);
        at += (size_t)cover_blocks(side, extent);
    }
    check(at == sweep.count, "%zu of %zu spans were filled", at, sweep.count);
    qsort(sweep.spans, sweep.count, sizeof *sweep.spans, cover_compare);
    return ERR_OK;
}

static void cover_sweep_free(cover_sweep_t *sweep)
{
    mem_free(sweep->pieces);
    mem_free(sweep->active);
    mem_free(sweep->spans);
}

/* Move the sweep to [at]: update the active spans and return the next position
 * where they change. */
static uint64_t cover_advance(cover_work_t *work, int dim, uint64_t at,
                              cover_sweep_t *sweep)
{
    uint64_t end = work->extent[dim];
    size_t kept = 0;

    while (sweep->next < sweep->count && sweep->spans[sweep->next].begin <= at)
        sweep->active[sweep->active_count++] = sweep->spans[sweep->next++];
    for (size_t i = 0; i < sweep->active_count; i++)
        if (sweep->active[i].end > at)
            sweep->active[kept++] = sweep->active[i];
    work->left -= (int64_t)sweep->active_count + 1;
    sweep->active_count = kept;
    for (size_t i = 0; i < kept; i++) {
        sweep->pieces[i] = sweep->active[i].piece;
        end = cover_least(end, sweep->active[i].end);
    }
    if (sweep->next < sweep->count)
        end = cover_least(end, sweep->spans[sweep->next].begin);
    check(end > at, "the sweep stays at %llu of %llu", (unsigned long long)at,
          (unsigned long long)work->extent[dim]);
    return end;
}

/* Does the piece fill all dimensions from [dim] on? */
static bool cover_fills(const cover_work_t *work, size_t piece, int dim)
{
    for (; dim < work->ndim; dim++) {
        const cover_side_t *side =
            &work->sides[piece * (size_t)work->ndim + (size_t)dim];

        if (side->start > 0 || side->count == 0 ||
            cover_least(side->block, side->limit) < work->extent[dim])
            return false;
    }
    return true;
}

/* Do [pieces] cover the dimensions from [dim] on? */
static err_code_t cover_rest(cover_work_t *work, int dim, const size_t *pieces,
                             size_t count, bool *whole)
{
    cover_sweep_t sweep = {.spans = NULL};
    err_code_t rc = ERR_OK;
    uint64_t at = 0, end;

    *whole = count > 0;
    for (size_t i = 0; i < count; i++)
        if (cover_fills(work, pieces[i], dim))
            return ERR_OK;
    if (dim == work->ndim || count == 0)
        return ERR_OK;
    rc = cover_spans(work, dim, pieces, count, &sweep);
    for (; rc == ERR_OK && *whole && at < work->extent[dim]; at = end) {
        end = cover_advance(work, dim, at, &sweep);
        if (work->left < 0)
            rc = err_set(work->err, ERR_DATA,
                         "is made of too many overlapping blocks");
        else
            rc = cover_rest(work, dim + 1, sweep.pieces, sweep.active_count,
                            whole);
        if (dim == 0 && !*whole) {
            work->hole[0] = at;
            work->hole[1] = end;
        }
    }
    cover_sweep_free(&sweep);
    return rc;
}

err_code_t hdf5io_cover_check(const cover_pieces_t *pieces, bool *whole,
                              uint64_t hole[2], err_t *err)
{
    cover_work_t work = {.extent = pieces->extent,
                         .ndim = pieces->ndim,
                         .sides = pieces->sides,
                         .left = COVER_WORK_MAX,
                         .hole = {0, pieces->extent[0]},
                         .err = err};
    const size_t count = pieces->count;
    size_t *numbers = NULL;
    bool covered = false;
    err_code_t rc;

    rc = mem_new(size_t, count, "the pieces of a virtual dataset", &numbers,
                 err);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        numbers[i] = i;
    rc = cover_rest(&work, 0, numbers, count, &covered);
    mem_free(numbers);
    if (rc != ERR_OK)
        return rc;
    *whole = covered;
    hole[0] = work.hole[0];
    hole[1] = work.hole[1];
    return ERR_OK;
}
