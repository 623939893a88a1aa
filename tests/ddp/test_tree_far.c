/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The reducer of the reproducible mode on the test device, in both of its
 * orders. Each thread writes its leaves late, on a stream of its own. The sums
 * have the bits that they have on the host.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/rng.h"
#include "comm/far_ranks.h"
#include "ddp/tree.h"
#include "dev/dev_far.h"
#include "lib/ranks.h"

#define ELEMS 1003
#define TAIL 4
#define LEAVES 31
#define THREADS 3
#define STEPS 2

static const ddp_config_t config = {
    .first_bucket_mb = 1, .bucket_cap_mb = 25, .last_bucket_mb = 1};

typedef struct plan {
    far_plan_t far;
    int64_t leaves;
    int threads;
    bool apart; /* leaves are written on a stream of which the tree knows not */
    bool fails; /* the last rank has no sums of its leaves */
    atomic_int wrong;
} plan_t;

/* The numbers of all leaves, from which the device copies late. */
typedef struct numbers {
    float grads[LEAVES][ELEMS];
    double tail[LEAVES][TAIL];
} numbers_t;

typedef struct rig {
    far_rank_t far;
    ddp_t *ddp;
    ddp_tree_t *tree;
    crew_t *crew;
    numbers_t *numbers;
    dev_stream_t *streams[THREADS]; /* NULL: on the host */
    dev_stream_t *apart;            /* NULL: not used */
    atomic_int errors;
} rig_t;

static void numbers_draw(numbers_t *numbers, int64_t leaves)
{
    for (int64_t k = 0; k < leaves; k++) {
        rng_t rng;

        rng_open(&rng, 5, RNG_INIT, (uint64_t)k, 0);
        for (int i = 0; i < ELEMS; i++)
            numbers->grads[k][i] = (float)rng_normal(&rng);
        for (int i = 0; i < TAIL; i++)
            numbers->tail[k][i] = rng_normal(&rng);
    }
}

static err_code_t leaf_write(const rig_t *rig, const ddp_tree_leaf_t *leaf)
{
    const int64_t k = leaf->leaf.number;
    dev_stream_t *stream = rig->apart != NULL ? rig->apart : leaf->stream;
    err_code_t rc;

    if (stream == NULL) {
        memcpy(leaf->grads, rig->numbers->grads[k], sizeof(float[ELEMS]));
        memcpy(leaf->tail, rig->numbers->tail[k], sizeof(double[TAIL]));
        return ERR_OK;
    }
    rc = dev_copy(stream, leaf->grads, rig->numbers->grads[k],
                  sizeof(float[ELEMS]), DEV_HOST_TO_DEV, NULL);
    return rc == ERR_OK ? dev_copy(stream, leaf->tail, rig->numbers->tail[k],
                                   sizeof(double[TAIL]), DEV_HOST_TO_DEV, NULL)
                        : rc;
}

static void leaves_do(void *context, int member)
{
    rig_t *rig = context;
    dev_stream_t *stream = rig->streams[member];
    ddp_tree_leaf_t leaf;
    err_code_t rc = ddp_tree_claim(rig->tree, stream, &leaf, NULL);

    while (rc == ERR_OK && leaf.grads != NULL) {
        rc = leaf_write(rig, &leaf);
        if (rc == ERR_OK)
            rc = ddp_tree_fold(rig->tree, &leaf, NULL);
        if (rc == ERR_OK)
            rc = ddp_tree_claim(rig->tree, stream, &leaf, NULL);
    }
    if (rc != ERR_OK)
        atomic_fetch_add(&rig->errors, 1);
}

/* Open a reducer over [group], with [backend] for its sums. */
static int rig_open(rig_t *rig, const plan_t *plan, comm_group_t *group,
                    const char *backend)
{
    const ddp_view_t view = {.name = "w", .count = ELEMS};
    const ddp_layout_t layout = {.views = &view,
                                 .view_count = 1,
                                 .grad_elems = ELEMS,
                                 .tail_doubles = TAIL};
    const op_backend_ops_t *ops = NULL;
    err_t err = ERR_INIT;

    rig->numbers = calloc(1, sizeof *rig->numbers);
    numbers_draw(rig->numbers, plan->leaves);
    RANKS_OK(op_backend_get(backend, &ops, &err), err);
    RANKS_OK(
        ddp_open(&config, rig->far.control, group, &layout, &rig->ddp, &err),
        err);
    RANKS_OK(ddp_tree_open(
                 rig->ddp, ops,
                 ddp_fold_slots(0, plan->leaves, plan->leaves, plan->threads),
                 &rig->tree, &err),
             err);
    RANKS_OK(crew_open(plan->threads, "leaves", &rig->crew, &err), err);
    return 0;
}

static void rig_close(rig_t *rig)
{
    crew_close(rig->crew);
    ddp_tree_close(rig->tree);
    ddp_close(rig->ddp);
    for (int t = 0; t < THREADS; t++)
        dev_stream_close(rig->streams[t]);
    dev_stream_close(rig->apart);
    free(rig->numbers);
}

static comm_leaves_t share_of(const rig_t *rig, const plan_t *plan)
{
    const int rank = rig->far.rank, size = rig->far.size;
    const int64_t first = plan->leaves * rank / size;

    return (comm_leaves_t){.first = first,
                           .held = plan->leaves * (rank + 1) / size - first,
                           .leaves = plan->leaves};
}

/* The last rank has no sums: on the device it calls ddp_tree_fail, on the host
 * its numbers are zeros. After the tree, the first number of the tail is summed
 * over ranks once more. */
static int step_fail(rig_t *rig, const comm_leaves_t *mine)
{
    const bool last = rig->far.rank == rig->far.size - 1;
    const bool device = rig->streams[0] != NULL;
    const size_t first = (size_t)mine->first, held = (size_t)mine->held;
    err_t err = ERR_INIT;

    if (last && device) {
        ddp_tree_fail(rig->tree);
    } else {
        if (last) {
            memset(rig->numbers->grads[first], 0, held * sizeof(float[ELEMS]));
            memset(rig->numbers->tail[first], 0, held * sizeof(double[TAIL]));
        }
        crew_run(rig->crew, leaves_do, rig);
    }
    RANKS_OK(ddp_tree_reduce(rig->tree, rig->streams[0], &err), err);
    if (device)
        RANKS_OK(ddp_tree_sum(rig->tree, 1, rig->streams[0], &err), err);
    else
        RANKS_OK(comm_allreduce(rig->far.control, ddp_tail(rig->ddp), 1,
                                COMM_FLOAT64, COMM_SUM, &err),
                 err);
    return 0;
}

static int step_run(rig_t *rig, const plan_t *plan)
{
    const comm_leaves_t mine = share_of(rig, plan);
    err_t err = ERR_INIT;

    ddp_tree_begin(rig->tree, &mine);
    if (plan->fails)
        return step_fail(rig, &mine);
    crew_run(rig->crew, leaves_do, rig);
    RANKS_CHECK(atomic_load(&rig->errors) == 0);
    RANKS_OK(ddp_tree_reduce(rig->tree, rig->streams[0], &err), err);
    return 0;
}

/* The same step on the host and on the device. */
static int step_compare(rig_t *host, rig_t *device, plan_t *plan)
{
    float grads[ELEMS];
    double tail[TAIL];
    dev_stream_t *stream = device->streams[0];
    err_t err = ERR_INIT;

    if (step_run(host, plan) || step_run(device, plan))
        return 1;
    RANKS_OK(dev_copy(stream, grads, ddp_grads(device->ddp), sizeof grads,
                      DEV_DEV_TO_HOST, &err),
             err);
    RANKS_OK(dev_copy(stream, tail, ddp_tail(device->ddp), sizeof tail,
                      DEV_DEV_TO_HOST, &err),
             err);
    for (int t = 0; t < THREADS; t++)
        RANKS_OK(dev_stream_wait(device->streams[t], &err), err);
    if (device->apart != NULL)
        RANKS_OK(dev_stream_wait(device->apart, &err), err);
    if (memcmp(grads, ddp_grads(host->ddp), sizeof grads) != 0 ||
        memcmp(tail, ddp_tail(host->ddp), sizeof tail) != 0)
        atomic_fetch_add(&plan->wrong, 1);
    return 0;
}

static int tree_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    rig_t device = {0}, host = {0};
    err_t err = ERR_INIT;

    RANKS_OK(far_rank_open(&device.far, &plan->far, oob, &err), err);
    RANKS_OK(far_rank_join(&device.far, &plan->far, &err), err);
    host.far = device.far;
    for (int t = 0; t < THREADS; t++)
        RANKS_OK(dev_stream_open(device.far.dev, DEV_STREAM_COMPUTE,
                                 &device.streams[t], &err),
                 err);
    if (plan->apart)
        RANKS_OK(dev_stream_open(device.far.dev, DEV_STREAM_COMPUTE,
                                 &device.apart, &err),
                 err);
    if (rig_open(&host, plan, host.far.control, "cpu") ||
        rig_open(&device, plan, device.far.group, "far"))
        return 1;
    for (int step = 0; step < STEPS; step++)
        if (step_compare(&host, &device, plan))
            return 1;
    rig_close(&device);
    rig_close(&host);
    far_rank_close(&device.far);
    return 0;
}

static int tree_wrong(int ranks, plan_t plan)
{
    plan.far.backend = ranks == 1 ? "self" : "threads";
    plan.far.timeout = 60;
    cr_assert_eq(ranks_threads(ranks, tree_main, &plan), 0);
    return atomic_load(&plan.wrong);
}

Test(tree_far, sums_have_the_bits_of_the_host, .timeout = 300)
{
    static const int64_t leaves[] = {1, 2, 5, 13, LEAVES};

    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
            for (int n = 1; n <= 4; n++)
                for (int t = 1; t <= THREADS; t += 2)
                    cr_expect_eq(tree_wrong(n, (plan_t){.far.order = order,
                                                        .leaves = leaves[i],
                                                        .threads = t}),
                                 0, "order %d, %lld leaves, %d ranks", order,
                                 (long long)leaves[i], n);
}

Test(tree_far, a_rank_without_sums_takes_part, .timeout = 120)
{
    for (int order = 0; order < DEV_FAR_ORDERS; order++)
        for (int n = 2; n <= 4; n++)
            cr_expect_eq(tree_wrong(n, (plan_t){.far.order = order,
                                                .leaves = 13,
                                                .threads = 1,
                                                .fails = true}),
                         0, "order %d, %d ranks", order, n);
}

Test(tree_far, a_missing_event_shows, .timeout = 120)
{
    cr_expect_gt(tree_wrong(2, (plan_t){.far.order = DEV_FAR_NEEDED_ONLY,
                                        .leaves = 13,
                                        .threads = 1,
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

/* A step as train makes it: only if the leaves of all ranks are well, the ranks
 * enter the tree. */
static void step_try(rig_t *rig, const plan_t *plan, err_t *end)
{
    const comm_leaves_t mine = share_of(rig, plan);
    double failed;

    ddp_tree_begin(rig->tree, &mine);
    crew_run(rig->crew, leaves_do, rig);
    failed = atomic_load(&rig->errors);
    if (comm_allreduce(rig->far.control, &failed, 1, COMM_FLOAT64, COMM_SUM,
                       end) != ERR_OK)
        return;
    if (failed > 0)
        err_set(end, ERR_UNAVAILABLE, "a leaf failed");
    else
        (void)ddp_tree_reduce(rig->tree, rig->streams[0], end);
    (void)comm_barrier(rig->far.control, NULL);
    if (end->code == ERR_OK)
        (void)comm_group_check(rig->far.group, end);
}

static int failing_main(const comm_oob_t *oob, void *argument)
{
    failing_t *failing = argument;
    err_t *end = &failing->ends[oob->rank];
    rig_t rig = {0};
    int64_t calls;
    err_t err = ERR_INIT;

    RANKS_OK(far_rank_open(&rig.far, &failing->plan.far, oob, &err), err);
    RANKS_OK(far_rank_join(&rig.far, &failing->plan.far, &err), err);
    for (int t = 0; t < THREADS; t++)
        RANKS_OK(dev_stream_open(rig.far.dev, DEV_STREAM_COMPUTE,
                                 &rig.streams[t], &err),
                 err);
    if (rig_open(&rig, &failing->plan, rig.far.group, "far"))
        return 1;
    *end = (err_t)ERR_INIT;
    calls = dev_far_counts(rig.far.dev).calls;
    if (oob->rank == 1)
        dev_far_fail(rig.far.dev, failing->call);
    step_try(&rig, &failing->plan, end);
    if (oob->rank == 1)
        failing->over =
            dev_far_counts(rig.far.dev).calls - calls < failing->call;
    for (int i = 0; i < 2 * THREADS; i++)
        (void)dev_stream_wait(rig.streams[i % THREADS], NULL);
    rig_close(&rig);
    far_rank_close(&rig.far);
    return 0;
}

Test(tree_far, every_call_that_fails_ends_all_ranks, .timeout = 300)
{
    failing_t *failing = calloc(1, sizeof *failing);
    int failures = 0;

    failing->plan = (plan_t){.far = {"threads", DEV_FAR_NEEDED_ONLY, 60},
                             .leaves = 13,
                             .threads = 2};
    while (!failing->over) {
        failing->call++;
        cr_assert_eq(ranks_threads(3, failing_main, failing), 0);
        for (int r = 0; r < 3; r++)
            cr_assert_eq(failing->ends[r].code == ERR_OK,
                         failing->ends[1].code == ERR_OK,
                         "call %lld: rank %d: %s", (long long)failing->call, r,
                         failing->ends[r].text);
        failures += failing->ends[0].code != ERR_OK;
    }
    cr_assert_gt(failures, 30);
    free(failing);
}
