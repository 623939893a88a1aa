/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Executing a graph: nn_exec_t, see nn.h. Include nn.h rather than this
 * file. */
#ifndef CDDP_NN_NN_EXEC_H
#define CDDP_NN_NN_EXEC_H

#include "base/trace.h"
#include "nn/nn.h"

typedef struct nn_exec_config {
    dev_device_t *dev;
    const char *op_backend; /* "cpu" or "ref" */
    int64_t batch;          /* number of samples in each run of this exec */
    bool training;
    op_type_t compute_type; /* of matrix products, see op_config_t */
    bool recompute; /* training: keep only the tensors between blocks of layers,
                       and compute a block again before its backward. Saves
                       memory and changes no bits */
    bool unfused;   /* each layer is a call of its own. For comparisons: slower,
                       with equal bits in float32 */
    bool overwrite; /* training: backward is never called with accumulate, so no
                      memory is reserved to add gradients */
    bool consume;   /* training: the output is not wanted after backward, which
                       may overwrite it */
    int threads;
} nn_exec_config_t;

typedef struct nn_result { /* results of one loss */
    double loss_sum;       /* sum of the loss over the samples, not divided by
                              anything */
    double correct; /* number of correct answers of a classifier; otherwise 0 */
} nn_result_t;

/* Memory and callbacks bound into an exec by train. */
typedef struct nn_bind {
    const float *params;
    float *grads; /* laid out as params; training only */
    const float *buffers;
    double *moments;      /* accumulated (+=) by training forward */
    nn_result_t *results; /* [losses of the graph], accumulated (+=) by forward;
                             NULL: not wanted */
    void
        *activations; /* nn_exec_activation_bytes bytes, aligned to MEM_ALIGN */
    /* The gradient of parameter [index] is final for this backward. Called in
     * arena order 0, 1, 2, ... May be NULL. An error ends the backward. */
    err_code_t (*grad_ready)(void *context, int index, err_t *err);
    /* Replace each of [count] numbers by its sum over the ranks, for
     * syncbatchnorm in training: see nn_graph_syncs for the calls. There are
     * two functions. reduce_small: the numbers are in the host's memory;
     * blocks. reduce_on: the numbers are in the device's memory, written by
     * operations that [stream] already has; later operations of [stream] find
     * the sums. It only enqueues. The backend cuda calls reduce_on if it is not
     * NULL, else reduce_small. Other backends call reduce_small. Both NULL:
     * there is one rank. */
    err_code_t (*reduce_small)(void *context, double *sums, size_t count,
                               err_t *err);
    err_code_t (*reduce_on)(void *context, double *sums, size_t count,
                            dev_stream_t *stream, err_t *err);
    void *context;
    /* Seed and epoch are read by training forward and backward, the scales, one
     * for each loss, by backward. */
    const op_step_t *step;
    dev_stream_t *stream; /* never NULL */
    trace_t *trace;       /* of the thread that runs the exec; NULL: none */
} nn_bind_t;

/* A sum over ranks within forward or backward (reduce_small and reduce_on of
 * nn_bind_t). */
typedef struct nn_sync {
    /* Numbers that are summed. 0: there is no such call, as the backward of
     * this layer does not run. */
    size_t count;
    bool back; /* in backward */
    /* Backward: the first [grads] gradients of the arena are final before this
     * call, and no others. */
    int grads;
} nn_sync_t;

/* Number of syncbatchnorm layers. The calls of a forward and the backward after
 * it have the indices 0 to 2 nn_graph_syncs - 1. */
int nn_graph_syncs(const nn_graph_t *graph);
nn_sync_t nn_graph_sync(const nn_graph_t *graph, int index);

typedef struct nn_batch {
    /* Values of the only input, or of each input: [batch, dims of
     * nn_input_info_t]. */
    union {
        const void *input;
        const void *inputs[NN_FIELDS_MAX];
    };
    /* Values of the only target, or of each target: int64 [batch, positions] or
     * float [batch, dims]. */
    union {
        const void *target;
        const void *targets[NN_FIELDS_MAX];
    };
    const uint64_t *sample_ids; /* [batch] */
} nn_batch_t;

/* The weight by which the sum of [loss] over the [samples] samples of [batch]
 * is divided. */
nn_weight_t nn_batch_weigh(const nn_graph_t *graph, int loss,
                           const nn_batch_t *batch, int64_t samples);

/* Check tokens, class numbers and weights of samples, in the host's memory.
 * ERR_DATA, with the sentence of a forward on the CPU that meets the same
 * number. A device cannot report what it meets. */
err_code_t nn_batch_check(const nn_graph_t *graph, const nn_batch_t *batch,
                          int64_t samples, err_t *err);

/* Plan [graph] for one batch size and mode. [graph] and config->dev must
 * outlive the exec. ERR_UNAVAILABLE: there is no such backend, or it lacks an
 * op; ERR_CONFIG: the batch is too large. Local. */
err_code_t nn_exec_open(const nn_graph_t *graph, const nn_exec_config_t *config,
                        nn_exec_t **out, err_t *err);
void nn_exec_close(nn_exec_t *exec); /* NULL allowed */

/* nn_exec_open in two parts: nn_exec_begin opens the ops, which a thread may
 * still prepare when it returns (op_begin); nn_exec_settle waits for that, and
 * plans the memory. In between only nn_exec_close may be called, and no exec of
 * config->dev may run. */
err_code_t nn_exec_begin(const nn_graph_t *graph,
                         const nn_exec_config_t *config, nn_exec_t **out,
                         err_t *err);
err_code_t nn_exec_settle(nn_exec_t *exec, err_t *err);

/* Bytes of the arena nn_bind_t.activations that this exec needs. */
size_t nn_exec_activation_bytes(const nn_exec_t *exec);

/* Set the memory and callbacks that the next passes use; [bind] is copied. To
 * be called before the first pass, and again to use other memory. */
void nn_exec_bind(nn_exec_t *exec, const nn_bind_t *bind);

/* Forward and backward only enqueue their work on the bound stream; on a host
 * device it is done when they return. nn_exec_results blocks until forward is
 * computed and writes a [result] for each loss. It is called before backward,
 * or not at all. Backward follows a forward of the same [batch]. It computes
 * the gradients of the sum over losses of scale * loss_sum, with the scales of
 * the step (0: the loss is left out). It overwrites grads, or adds to them if
 * [accumulate]. An error (ERR_DATA: a target or token is out of range; or an
 * error of a callback) leaves results and grads undefined. Neither allocates
 * memory. */
err_code_t nn_exec_forward(nn_exec_t *exec, const nn_batch_t *batch,
                           err_t *err);
err_code_t nn_exec_results(nn_exec_t *exec, nn_result_t *result, err_t *err);
err_code_t nn_exec_backward(nn_exec_t *exec, const nn_batch_t *batch,
                            bool accumulate, err_t *err);

/* Copy to [out] the tensor that [loss] read in the last forward, in plain
 * layout [batch, dims], for metrics and prediction. With config.consume: only
 * before backward. Blocks until it is copied. */
err_code_t nn_exec_output(nn_exec_t *exec, int loss, float *out, err_t *err);

/* What the fold of a step reads and writes, in the memory of a device. The bits
 * of step->lone are 1 << nn_moments_t: layers of these kinds of moments are
 * left out if they have one value per channel and sample. */
typedef struct nn_fold {
    const double *moments; /* sums over all ranks */
    const op_step_t *step;
    const int32_t *sound; /* 0: change nothing; NULL: it is not 0 */
    float *buffers;
} nn_fold_t;

/* Enqueue the update of the running statistics; see op_fold. Without a backend
 * (NULL) the host does it, and nothing can fail. */
err_code_t nn_graph_fold(const nn_graph_t *graph,
                         const op_backend_ops_t *backend, const nn_fold_t *fold,
                         dev_stream_t *stream, err_t *err);

#endif
