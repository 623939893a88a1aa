/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/bucket.h"

#include <string.h>

#include "base/check.h"

static size_t mib_elems(double mib)
{
    return (size_t)(mib * 1048576.0 / sizeof(float));
}

/* Return whether views [v - 1] and [v] are final at the same time. */
static bool together(const ddp_layout_t *layout, int v)
{
    return layout->views[v].unit != 0 &&
           layout->views[v].unit == layout->views[v - 1].unit;
}

/* The view after the unit that begins with view [v]; at most [to]. */
static int unit_end(const ddp_layout_t *layout, int v, int to)
{
    for (v++; v < to && together(layout, v); v++)
        ;
    return v;
}

/* The first view of the unit that ends before view [v]; at least [from]. */
static int unit_begin(const ddp_layout_t *layout, int v, int from)
{
    for (v--; v > from && together(layout, v); v--)
        ;
    return v;
}

/* Number of elements from view [from] to the end of view [to - 1]. */
static size_t run_elems(const ddp_layout_t *layout, int from, int to)
{
    const ddp_view_t *last = &layout->views[to - 1];

    return last->offset + last->count - layout->views[from].offset;
}

/* The view after the longest run of units that begins with view [from], ends
 * before view [to] and has at most [limit] elements. The run has at least one
 * unit. */
static int run_end(const ddp_layout_t *layout, int from, int to, size_t limit)
{
    int v = unit_end(layout, from, to);

    while (v < to && run_elems(layout, from, unit_end(layout, v, to)) <= limit)
        v = unit_end(layout, v, to);
    return v;
}

/* The first view of the longest run of units that ends before view [to], does
 * not begin before view [from] and has at most [limit] elements. The run has at
 * least one unit. */
static int run_begin(const ddp_layout_t *layout, int from, int to, size_t limit)
{
    int v = unit_begin(layout, to, from);

    while (v > from &&
           run_elems(layout, unit_begin(layout, v, from), to) <= limit)
        v = unit_begin(layout, v, from);
    return v;
}

/* Fill in the bucket of views [from, to). A bucket ends where the next one
 * begins; the last bucket ends at the end of the arena. */
static void bucket_fill(ddp_bucket_t *bucket, const ddp_layout_t *layout,
                        int from, int to)
{
    size_t end =
        to < layout->view_count ? layout->views[to].offset : layout->grad_elems;

    bucket->first_view = from;
    bucket->view_count = to - from;
    bucket->offset = layout->views[from].offset;
    bucket->count = end - bucket->offset;
}

/* Make the small buckets at the end of the arena, from its end back to view
 * [from] at most. They are stored at the end of [buckets]; *first is set to the
 * index of the first of them. Returns its first view. */
static int ends_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                    int from, ddp_bucket_t *buckets, int *first)
{
    double limit = config->last_bucket_mb;
    int v = layout->view_count, at = v;

    do {
        int begin = run_begin(layout, from, v, mib_elems(limit));

        bucket_fill(&buckets[--at], layout, begin, v);
        v = begin;
        limit *= 2;
    } while (v > from && limit < config->bucket_cap_mb);
    *first = at;
    return v;
}

/* Check that every view and every element of the arena is in exactly one
 * bucket. */
static void buckets_check(const ddp_layout_t *layout,
                          const ddp_bucket_t *buckets, int count)
{
    int view = 0;
    size_t at = layout->views[0].offset;

    for (int i = 0; i < count; i++) {
        check(buckets[i].first_view == view && buckets[i].view_count > 0,
              "bucket %d has %d views from %d on, expected from %d", i,
              buckets[i].view_count, buckets[i].first_view, view);
        check(buckets[i].offset == at && buckets[i].count > 0,
              "bucket %d has %zu elements from %zu on, expected from %zu", i,
              buckets[i].count, buckets[i].offset, at);
        view += buckets[i].view_count;
        at += buckets[i].count;
    }
    check(view == layout->view_count, "%d of %d views are in buckets", view,
          layout->view_count);
    check(at == layout->grad_elems, "buckets end at element %zu of %zu", at,
          layout->grad_elems);
}

int ddp_bucket_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                   ddp_bucket_t *buckets)
{
    int views = layout->view_count;
    int count = 0, ends = views;
    int v = 0;
    int tail;

    if (views == 0)
        return 0;
    v = run_end(layout, 0, views, mib_elems(config->first_bucket_mb));
    bucket_fill(&buckets[count++], layout, 0, v);
    if (v == views) {
        buckets_check(layout, buckets, count);
        return count;
    }
    tail = ends_cut(config, layout, v, buckets, &ends);
    while (v < tail) {
        int end = run_end(layout, v, tail, mib_elems(config->bucket_cap_mb));

        bucket_fill(&buckets[count++], layout, v, end);
        v = end;
    }
    memmove(buckets + count, buckets + ends,
            (size_t)(views - ends) * sizeof *buckets);
    count += views - ends;
    buckets_check(layout, buckets, count);
    return count;
}

void ddp_bucket_trace(trace_t *trace, int index, const char *what, double begin)
{
    const double now = trace_begin(trace);

    if (now >= 0)
        trace_add(trace, &(trace_span_t){.begin = begin,
                                         .end = now,
                                         .name = "bucket",
                                         .what = what,
                                         .number = index + 1,
                                         .track = 1 + index});
}
