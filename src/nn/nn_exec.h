/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* nn: a graph made ready for one batch size, and run. Part of nn.h, whose rules
 * hold here, too. */
#ifndef CDDP_NN_NN_EXEC_H
#define CDDP_NN_NN_EXEC_H

#include "nn/nn.h"

typedef struct nn_exec_config {
    dev_device_t *dev;
    const char *op_backend; /* "cpu" or "ref" */
    int64_t batch;          /* samples of every run of this exec */
    bool training;
    op_type_t compute_type; /* OP_FLOAT32 or OP_BFLOAT16; see op_config_t */
    bool recompute; /* training: keep only the tensors between blocks of layers,
                       and compute a block again before its backward; the same
                       bits in less memory */
    bool unfused;   /* each layer is a call of its own: the same bits, slower;
                       for comparisons */
    bool anew;      /* training: backward never accumulates, so no memory is
                       needed to add gradients */
    int threads;
} nn_exec_config_t;

/* Memory and callbacks bound into an exec by train. */
typedef struct nn_bind {
    const float *params;
    float *grads; /* same layout as params; training only */
    const float *buffers;
    double *moments;   /* accumulated (+=) by training forward */
    void *activations; /* nn_exec_activation_bytes, aligned to MEM_ALIGN */
    /* Parameter [index]'s gradient is final for this backward; called in arena
     * order 0, 1, 2, ... NULL allowed. An error ends the backward. */
    err_code_t (*grad_ready)(void *context, int index, err_t *err);
    /* Sum [count] numbers over the ranks, for syncbatchnorm in training: once a
     * layer in forward, once in backward (see nn_graph_syncs). Blocks. NULL:
     * one rank. */
    err_code_t (*reduce_small)(void *context, double *sums, size_t count,
                               err_t *err);
    void *context;
    dev_stream_t *stream; /* never NULL */
} nn_bind_t;

typedef struct nn_batch {
    /* [batch, input dims], see nn_input_info_t: of the only input, or of each
     */
    union {
        const void *input;
        const void *inputs[NN_FIELDS_MAX];
    };
    /* int64 [batch, positions] or float [batch, dims]: of the only target, or
     * of each */
    union {
        const void *target;
        const void *targets[NN_FIELDS_MAX];
    };
    const uint64_t *sample_ids; /* [batch] */
    uint64_t seed, epoch;
} nn_batch_t;

typedef struct nn_result { /* of one loss */
    double loss_sum;       /* sum over samples of the undivided loss */
    int64_t correct;       /* classifier: right answers; else 0 */
    nn_weight_t weight;    /* of this batch's targets */
} nn_result_t;

/* What the sum of [loss] over the [samples] of [batch] is divided by. */
nn_weight_t nn_batch_weigh(const nn_graph_t *graph, int loss,
                           const nn_batch_t *batch, int64_t samples);

err_code_t nn_exec_open(const nn_graph_t *graph, const nn_exec_config_t *config,
                        nn_exec_t **out, err_t *err);
void nn_exec_close(nn_exec_t *exec);

size_t nn_exec_activation_bytes(const nn_exec_t *exec);
void nn_exec_bind(nn_exec_t *exec, const nn_bind_t *bind);

/* Forward: writes a [result] for each loss. Backward: gradients of the sum over
 * losses of scale * loss_sum, a [scale] for each (0: the loss is left out),
 * written over grads, or added to them when [accumulate]. Allocate nothing. */
err_code_t nn_exec_forward(nn_exec_t *exec, const nn_batch_t *batch,
                           nn_result_t *result, err_t *err);
err_code_t nn_exec_backward(nn_exec_t *exec, const nn_batch_t *batch,
                            const double *scale, bool accumulate, err_t *err);

/* The tensor that [loss] read in the last forward, plain [batch, dims], for
 * metrics and prediction. */
err_code_t nn_exec_output(nn_exec_t *exec, int loss, float *out, err_t *err);

#endif
