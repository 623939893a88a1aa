/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Placing regions by lifetime. Regions are placed in order of size, the largest
 * first. Each is put into the lowest gap that is free during its whole
 * lifetime. This is simple, independent of the graph's form, and for the chains
 * of layers measured here within a few percent of the best (Pisarchyk and Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020, compare it
 * with others).
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "nn/exec_priv.h"

static bool regions_overlap(const nn_region_t *a, const nn_region_t *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Larger regions first; regions of equal size in order of their first call,
 * then of their number. As no two are equal, the plan does not depend on the
 * qsort of the system. */
static int region_order(const void *left, const void *right)
{
    const nn_region_t *a = *(nn_region_t *const *)left;
    const nn_region_t *b = *(nn_region_t *const *)right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* The lowest offset at which [region] shares no byte with a region of placed[0
 * .. count) that is in use at the same time. [placed] is in order of offset. */
static size_t lowest_gap(const nn_region_t *region, nn_region_t *const *placed,
                         int count)
{
    size_t offset = 0;

    for (int i = 0; i < count; i++) {
        size_t end = placed[i]->offset + mem_round(placed[i]->bytes);

        if (!regions_overlap(region, placed[i]))
            continue;
        if (offset + mem_round(region->bytes) <= placed[i]->offset)
            break;
        if (end > offset)
            offset = end;
    }
    return offset;
}

/* Insert placed[count] into placed[0 .. count), which is in order of offset. */
static void insert_sorted(nn_region_t **placed, int count)
{
    nn_region_t *region = placed[count];
    int i;

    for (i = count; i > 0 && placed[i - 1]->offset > region->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = region;
}

/* Check that regions in use at the same time share no byte. [placed] is in
 * order of offset. */
static void places_check(nn_region_t *const *placed, int count, size_t end)
{
    for (int i = 0; CHECK_ON && i < count; i++) {
        const nn_region_t *a = placed[i];

        check(a->first <= a->last, "a region is in use from %d to %d", a->first,
              a->last);
        check(a->offset % MEM_ALIGN == 0 && a->offset + a->bytes <= end,
              "a region of %zu bytes at %zu in a plan of %zu", a->bytes,
              a->offset, end);
        for (int k = i + 1; k < count; k++)
            check(placed[k]->offset >= a->offset + a->bytes ||
                      !regions_overlap(a, placed[k]),
                  "regions of %zu bytes at %zu and of %zu at %zu overlap in "
                  "calls "
                  "%d to %d",
                  a->bytes, a->offset, placed[k]->bytes, placed[k]->offset,
                  placed[k]->first, a->last);
    }
}

err_code_t nn_plan_place(nn_region_t *regions, int count, size_t *total,
                         err_t *err)
{
    nn_region_t **order = NULL, **placed;
    size_t end = 0;
    err_code_t rc;

    rc =
        mem_new(nn_region_t *, 2 * (size_t)count, "a memory plan", &order, err);
    if (rc != ERR_OK)
        return rc;
    placed = order + count;
    for (int i = 0; i < count; i++)
        order[i] = &regions[i];
    if (count > 1)
        qsort(order, (size_t)count, sizeof(nn_region_t *), region_order);
    for (int i = 0; i < count; i++) {
        order[i]->offset = lowest_gap(order[i], placed, i);
        placed[i] = order[i];
        insert_sorted(placed, i);
        if (order[i]->offset + mem_round(order[i]->bytes) > end)
            end = order[i]->offset + mem_round(order[i]->bytes);
    }
    places_check(placed, count, end);
    *total = end;
    mem_free(order);
    return ERR_OK;
}
