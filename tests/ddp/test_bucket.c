/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "ddp/bucket.h"

#include <criterion/criterion.h>

#define VIEWS 64

static ddp_view_t views[VIEWS];

/* A layout of [count] views of sizes[i] elements, each beginning at a multiple
 * of 16 elements. */
static ddp_layout_t layout_of(const size_t *sizes, int count)
{
    size_t at = 0;

    for (int v = 0; v < count; v++) {
        views[v] = (ddp_view_t){.name = "p", .offset = at, .count = sizes[v]};
        at += (sizes[v] + 15) / 16 * 16;
    }
    return (ddp_layout_t){
        .views = views, .view_count = count, .grad_elems = at};
}

static ddp_config_t limits(double first, double cap, double last)
{
    return (ddp_config_t){
        .first_bucket_mb = first, .bucket_cap_mb = cap, .last_bucket_mb = last};
}

/* Check that buckets cover the arena without gaps or overlaps, and every view
 * once. */
static void check_cover(const ddp_layout_t *layout, const ddp_bucket_t *buckets,
                        int count)
{
    size_t at = 0;
    int view = 0;

    for (int b = 0; b < count; b++) {
        cr_assert_eq(buckets[b].offset, at);
        cr_assert_eq(buckets[b].first_view, view);
        cr_assert_gt(buckets[b].view_count, 0);
        at += buckets[b].count;
        view += buckets[b].view_count;
    }
    cr_assert_eq(at, layout->grad_elems);
    cr_assert_eq(view, layout->view_count);
}

Test(bucket, small_models_are_one_bucket)
{
    ddp_layout_t layout = layout_of((size_t[]){10, 200, 30}, 3);
    ddp_config_t config = limits(1, 25, 1);
    ddp_bucket_t buckets[VIEWS];

    cr_assert_eq(ddp_bucket_cut(&config, &layout, buckets), 1);
    check_cover(&layout, buckets, 1);
}

Test(bucket, first_and_last_keep_their_own_limits)
{
    size_t sizes[20];
    ddp_layout_t layout;
    ddp_config_t config = limits(0.25, 1, 0.5);
    ddp_bucket_t buckets[VIEWS];
    int count;

    for (int v = 0; v < 20; v++)
        sizes[v] = 65536; /* 1/4 MiB */
    layout = layout_of(sizes, 20);
    count = ddp_bucket_cut(&config, &layout, buckets);
    check_cover(&layout, buckets, count);
    cr_assert_eq(buckets[0].view_count, 1);
    cr_assert_eq(buckets[count - 1].view_count, 2);
    for (int b = 1; b < count - 1; b++)
        cr_assert_leq(buckets[b].view_count, 4);
    /* 17 views in between, at most four per bucket */
    cr_assert_eq(count, 1 + 5 + 1);
}

Test(bucket, a_parameter_larger_than_the_limit_is_alone)
{
    ddp_layout_t layout =
        layout_of((size_t[]){16, 16, 9000000, 16, 9000000}, 5);
    ddp_config_t config = limits(1, 25, 1);
    ddp_bucket_t buckets[VIEWS];
    int count = ddp_bucket_cut(&config, &layout, buckets);

    check_cover(&layout, buckets, count);
    cr_assert_eq(count, 4);
    cr_assert_eq(buckets[1].view_count, 1);
    cr_assert_eq(buckets[3].view_count, 1);
}

/* Little is still to be sent when backward ends: a bucket is at most twice as
 * large as the next one, up to the cap. */
Test(bucket, sizes_fall_towards_the_end)
{
    size_t sizes[40];
    ddp_layout_t layout;
    ddp_config_t config = limits(1, 4, 0.5);
    ddp_bucket_t buckets[VIEWS];
    int count;

    for (int v = 0; v < 40; v++)
        sizes[v] = 65536; /* 1/4 MiB */
    layout = layout_of(sizes, 40);
    count = ddp_bucket_cut(&config, &layout, buckets);
    check_cover(&layout, buckets, count);
    cr_assert_eq(count, 1 + 2 + 3);
    cr_assert_eq(buckets[count - 1].view_count, 2);
    cr_assert_eq(buckets[count - 2].view_count, 4);
    cr_assert_eq(buckets[count - 3].view_count, 8);
    cr_assert_eq(buckets[count - 4].view_count, 6);
    cr_assert_eq(buckets[1].view_count, 16);
}

/* A bias in the bucket of another layer's weight would delay that bucket. */
Test(bucket, no_layer_is_cut_apart)
{
    size_t sizes[20];
    ddp_layout_t layout;
    ddp_config_t config = limits(1, 2, 1);
    ddp_bucket_t buckets[VIEWS];
    int count;

    for (int v = 0; v < 20; v++)
        sizes[v] = v % 2 == 0 ? 512 : 262144; /* bias: 2 KiB, weight: 1 MiB */
    layout = layout_of(sizes, 20);
    cr_assert_eq(ddp_bucket_cut(&config, &layout, buckets), 11);
    for (int v = 0; v < 20; v++)
        views[v].unit = 1 + v / 2;
    count = ddp_bucket_cut(&config, &layout, buckets);
    check_cover(&layout, buckets, count);
    cr_assert_eq(count, 10);
    for (int b = 0; b < count; b++) {
        cr_assert_eq(buckets[b].view_count, 2);
        cr_assert_eq(buckets[b].first_view, 2 * b);
    }
}
