/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Whole training steps on samples made up in memory: what cddp-bench times. A
 * step has all its parts (forward, backward, reduction, update) except reading
 * the data. Nothing is written.
 */
#ifndef CDDP_TRAIN_BENCH_H
#define CDDP_TRAIN_BENCH_H

#include "boot/boot.h"
#include "nn/cost.h"
#include "train/config.h"

typedef struct train_bench train_bench_t;

/* What a benchmark reports of this rank: its share of the work, and pointers to
 * its model and samples, which stay valid until close. */
typedef struct train_bench_info {
    int rank, size, threads;
    dev_device_t *dev;
    op_type_t compute_type; /* of products: the outcome of train.precision */
    int64_t count, global;  /* samples per step: of this rank, of all ranks */
    comm_group_t *group;
    const nn_graph_t *graph;
    const float *params, *buffers;        /* in the host's memory; see pull */
    void *const *inputs, *const *targets; /* as in nn_batch_t */
    size_t state_bytes; /* bytes of parameters, gradients, optimizer state and
                           running statistics */
    size_t activation_bytes;
    size_t update_bytes; /* bytes that the optimizer reads and writes in an
                            update */
} train_bench_info_t;

/* Open a run of [config] over [boot], which is closed here. [backend] is the
 * comm backend that "auto" means: "threads" or "ucx". Every step gets the same
 * samples: inputs around 0, targets spread over all classes. Collective. */
err_code_t train_bench_open(const train_config_t *config, const char *backend,
                            boot_t *boot, train_bench_t **out, err_t *err);
void train_bench_close(train_bench_t *bench); /* NULL allowed */

train_bench_info_t train_bench_info(const train_bench_t *bench);

/* The cost of this rank's share of a step, except the update. */
nn_cost_t train_bench_cost(const train_bench_t *bench, double flops_s,
                           double bytes_s);

/* One step; *loss is the mean over the global batch. Collective. */
err_code_t train_bench_step(train_bench_t *bench, double *loss, err_t *err);

/* Update what train_bench_info shows of the model, if that is in the memory of
 * another device: the parameters and running statistics after the last step. */
err_code_t train_bench_pull(train_bench_t *bench, err_t *err);

/* Seconds for which this rank has waited for communication so far. */
double train_bench_exposed(const train_bench_t *bench);

#endif
