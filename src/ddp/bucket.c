/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/bucket.h"

static size_t mib_elems(double mib)
{
    return (size_t)(mib * 1048576.0 / sizeof(float));
}

/* End of the run of views from [from] (exclusive bound [to]) that fits in
 * [limit] elements; at least one view. */
static int run_end(const ddp_layout_t *layout, int from, int to, size_t limit)
{
    size_t start = layout->views[from].offset;
    int v = from + 1;

    while (v < to &&
           layout->views[v].offset + layout->views[v].count - start <= limit)
        v++;
    return v;
}

/* First view of the run that ends the arena and fits in [limit] elements, not
 * before [from]; at least one view. */
static int last_run_begin(const ddp_layout_t *layout, int from, size_t limit)
{
    const ddp_view_t *last = &layout->views[layout->view_count - 1];
    size_t end = last->offset + last->count;
    int v = layout->view_count - 1;

    while (v > from && end - layout->views[v - 1].offset <= limit)
        v--;
    return v;
}

/* Room up to the next bucket's first view; the last takes the arena's end. */
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

int ddp_bucket_cut(const ddp_config_t *config, const ddp_layout_t *layout,
                   ddp_bucket_t *buckets)
{
    int views = layout->view_count;
    int count = 0;
    int v = 0;
    int tail;

    if (views == 0)
        return 0;
    v = run_end(layout, 0, views, mib_elems(config->first_bucket_mb));
    bucket_fill(&buckets[count++], layout, 0, v);
    if (v == views)
        return count;
    tail = last_run_begin(layout, v, mib_elems(config->last_bucket_mb));
    while (v < tail) {
        int end = run_end(layout, v, tail, mib_elems(config->bucket_cap_mb));

        bucket_fill(&buckets[count++], layout, v, end);
        v = end;
    }
    bucket_fill(&buckets[count++], layout, tail, views);
    return count;
}
