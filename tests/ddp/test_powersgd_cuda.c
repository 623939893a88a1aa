/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * powersgd on the emulated GPU. Sums and residuals are those of the host, up to
 * rounding. All ranks have the same bits. Every run has the same bits again, in
 * whatever order the GPU executes its streams.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "comm/comm_split.h"
#include "conf/conf.h"
#include "cuda/emu.h"
#include "ddp/hook_fixture.h"
#include "ddp/lowrank.h"
#include "op/op_lowrank.h"

enum { STEPS = 5, RANKS = 3 };

typedef struct gpu_plan {
    hook_plan_t fill; /* how gradients are made */
    const char *hook;
    const view_t *views;           /* [HOOK_VIEWS]; NULL: hook_views */
    float sums[RANKS][HOOK_ELEMS]; /* of the last step, from the GPU */
    float rests[RANKS][HOOK_ELEMS];
} gpu_plan_t;

/* A rank's two reducers. */
typedef struct rig {
    int rank;
    comm_group_t *control, *data;
    dev_device_t *dev;
    dev_stream_t *stream;
    tree_t *tree;
    ddp_t *host, *device;
    float given[HOOK_ELEMS], back[HOOK_ELEMS];
} rig_t;

static int rig_open(rig_t *rig, const gpu_plan_t *plan, const comm_oob_t *oob)
{
    const ddp_layout_t layout = {.views = plan->views == NULL ? hook_views
                                                              : plan->views,
                                 .view_count = HOOK_VIEWS,
                                 .grad_elems = HOOK_ELEMS,
                                 .tail_doubles = 1};
    ddp_config_t config = {.first_bucket_mb = 0.002,
                           .bucket_cap_mb = 0.011,
                           .last_bucket_mb = 0.001};
    comm_config_t comm = {.backend = oob->size == 1 ? "self" : "threads",
                          .timeout = 60};
    err_t err = ERR_INIT;

    rig->rank = oob->rank;
    RANKS_OK(conf_parse("hook", plan->hook, &rig->tree, &err), err);
    config.hook = rig->tree;
    RANKS_OK(comm_group_open(&comm, oob, &rig->control, &err), err);
    RANKS_OK(dev_open("cuda", 0, &rig->dev, &err), err);
    RANKS_OK(dev_stream_open(rig->dev, DEV_STREAM_COMPUTE, &rig->stream, &err),
             err);
    comm.dev = rig->dev;
    RANKS_OK(comm_split_whole(rig->control, &comm, &rig->data, &err), err);
    RANKS_OK(ddp_open(&config, rig->control, rig->control, &layout, &rig->host,
                      &err),
             err);
    RANKS_OK(
        ddp_open(&config, rig->control, rig->data, &layout, &rig->device, &err),
        err);
    RANKS_CHECK(ddp_hook_turns(rig->device) && !ddp_hook_away(rig->device));
    return 0;
}

static void rig_close(rig_t *rig)
{
    ddp_close(rig->device);
    ddp_close(rig->host);
    comm_group_close(rig->data);
    dev_stream_close(rig->stream);
    dev_close(rig->dev);
    comm_group_close(rig->control);
    tree_free(rig->tree);
}

static err_code_t step_run(rig_t *rig, ddp_t *ddp, dev_stream_t *stream,
                           err_t *err)
{
    err_code_t rc = ERR_OK, waited;

    ddp_step_begin(ddp, stream);
    if (stream == NULL)
        memcpy(ddp_grads(ddp), rig->given, sizeof rig->given);
    else
        rc = dev_copy(stream, ddp_grads(ddp), rig->given, sizeof rig->given,
                      DEV_HOST_TO_DEV, err);
    for (int v = 0; rc == ERR_OK && v < HOOK_VIEWS; v++)
        rc = ddp_grad_ready(ddp, v, err);
    waited = ddp_step_wait_on(ddp, stream, rc == ERR_OK ? err : NULL);
    return rc == ERR_OK ? waited : rc;
}

static err_code_t fetch(rig_t *rig, float *to, const float *from, err_t *err)
{
    err_code_t rc = dev_copy(rig->stream, to, from, HOOK_ELEMS * sizeof *to,
                             DEV_DEV_TO_HOST, err);

    return rc == ERR_OK ? dev_stream_wait(rig->stream, err) : rc;
}

/* Is each number of [gpu] equal to that of [host], up to rounding? Gradients
 * are about 1, and a few ranks add them, so sums are somewhat larger. */
static bool near(const float *gpu, const float *host)
{
    for (int i = 0; i < HOOK_ELEMS; i++)
        if (!(fabsf(gpu[i] - host[i]) <= 1e-5f * fmaxf(1, fabsf(host[i]))))
            return false;
    return true;
}

/* The residuals, if the hook keeps any, are in the GPU's memory. */
static int rests_check(rig_t *rig, gpu_plan_t *plan)
{
    ddp_hook_part_t host[DDP_HOOK_PARTS], gpu[DDP_HOOK_PARTS];
    const int count = ddp_hook_parts(rig->host, host);
    err_t err = ERR_INIT;

    RANKS_CHECK(ddp_hook_parts(rig->device, gpu) == count);
    for (int p = 0; p < count; p++) {
        RANKS_CHECK(gpu[p].device && !host[p].device);
        RANKS_CHECK(gpu[p].count == host[p].count &&
                    gpu[p].own == host[p].own &&
                    strcmp(gpu[p].name, host[p].name) == 0);
        if (!gpu[p].own)
            continue;
        RANKS_OK(fetch(rig, plan->rests[rig->rank], gpu[p].data, &err), err);
        RANKS_CHECK(near(plan->rests[rig->rank], host[p].data));
    }
    return 0;
}

static int steps_main(const comm_oob_t *oob, void *argument)
{
    gpu_plan_t *plan = argument;
    rig_t *rig = calloc(1, sizeof *rig);
    err_t err = ERR_INIT;

    RANKS_CHECK(rig != NULL);
    if (rig_open(rig, plan, oob))
        return 1;
    for (int step = 0; step < STEPS; step++) {
        hook_fill(&plan->fill, oob->rank, step, rig->given);
        RANKS_OK(step_run(rig, rig->host, NULL, &err), err);
        RANKS_OK(step_run(rig, rig->device, rig->stream, &err), err);
        RANKS_OK(fetch(rig, rig->back, ddp_grads(rig->device), &err), err);
        RANKS_CHECK(near(rig->back, ddp_grads(rig->host)));
        if (rests_check(rig, plan))
            return 1;
    }
    memcpy(plan->sums[oob->rank], rig->back, sizeof rig->back);
    rig_close(rig);
    free(rig);
    return 0;
}

/* Run in each order of the GPU's streams. */
static void hook_check(const char *hook, hook_kind_t kind, int ranks)
{
    const fake_cuda_t *fake = emu_open();
    gpu_plan_t *plans = calloc(2, sizeof *plans);

    cr_assert_not_null(plans);
    for (int order = 0; order < 2; order++) {
        gpu_plan_t *plan = &plans[order];

        plan->fill.kind = kind;
        plan->fill.even = 1;
        plan->hook = hook;
        emu_set(fake, order, order);
        cr_assert_eq(ranks_threads(ranks, steps_main, plan), 0,
                     "%s, %d ranks, order %d", hook, ranks, order);
        for (int r = 1; r < ranks; r++)
            cr_assert_eq(
                memcmp(plan->sums[0], plan->sums[r], sizeof *plan->sums), 0,
                "rank %d has other bits", r);
    }
    cr_expect_eq(memcmp(plans[0].sums, plans[1].sums, sizeof plans->sums), 0);
    cr_expect_eq(memcmp(plans[0].rests, plans[1].rests, sizeof plans->rests),
                 0);
    cr_expect_eq(fake->counts().bytes, 0);
    cr_expect_eq(fake->counts().objects, 0);
    free(plans);
}

Test(powersgd_cuda, sums_are_those_of_the_host, .timeout = 300)
{
    for (int ranks = 1; ranks <= RANKS; ranks++)
        hook_check("powersgd: {rank: 2, start_step: 1}", HOOK_RANDOM, ranks);
}

/* All elements are equal. So the second vector of P depends on the first vector
 * of P. The second vector of Q becomes zero, and each step draws a new one. */
Test(powersgd_cuda, random_vectors_replace_dependent_vectors, .timeout = 300)
{
    hook_check("powersgd: {rank: 2, start_step: 0}", HOOK_EVEN, 2);
}

Test(powersgd_cuda, all_vectors_of_q_can_be_random, .timeout = 300)
{
    hook_check("powersgd: {rank: 3, start_step: 0, warm_start: false, "
               "error_feedback: false}",
               HOOK_RANDOM, 2);
}

/* min_compression is so large that no matrix is compressed. */
Test(powersgd_cuda, gradients_that_are_not_compressed, .timeout = 300)
{
    hook_check("powersgd: {start_step: 0, min_compression: 1000}", HOOK_RANDOM,
               2);
}

/* The number of operations of the GPU in a run that compresses nothing, and
 * whose views of 16 elements begin [stride] elements apart. */
static int64_t ops_count(size_t stride)
{
    const fake_cuda_t *fake = emu_open();
    gpu_plan_t *plan = calloc(1, sizeof *plan);
    view_t views[HOOK_VIEWS];
    int64_t before;

    cr_assert_not_null(plan);
    for (size_t v = 0; v < HOOK_VIEWS; v++)
        views[v] = (view_t){.name = hook_views[v].name,
                            .offset = v * stride,
                            .count = 16,
                            .ndim = 1,
                            .rows = 16};
    plan->hook = "powersgd: {start_step: 0}";
    plan->views = views;
    before = fake->counts().ops;
    cr_assert_eq(ranks_threads(1, steps_main, plan), 0);
    free(plan);
    return fake->counts().ops - before;
}

/* In each step neighbours are copied to the message, and their sums back. */
Test(powersgd_cuda, neighbours_are_copied_together, .timeout = 60)
{
    cr_assert_eq(ops_count(32) - ops_count(16), STEPS * 2 * (HOOK_VIEWS - 1));
}

/* ---- the bits of P Q^T --------------------------------------------------- */

enum { WIDE = 301, HIGH = 37, RANK = 5, MATRICES = 2 };

/* Two matrices, whose sizes are odd. One has more columns than a block of the
 * GPU has threads. */
static const lowrank_t shapes[MATRICES] = {
    {.rows = HIGH, .columns = WIDE, .rank = RANK},
    {.rows = 3, .columns = 5, .rank = RANK}};

/* What the GPU gets, and what it gives back. */
typedef struct bits {
    float p[RANK * HIGH], q[RANK * WIDE];
    float gpu[HIGH * WIDE], host[HIGH * WIDE];
} bits_t;

/* Numbers of very different magnitudes: each order of additions then has other
 * bits. */
static void numbers_fill(float *to, int count, uint64_t key)
{
    rng_t rng;

    rng_open(&rng, 1, RNG_INIT, key, 0);
    for (int i = 0; i < count; i++)
        to[i] = ldexpf((float)rng_normal(&rng), i % 11 - 5);
}

static float *block_of(dev_device_t *dev, int64_t count)
{
    void *block = NULL;

    cr_assert_eq(
        dev_alloc(dev, (size_t)count * sizeof(float), "test", &block, NULL),
        ERR_OK);
    return block;
}

static op_lowrank_matrix_t matrix_of(dev_device_t *dev, const lowrank_t *shape)
{
    return (op_lowrank_matrix_t){
        .rows = shape->rows,
        .columns = shape->columns,
        .m = block_of(dev, shape->rows * shape->columns),
        .p = block_of(dev, shape->rank * shape->rows),
        .q = block_of(dev, shape->rank * shape->columns)};
}

static void copy(dev_stream_t *stream, float *to, const float *from,
                 int64_t count, dev_copy_kind_t kind)
{
    cr_assert_eq(
        dev_copy(stream, to, from, (size_t)count * sizeof *to, kind, NULL),
        ERR_OK);
    cr_assert_eq(dev_stream_wait(stream, NULL), ERR_OK);
}

/* Compute M = P Q^T of all matrices on the GPU. */
static void bits_run(dev_device_t *dev, dev_stream_t *stream, bits_t *bits)
{
    const op_lowrank_part_t part = {.turn = OP_LOWRANK_M, .count = MATRICES};
    const op_backend_ops_t *backend = NULL;
    op_lowrank_matrix_t matrices[MATRICES];
    const op_lowrank_config_t config = {
        .matrices = matrices, .count = MATRICES, .rank = RANK, .warm = true};
    op_lowrank_t *lowrank = NULL;

    for (int i = 0; i < MATRICES; i++) {
        matrices[i] = matrix_of(dev, &shapes[i]);
        copy(stream, matrices[i].p, bits[i].p, RANK * shapes[i].rows,
             DEV_HOST_TO_DEV);
        copy(stream, matrices[i].q, bits[i].q, RANK * shapes[i].columns,
             DEV_HOST_TO_DEV);
    }
    cr_assert_eq(op_backend_get(dev_name(dev), &backend, NULL), ERR_OK);
    cr_assert_eq(op_lowrank_open(backend, dev, &config, &lowrank, NULL),
                 ERR_OK);
    cr_assert_eq(op_lowrank_run(lowrank, &part, stream, NULL), ERR_OK);
    for (int i = 0; i < MATRICES; i++) {
        copy(stream, bits[i].gpu, matrices[i].m,
             shapes[i].rows * shapes[i].columns, DEV_DEV_TO_HOST);
        dev_free(dev, matrices[i].m);
        dev_free(dev, matrices[i].p);
        dev_free(dev, matrices[i].q);
    }
    op_lowrank_close(lowrank);
}

Test(powersgd_cuda, equal_p_and_q_give_the_bits_of_the_host, .timeout = 60)
{
    bits_t *bits = calloc(MATRICES, sizeof *bits);
    dev_device_t *dev = NULL;
    dev_stream_t *stream = NULL;

    emu_open();
    cr_assert_not_null(bits);
    for (int i = 0; i < MATRICES; i++) {
        numbers_fill(bits[i].p, RANK * HIGH, (uint64_t)i);
        numbers_fill(bits[i].q, RANK * WIDE, (uint64_t)i + MATRICES);
        lowrank_expand(&shapes[i], bits[i].p, bits[i].q, bits[i].host);
    }
    cr_assert_eq(dev_open("cuda", 0, &dev, NULL), ERR_OK);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, NULL),
                 ERR_OK);
    bits_run(dev, stream, bits);
    for (int i = 0; i < MATRICES; i++)
        cr_expect_eq(memcmp(bits[i].gpu, bits[i].host, sizeof bits[i].host), 0,
                     "matrix %d", i);
    dev_stream_close(stream);
    dev_close(dev);
    free(bits);
}
