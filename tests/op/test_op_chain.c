/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A small network whose ops choose their layouts: conv, batchnorm, relu,
 * maxpool, conv, relu, flatten, dropout, linear, cross_entropy; cpu compared
 * with ref. Numbers of channels are odd, so that blocked layouts have padding.
 * Before each run all memory is filled with NaN, which shows if an op reads
 * padding that no op has written.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "op/op_ops.h"

#define N 5
#define LENGTH 10

static const op_kind_t kinds[LENGTH] = {
    OP_CONV2D, OP_BATCHNORM, OP_RELU,    OP_MAXPOOL2D, OP_CONV2D,
    OP_RELU,   OP_FLATTEN,   OP_DROPOUT, OP_LINEAR,    OP_CROSS_ENTROPY};

typedef struct chain_link {
    op_t *op;
    int params;
    void *y, *dy;
    size_t param_bytes[2];
    op_args_t args;
} chain_link_t;

typedef struct chain {
    chain_link_t links[LENGTH];
    float x[N * 3 * 12 * 12];
    int64_t target[N];
    uint64_t ids[N];
    double loss;
    double correct;
} chain_t;

static void *block_of(size_t bytes)
{
    void *block;

    cr_assert_eq(mem_alloc(bytes, "a test", &block, NULL), ERR_OK);
    return block;
}

static void fill(float *values, size_t count, uint64_t salt)
{
    rng_t rng;

    rng_open(&rng, 5, RNG_INIT, salt, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(rng_uniform(&rng) - 0.5);
}

static void link_open(chain_link_t *link, const op_backend_ops_t *backend,
                      int i, const op_desc_t *in, int threads)
{
    op_config_t config = {
        .kind = kinds[i],
        .training = true,
        .bias = true,
        .need_dx = i > 0,
        .threads = threads,
        .out = 7,
        .conv = {.out = i == 0 ? 19 : 37,
                 .kernel = {3, 3},
                 .stride = {1, 1},
                 .pad = {1, 1},
                 .dilation = {1, 1},
                 .groups = 1},
        .pool = {.kernel = {2, 2}, .stride = {2, 2}},
        .epsilon = 1e-5,
        .rate = 0.25,
        .in = *in,
    };
    op_desc_t params[OP_PARAMS_MAX];
    err_t err = ERR_INIT;

    cr_assert_eq(op_open(backend, NULL, &config, &link->op, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(op_params(&config, params, &link->params, &err), ERR_OK);
    link->y = block_of(op_out(link->op)->bytes);
    link->dy = block_of(op_out(link->op)->bytes);
    for (int p = 0; p < link->params; p++) {
        float *values = block_of(params[p].bytes);

        link->param_bytes[p] = params[p].bytes;
        fill(values, params[p].bytes / sizeof(float), (uint64_t)(10 * i + p));
        link->args.params[p] = values;
        link->args.dparams[p] = block_of(params[p].bytes);
    }
    link->args.workspace = block_of(op_workspace_bytes(link->op));
    link->args.scratch = block_of(op_scratch_bytes(link->op));
    if (kinds[i] == OP_BATCHNORM)
        link->args.moments = block_of(2 * 19 * sizeof(double));
}

static chain_t *chain_open(const char *name, int threads)
{
    op_desc_t in = {.type = OP_FLOAT32, .ndim = 4, .dims = {N, 3, 12, 12}};
    chain_t *chain = block_of(sizeof *chain);
    const op_backend_ops_t *backend;

    cr_assert_eq(op_backend_get(name, &backend, NULL), ERR_OK);
    fill(chain->x, sizeof chain->x / sizeof chain->x[0], 1000);
    for (int n = 0; n < N; n++) {
        chain->target[n] = n % 7;
        chain->ids[n] = (uint64_t)n * 13;
    }
    for (int i = 0; i < LENGTH; i++) {
        link_open(&chain->links[i], backend, i, &in, threads);
        in = *op_out(chain->links[i].op);
    }
    return chain;
}

static void chain_close(chain_t *chain)
{
    for (int i = 0; i < LENGTH; i++) {
        chain_link_t *link = &chain->links[i];

        op_close(link->op);
        mem_free(link->y);
        mem_free(link->dy);
        mem_free(link->args.workspace);
        mem_free(link->args.scratch);
        mem_free(link->args.moments);
        for (int p = 0; p < link->params; p++) {
            mem_free((void *)(uintptr_t)link->args.params[p]);
            mem_free(link->args.dparams[p]);
        }
    }
    mem_free(chain);
}

/* Fill all memory with NaN, except x and the parameters. */
static void chain_spoil(chain_t *chain)
{
    for (int i = 0; i < LENGTH; i++) {
        chain_link_t *link = &chain->links[i];

        memset(link->y, 0xff, op_out(link->op)->bytes);
        memset(link->dy, 0xff, op_out(link->op)->bytes);
        memset(link->args.workspace, 0xff, op_workspace_bytes(link->op));
        memset(link->args.scratch, 0xff, op_scratch_bytes(link->op));
        for (int p = 0; p < link->params; p++)
            memset(link->args.dparams[p], 0xff, link->param_bytes[p]);
    }
}

static void chain_run(chain_t *chain)
{
    static const op_step_t step = {.seed = 3, .scales = {1.0 / N}};
    err_t err = ERR_INIT;

    for (int i = 0; i < LENGTH; i++) {
        op_args_t *args = &chain->links[i].args;

        args->x = i == 0 ? (void *)chain->x : chain->links[i - 1].y;
        args->y = chain->links[i].y;
        args->target = chain->target;
        args->sample_ids = chain->ids;
        args->step = &step;
        args->layer = (uint64_t)i;
        args->loss_sum = &chain->loss;
        args->correct = &chain->correct;
        cr_assert_eq(op_forward(chain->links[i].op, args, &err), ERR_OK, "%s",
                     err.text);
    }
    for (int i = LENGTH - 1; i >= 0; i--) {
        op_args_t *args = &chain->links[i].args;

        args->dy = chain->links[i].dy;
        args->dx = i == 0 ? NULL : chain->links[i - 1].dy;
        cr_assert_eq(op_backward(chain->links[i].op, args, &err), ERR_OK, "%s",
                     err.text);
    }
}

static void check_gradients(const chain_t *got, const chain_t *want,
                            double tolerance)
{
    for (int i = 0; i < LENGTH; i++)
        for (int p = 0; p < got->links[i].params; p++) {
            size_t count = got->links[i].param_bytes[p] / sizeof(float);
            const float *a = got->links[i].args.dparams[p];
            const float *b = want->links[i].args.dparams[p];
            double largest = 0, worst = 0;

            /* The gradient of a bias before batchnorm is 0 up to rounding. */
            if (i == 0 && p == 1)
                continue;
            for (size_t k = 0; k < count; k++) {
                double d = fabs((double)a[k] - (double)b[k]);

                largest = fmax(largest, fabs((double)b[k]));
                worst = d > worst || isnan(d) ? d : worst;
            }
            cr_expect(worst <= tolerance * largest,
                      "link %d parameter %d: off by %g of %g", i, p, worst,
                      largest);
        }
}

static void check_threads(int threads)
{
    chain_t *cpu = chain_open("cpu", threads), *ref = chain_open("ref", 1);
    double loss;
    float *first;
    size_t bytes = cpu->links[0].param_bytes[0];

    /* The test needs a private layout with padding. */
    cr_assert_not_null(op_out(cpu->links[0].op)->layout);
    cr_expect_gt(op_out(cpu->links[0].op)->bytes,
                 op_out(ref->links[0].op)->bytes);
    chain_spoil(ref);
    chain_run(ref);
    chain_spoil(cpu);
    chain_run(cpu);
    cr_expect_float_eq(cpu->loss, ref->loss, 1e-5 * ref->loss);
    cr_expect_eq(cpu->correct, ref->correct);
    check_gradients(cpu, ref, 1e-4);
    loss = cpu->loss;
    first = block_of(bytes);
    memcpy(first, cpu->links[0].args.dparams[0], bytes);
    for (int turn = 0; turn < 3; turn++) {
        chain_spoil(cpu);
        chain_run(cpu);
        cr_expect_eq(cpu->loss, loss);
        cr_expect_arr_eq(cpu->links[0].args.dparams[0], first, bytes);
    }
    mem_free(first);
    chain_close(cpu);
    chain_close(ref);
}

Test(op_chain, one_thread)
{
    check_threads(1);
}

Test(op_chain, two_threads)
{
    check_threads(2);
}

#define RANKS 3

typedef struct rank {
    pthread_t thread;
    chain_t *chain;
} rank_t;

static void *rank_main(void *argument)
{
    rank_t *rank = argument;

    rank->chain = chain_open("cpu", 2);
    for (int turn = 0; turn < 5; turn++)
        chain_run(rank->chain);
    return NULL;
}

/* Ranks may be threads of one process, each with its own team: they give the
 * bits of a rank that is alone. */
Test(op_chain, ranks_as_threads)
{
    chain_t *alone = chain_open("cpu", 2);
    rank_t ranks[RANKS];

    chain_run(alone);
    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(
            pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    for (int r = 0; r < RANKS; r++) {
        cr_assert_eq(pthread_join(ranks[r].thread, NULL), 0);
        cr_expect_eq(ranks[r].chain->loss, alone->loss);
        check_gradients(ranks[r].chain, alone, 0);
        chain_close(ranks[r].chain);
    }
    chain_close(alone);
}
