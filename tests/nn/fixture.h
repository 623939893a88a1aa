/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* For the tests of nn: opens graphs from YAML text, and execs with the memory
 * bound to them. */
#ifndef CDDP_TESTS_NN_FIXTURE_H
#define CDDP_TESTS_NN_FIXTURE_H

#include "nn/registry.h"

/* Models that several tests use. */
extern const char *const fixture_mlp,
    *const fixture_cnn, *const fixture_graph_model, *const fixture_smooth,
                                                        *const fixture_tokens;

/* Build a graph from the text "model: ... loss: ...", which errors call m.yaml.
 * fixture_graph fails the test if it cannot. */
err_code_t fixture_graph_try(const char *yaml, nn_graph_t **out, err_t *err);
nn_graph_t *fixture_graph(const char *yaml);

/* An exec, the memory bound to it, and one random batch. */
typedef struct fixture {
    const nn_graph_t *graph;
    nn_exec_t *exec;
    dev_device_t *dev;
    nn_bind_t bind;
    op_step_t step; /* seed 3, epoch 1 */
    float *params, *buffers;
    nn_batch_t batch;
    int64_t samples;      /* of the batch */
    void *input, *target; /* the first input, and the first target */
    void *inputs[NN_FIELDS_MAX], *targets[NN_FIELDS_MAX];
    uint64_t *ids;
} fixture_t;

bool fixture_has_backend(const char *backend);
/* Does [backend] exist and compute products of bfloat16 on this CPU? */
bool fixture_has_bf16(const char *backend);

/* Open an exec on [backend]. Parameters are drawn from seed 1; the batch is
 * samples [from, from + batch) of an endless random data set (seed 2). The
 * activation arena is filled with NaN. */
void fixture_open(fixture_t *f, const nn_graph_t *graph, const char *backend,
                  int64_t from, int64_t batch, bool training);
/* Like fixture_open with the exec that [config] describes, except that the
 * device is the fixture's. */
void fixture_open_as(fixture_t *f, const nn_graph_t *graph,
                     const nn_exec_config_t *config, int64_t from);
void fixture_close(fixture_t *f);

/* Fill the activation arena with NaN; set gradients and moments to zero. */
void fixture_poison(fixture_t *f);

/* Allocate the activation arena anew, after exec->bytes has changed. */
void fixture_rebind(fixture_t *f);

/* Forward returns the weighted sum of the losses' sums; backward computes its
 * gradients, times [scale]. */
double fixture_forward(fixture_t *f);
/* As fixture_forward, with a result for each loss. */
err_code_t fixture_forward_losses(fixture_t *f, nn_result_t *results,
                                  err_t *err);
void fixture_backward(fixture_t *f, double scale, bool accumulate);
/* As fixture_backward, with one scale for each loss. */
err_code_t fixture_backward_losses(fixture_t *f, const double *scales,
                                   bool accumulate, err_t *err);

/* Largest |a[i] - b[i]|, and largest |a[i]|, over [count] numbers; NaN if one
 * of them is NaN. */
double fixture_distance(const float *a, const float *b, size_t count);
double fixture_largest(const float *a, size_t count);

#endif
