/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reducer on the test device, in both of its orders: gradients that the
 * device writes late have the sums, bit by bit, that they have on the host.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "comm/far_ranks.h"
#include "conf/conf.h"
#include "ddp/ddp.h"
#include "ddp/hook_turns.h"
#include "dev/dev_far.h"
#include "lib/ranks.h"

/* Three buckets, of which one has several segments. */
#define VIEWS 6
#define STRIDE ((size_t)120000)
#define SIZE (STRIDE - 3)
#define ROWS 9 /* of each view, as a matrix */
#define ELEMS (VIEWS * STRIDE)
#define TAIL 5
#define UNIT 4096
#define STEPS 3

static const ddp_config_t plain = {
    .first_bucket_mb = 0.5, .bucket_cap_mb = 1.8, .last_bucket_mb = 0.5};

typedef struct plan {
    far_plan_t far;
    const char *hook; /* ddp.hook; NULL: none */
    int skipper;      /* rank without samples; -1: none */
    bool backwards;   /* odd ranks report views in reverse order */
    bool shards;      /* ZeRO-1 */
    bool local;       /* odd steps are local */
    bool apart;       /* the gradients are written on a stream of their own */
    atomic_int wrong; /* steps whose sums have other bits than on the host */
} plan_t;

/* A rank's two reducers. */
typedef struct rig {
    far_rank_t far;
    ddp_view_t views[VIEWS];
    ddp_shards_t *shards;
    tree_t *hook;
    ddp_t *host, *device;
    dev_stream_t *apart;
    float *grads, *back; /* [ELEMS]: what the device copies, on the host */
    double tail[TAIL], tail_back[TAIL];
} rig_t;

static int rig_open(rig_t *rig, const plan_t *plan, const comm_oob_t *oob)
{
    ddp_layout_t layout = {.views = rig->views,
                           .view_count = VIEWS,
                           .grad_elems = ELEMS,
                           .tail_doubles = TAIL};
    ddp_config_t config = plain;
    err_t err = ERR_INIT;

    *rig = (rig_t){.grads = calloc(ELEMS, sizeof(float)),
                   .back = calloc(ELEMS, sizeof(float))};
    for (size_t v = 0; v < VIEWS; v++)
        rig->views[v] = (ddp_view_t){.name = "w",
                                     .offset = v * STRIDE,
                                     .count = SIZE,
                                     .ndim = 2,
                                     .rows = ROWS};
    if (plan->hook != NULL)
        RANKS_OK(conf_parse("hook", plan->hook, &rig->hook, &err), err);
    config.hook = rig->hook;
    RANKS_OK(far_rank_open(&rig->far, &plan->far, oob, &err), err);
    RANKS_OK(far_rank_join(&rig->far, &plan->far, &err), err);
    RANKS_OK(
        dev_stream_open(rig->far.dev, DEV_STREAM_COMPUTE, &rig->apart, &err),
        err);
    if (plan->shards)
        RANKS_OK(ddp_shards_open(&config, &layout, oob->size, UNIT,
                                 &rig->shards, &err),
                 err);
    layout.shards = rig->shards;
    config.hooks = hook_turns_host;
    RANKS_OK(ddp_open(&config, rig->far.control, rig->far.control, &layout,
                      &rig->host, &err),
             err);
    config.hooks = hook_turns_device;
    RANKS_OK(ddp_open(&config, rig->far.control, rig->far.group, &layout,
                      &rig->device, &err),
             err);
    RANKS_CHECK(ddp_buckets(rig->device) >= 3);
    return 0;
}

static void rig_close(rig_t *rig)
{
    ddp_close(rig->device);
    ddp_close(rig->host);
    ddp_shards_close(rig->shards);
    tree_free(rig->hook);
    dev_stream_close(rig->apart);
    far_rank_close(&rig->far);
    free(rig->back);
    free(rig->grads);
}

static float value(int rank, int step, size_t i)
{
    return 0.37f * (float)(rank + 1) + 0.001f * (float)(i % 977) +
           0.013f * (float)step;
}

/* ---- steps --------------------------------------------------------------- */

/* Write gradients of [view], or with -1 the tail: on the host, or by a copy
 * that [stream] makes late. */
static err_code_t part_write(rig_t *rig, ddp_t *ddp, int view,
                             dev_stream_t *stream, err_t *err)
{
    const size_t at = view < 0 ? 0 : (size_t)view * STRIDE;
    const size_t bytes = view < 0 ? sizeof rig->tail : SIZE * sizeof(float);
    const void *from = view < 0 ? (void *)rig->tail : rig->grads + at;
    void *to = view < 0 ? (void *)ddp_tail(ddp) : ddp_grads(ddp) + at;

    if (stream != NULL)
        return dev_copy(stream, to, from, bytes, DEV_HOST_TO_DEV, err);
    memcpy(to, from, bytes);
    return ERR_OK;
}

/* A step of [ddp]; [stream] NULL: of the reducer on the host. */
static err_code_t step_run(rig_t *rig, ddp_t *ddp, const plan_t *plan,
                           bool local, err_t *err)
{
    const bool device = ddp == rig->device;
    const bool reverse = plan->backwards && rig->far.rank % 2 == 1;
    dev_stream_t *stream = device ? rig->far.stream : NULL;
    dev_stream_t *writes = device && plan->apart ? rig->apart : stream;
    err_code_t rc, waited;

    ddp_step_begin(ddp, stream);
    if (local)
        ddp_step_local(ddp);
    rc = part_write(rig, ddp, -1, writes, err);
    for (int i = 0; rc == ERR_OK && i < VIEWS; i++) {
        const int view = reverse ? VIEWS - 1 - i : i;

        if (rig->far.rank == plan->skipper)
            continue;
        rc = part_write(rig, ddp, view, writes, err);
        if (rc == ERR_OK)
            rc = ddp_grad_ready(ddp, view, err);
    }
    if (rc == ERR_OK)
        rc = ddp_step_skip(ddp, err);
    waited = ddp_step_wait_on(ddp, stream, rc == ERR_OK ? err : NULL);
    return rc == ERR_OK ? waited : rc;
}

/* Copy gradients and tail back, on the step's stream. */
static err_code_t sums_fetch(rig_t *rig, err_t *err)
{
    err_code_t rc =
        dev_copy(rig->far.stream, rig->tail_back, ddp_tail(rig->device),
                 sizeof rig->tail, DEV_DEV_TO_HOST, err);

    return rc == ERR_OK
               ? far_rank_get(&rig->far, rig->back, ddp_grads(rig->device),
                              ELEMS * sizeof(float), err)
               : rc;
}

/* With shards, this rank's ranges are compared. */
static bool sums_same(const rig_t *rig)
{
    const float *host = ddp_grads(rig->host);
    bool same =
        memcmp(ddp_tail(rig->host), rig->tail_back, sizeof rig->tail) == 0;

    if (rig->shards == NULL)
        return same && memcmp(host, rig->back, ELEMS * sizeof *host) == 0;
    for (int b = 0; b < ddp_shards_buckets(rig->shards); b++) {
        const view_range_t own =
            ddp_shards_range(rig->shards, b, rig->far.rank);

        same = same && memcmp(host + own.first, rig->back + own.first,
                              own.count * sizeof *host) == 0;
    }
    return same;
}

/* Share the arena of the gradients, on the host and on the device. */
static int shares_check(rig_t *rig)
{
    err_t err = ERR_INIT;

    for (int b = 0; b < ddp_buckets(rig->host); b++) {
        RANKS_OK(ddp_share(rig->host, b, ddp_grads(rig->host), NULL, &err),
                 err);
        RANKS_OK(ddp_share(rig->device, b, ddp_grads(rig->device),
                           rig->far.stream, &err),
                 err);
    }
    RANKS_OK(ddp_share_wait(rig->host, &err), err);
    RANKS_OK(ddp_share_wait_on(rig->device, rig->far.stream, &err), err);
    RANKS_OK(sums_fetch(rig, &err), err);
    RANKS_CHECK(
        memcmp(ddp_grads(rig->host), rig->back, ELEMS * sizeof(float)) == 0);
    return 0;
}

static int parts_differ(const rig_t *rig)
{
    ddp_hook_part_t host[DDP_HOOK_PARTS], device[DDP_HOOK_PARTS];
    const int count = ddp_hook_parts(rig->host, host);

    RANKS_CHECK(ddp_hook_parts(rig->device, device) == count);
    for (int p = 0; p < count; p++)
        RANKS_CHECK(device[p].count == host[p].count &&
                    memcmp(device[p].data, host[p].data,
                           host[p].count * sizeof(float)) == 0);
    return 0;
}

static void values_draw(rig_t *rig, int step)
{
    for (size_t i = 0; i < ELEMS; i++)
        rig->grads[i] = i % STRIDE < SIZE ? value(rig->far.rank, step, i) : 0;
    for (int t = 0; t < TAIL; t++)
        rig->tail[t] = 0.1 * rig->far.rank + t + step;
}

static int steps_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    dev_far_counts_t before;
    err_t err = ERR_INIT;
    rig_t rig;

    if (rig_open(&rig, plan, oob))
        return 1;
    before = dev_far_counts(rig.far.dev);
    for (int step = 0; step < STEPS; step++) {
        const bool local = plan->local && step % 2 == 1;

        values_draw(&rig, step);
        RANKS_OK(step_run(&rig, rig.host, plan, local, &err), err);
        RANKS_OK(step_run(&rig, rig.device, plan, local, &err), err);
        RANKS_OK(sums_fetch(&rig, &err), err);
        RANKS_OK(dev_stream_wait(rig.apart, &err), err);
        atomic_fetch_add(&plan->wrong, !sums_same(&rig));
        if ((plan->shards && shares_check(&rig)) || parts_differ(&rig))
            return 1;
    }
    RANKS_CHECK(dev_far_counts(rig.far.dev).allocs == before.allocs);
    rig_close(&rig);
    return 0;
}

static int steps_wrong(int ranks, plan_t plan)
{
    if (plan.far.backend == NULL)
        plan.far.backend = ranks == 1 ? "self" : "threads";
    plan.far.timeout = 60;
    cr_assert_eq(ranks_threads(ranks, steps_main, &plan), 0);
    return atomic_load(&plan.wrong);
}

Test(ddp_far, sums_have_the_bits_of_the_host, .timeout = 300)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (int n = 1; n <= 4; n++)
            cr_expect_eq(steps_wrong(n, (plan_t){.far.order = order,
                                                 .skipper = -1,
                                                 .backwards = n == 3}),
                         0, "order %d, %d ranks", order, n);
}

Test(ddp_far, a_rank_without_samples_joins_with_zeros, .timeout = 120)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        cr_expect_eq(steps_wrong(3, (plan_t){.far.order = order, .skipper = 1}),
                     0);
}

Test(ddp_far, gradients_of_local_steps_stay, .timeout = 120)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        cr_expect_eq(
            steps_wrong(
                3, (plan_t){.far.order = order, .skipper = 2, .local = true}),
            0);
}

Test(ddp_far, shards_have_the_bits_of_the_host, .timeout = 300)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (int n = 1; n <= 4; n++)
            cr_expect_eq(steps_wrong(n, (plan_t){.far.order = order,
                                                 .skipper = -1,
                                                 .shards = true}),
                         0, "order %d, %d ranks", order, n);
}

/* The hook works on the host, so its residuals have the same bits, too. */
Test(ddp_far, hooks_have_the_bits_of_the_host, .timeout = 300)
{
    static const char *const hooks[] = {"fp16: {}", "bf16: {}",
                                        "powersgd: {rank: 2, start_step: 1}"};

    for (size_t h = 0; h < sizeof hooks / sizeof *hooks; h++)
        for (int order = 0; order < DEV_FAR_ORDERS; order++)
            cr_expect_eq(steps_wrong(1 + 2 * order,
                                     (plan_t){.far.order = order,
                                              .hook = hooks[h],
                                              .skipper = order == 0 ? -1 : 1,
                                              .backwards = order == 1}),
                         0, "%s, order %d", hooks[h], order);
}

/* The hook works on the device. Each turn of the hook needs the results of what
 * the turn before has enqueued. */
Test(ddp_far, a_hook_for_the_device_has_the_bits_of_the_host, .timeout = 300)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (int n = 1 + order; n <= 4; n += 2)
            cr_expect_eq(steps_wrong(n, (plan_t){.far.order = order,
                                                 .hook = "turns: {}",
                                                 .skipper = n == 3 ? 1 : -1,
                                                 .backwards = n == 2}),
                         0, "order %d, %d ranks", order, n);
}

/* What is written on another stream than the step's has no event. */
Test(ddp_far, a_missing_event_shows, .timeout = 120)
{
    cr_expect_gt(steps_wrong(2, (plan_t){.far.order = DEV_FAR_NEEDED_ONLY,
                                         .skipper = -1,
                                         .apart = true}),
                 0);
}

/* ---- errors -------------------------------------------------------------- */

typedef struct failing {
    plan_t plan;
    int64_t call;          /* of rank 1, which fails */
    bool over;             /* rank 1 made fewer calls */
    err_t ends[RANKS_MAX]; /* how each rank ended */
} failing_t;

static int failing_main(const comm_oob_t *oob, void *argument)
{
    failing_t *failing = argument;
    err_t *end = &failing->ends[oob->rank];
    int64_t calls;
    rig_t rig;

    if (rig_open(&rig, &failing->plan, oob))
        return 1;
    *end = (err_t)ERR_INIT;
    values_draw(&rig, 0);
    calls = dev_far_counts(rig.far.dev).calls;
    if (oob->rank == 1)
        dev_far_fail(rig.far.dev, failing->call);
    if (step_run(&rig, rig.device, &failing->plan, false, end) == ERR_OK)
        (void)sums_fetch(&rig, end);
    /* Calls of the rank's own, of which the reducer does not know. */
    if (end->code == ERR_UNAVAILABLE)
        comm_group_fail(rig.far.group, end);
    /* The hook's collectives are those of the control group. */
    if (rig.hook != NULL &&
        (end->code == ERR_UNAVAILABLE || end->culprit == oob->rank))
        comm_group_fail(rig.far.control, end);
    /* A rank that has its sums learns here that another rank has failed. If a
     * hook has failed, only the control group has this fault. */
    (void)comm_barrier(rig.far.control, end->code == ERR_OK ? end : NULL);
    if (end->code == ERR_OK)
        (void)comm_group_check(rig.far.group, end);
    if (oob->rank == 1)
        failing->over =
            dev_far_counts(rig.far.dev).calls - calls < failing->call;
    (void)dev_stream_wait(rig.far.stream, NULL);
    (void)dev_stream_wait(rig.far.stream, NULL);
    rig_close(&rig);
    return 0;
}

static void ends_check(const failing_t *failing)
{
    const bool well = failing->ends[1].code == ERR_OK;

    for (int r = 0; r < 3; r++) {
        const err_t *end = &failing->ends[r];

        cr_assert_eq(end->code == ERR_OK, well, "call %lld: rank %d: %s",
                     (long long)failing->call, r, end->text);
        cr_assert(well || strstr(end->text, "far: dev_"), "%s", end->text);
        cr_assert(well || r == 1 || end->culprit == 1, "%s", end->text);
    }
}

/* In each run one call of the device fails: call number [each] in the first
 * run, then 2 * [each], and so on. More than [least] runs must fail. */
static void calls_fail(const char *hook, int each, int least)
{
    failing_t *failing = calloc(1, sizeof *failing);
    int failures = 0;

    failing->plan = (plan_t){.far = {"threads", DEV_FAR_NEEDED_ONLY, 60},
                             .hook = hook,
                             .skipper = -1};
    while (!failing->over) {
        failing->call += each;
        cr_assert_eq(ranks_threads(3, failing_main, failing), 0);
        ends_check(failing);
        failures += failing->ends[0].code != ERR_OK;
    }
    cr_assert_gt(failures, least);
    free(failing);
}

Test(ddp_far, every_call_that_fails_ends_all_ranks, .timeout = 300)
{
    calls_fail(NULL, 1, 30);
}

Test(ddp_far, a_call_that_fails_with_a_hook_of_the_host_ends_all_ranks,
     .timeout = 300)
{
    calls_fail("fp16: {}", 1, 20);
}

Test(ddp_far, a_call_that_fails_with_a_hook_of_the_device_ends_all_ranks,
     .timeout = 300)
{
    calls_fail("turns: {}", 7, 15);
}
