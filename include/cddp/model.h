/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A model is a graph of layers, built from the same text as in a run file;
 * docs/CONFIG.md lists the layers. All parameters are in one arena of float32,
 * in the order in which backward finishes their gradients; an arena of
 * gradients with this layout suits cddp_ddp_open. Buffers are running
 * statistics. Moments are the sums (float64) that batch norm forms in a step;
 * they are summed over ranks with the gradients, then folded into the buffers.
 *
 * An exec carries out the model for one fixed number of samples; several execs
 * may share parameters. Forward and backward allocate nothing. They compute on
 * the CPU, in the host's memory, also if the group has a GPU.
 *
 * Thread rule: a model is constant once open; one thread per exec.
 */
#ifndef CDDP_MODEL_H
#define CDDP_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include <cddp/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cddp_model cddp_model_t;
typedef struct cddp_exec cddp_exec_t;

/* Maximum number of inputs, of targets and of losses of a model. */
#define CDDP_FIELDS_MAX 8

/* One loss. The texts live as long as the model. */
typedef struct cddp_loss {
    const char *name; /* by default the name of its target */
    const char *kind; /* "cross_entropy" */
    int target;       /* number of the target that it reads */
    double weight;    /* factor in the total loss that is minimized */
} cddp_loss_t;

/* One tensor of the arena of parameters or buffers. */
typedef struct cddp_param {
    const char *name; /* "conv1.weight"; lives as long as the model */
    size_t offset, count;
    int ndim;
    int64_t dims[6];
} cddp_param_t;

/* Build a model from the keys `model` and `loss` of the YAML [text]. Other keys
 * are ignored, so the text may be a whole run file. Errors are CDDP_CONFIG and
 * begin with name:line:column. */
cddp_code_t cddp_model_open(const char *name, const char *text,
                            cddp_model_t **out, cddp_error_t *error);
/* NULL allowed; close its execs first */
void cddp_model_close(cddp_model_t *model);

/* Number of parameters, each of them, and elements of their arena; the same for
 * buffers; and number of moments. */
int cddp_model_params(const cddp_model_t *model);
cddp_param_t cddp_model_param(const cddp_model_t *model, int index);
size_t cddp_model_param_elems(const cddp_model_t *model);
int cddp_model_buffers(const cddp_model_t *model);
cddp_param_t cddp_model_buffer(const cddp_model_t *model, int index);
size_t cddp_model_buffer_elems(const cddp_model_t *model);
size_t cddp_model_moments(const cddp_model_t *model); /* number of float64 */

/* Number of inputs, targets and losses, and the name of each. Inputs and losses
 * are in the order of the text, targets in the order in which the losses name
 * them. */
int cddp_model_inputs(const cddp_model_t *model);
const char *cddp_model_input(const cddp_model_t *model, int index);
int cddp_model_targets(const cddp_model_t *model);
const char *cddp_model_target(const cddp_model_t *model, int index);
int cddp_model_losses(const cddp_model_t *model);
cddp_loss_t cddp_model_loss(const cddp_model_t *model, int index);

/* Sums over ranks inside forward and backward. cddp_model_syncs is the number
 * of calls of cddp_exec_config_t.sum in a training forward, and again in its
 * backward: one for each syncbatchnorm layer. cddp_model_sync_count is how many
 * numbers call [index] sums; the index goes from 0 to 2 * syncs - 1, forward
 * first. If it is 0, there is no such call: nothing before that layer has
 * parameters, so its backward does not run. All ranks make all calls: a rank
 * without samples must make them itself, with zeros. */
int cddp_model_syncs(const cddp_model_t *model);
size_t cddp_model_sync_count(const cddp_model_t *model, int index);

/* Hash of the structure of the model: equal for models of the same structure.
 */
uint64_t cddp_model_hash(const cddp_model_t *model);

/* Set all parameters and buffers to their initial values, a function of [seed]
 * alone. */
void cddp_model_init(const cddp_model_t *model, uint64_t seed, float *params,
                     float *buffers);

/* The denominator that turns the summed loss of [samples] samples into their
 * mean. It is proportional to [samples], and [target] may be NULL, unless the
 * loss has class weights or ignores targets: then it depends on [target] and
 * must be summed over ranks. */
double cddp_model_weigh(const cddp_model_t *model, const void *target,
                        int64_t samples);
/* cddp_model_weigh for loss number [loss], with the [target] that this loss
 * reads. */
double cddp_model_weigh_loss(const cddp_model_t *model, int loss,
                             const void *target, int64_t samples);

/* Fold the moments of a step into the buffers. [moments] are summed over all
 * ranks, and [samples] is the number of samples of all ranks. */
void cddp_model_fold(const cddp_model_t *model, const double *moments,
                     int64_t samples, float *buffers);

typedef struct cddp_exec_config {
    int64_t samples; /* number of samples of every forward */
    int training;    /* 0: evaluation, no backward */
    int threads;     /* 0: the cores that this process may use */
    const float *params;
    float *grads; /* gradients, in the layout of params; training only */
    const float *buffers; /* NULL if the model has none */
    double *moments;      /* a training forward adds to them; NULL if none */
    /* (optional) Called in backward when the gradient of parameter [index] is
     * final, with 0, 1, 2, ... An error ends the backward. */
    cddp_code_t (*ready)(void *context, int index, cddp_error_t *error);
    void *context;
    /* 1: in training, keep only the tensors between blocks of layers, and
     * compute each block again before its backward. Same bits in less memory,
     * for up to one more forward (see train.recompute of the run file). */
    int recompute;
    /* Sum [count] numbers over the ranks, in place; needed for syncbatchnorm
     * layers (see cddp_model_syncs). If a reducer works at the same time, this
     * function needs its own group. */
    cddp_code_t (*sum)(void *context, double *sums, size_t count,
                       cddp_error_t *error);
    /* 1: mixed precision, like train.precision of the run file.
     * CDDP_UNAVAILABLE if the CPU does not support it. */
    int bf16;
} cddp_exec_config_t;

typedef struct cddp_samples {
    const void *input; /* float, or int32_t tokens, [samples, input] */
    /* int64_t classes or float, [samples, target]; with soft_target one float
     * per class, in the shape of the output */
    const void *target;
    /* [samples]: number of each sample, which keys random numbers (dropout) */
    const uint64_t *ids;
    uint64_t seed, epoch;
    /* (optional) All inputs and targets of a model with several, instead of
     * input and target. They are only read. */
    void *const *inputs, *const *targets;
} cddp_samples_t;

/* Plan the memory of an exec and allocate it. [model], and the memory that
 * [config] points to, must outlive the exec. CDDP_CONFIG, CDDP_MEMORY. */
cddp_code_t cddp_exec_open(const cddp_model_t *model,
                           const cddp_exec_config_t *config, cddp_exec_t **out,
                           cddp_error_t *error);
void cddp_exec_close(cddp_exec_t *exec); /* NULL allowed */

/* Bytes that the exec allocates: activations, scratch, and what backward needs.
 */
size_t cddp_exec_bytes(const cddp_exec_t *exec);

/* cddp_model_weigh_loss for [count] samples. Works also if the loss has
 * sample_weight, whose values are then one more target of the model. */
double cddp_model_weigh_samples(const cddp_model_t *model, int loss,
                                const cddp_samples_t *samples, int64_t count);

/* Write the loss, summed over all samples, to *loss_sum, and, for classifiers,
 * the number of correct answers to *correct (NULL: not wanted; with soft_target
 * the label is the class of the largest probability). With several losses both
 * are arrays with an element for each loss. */
cddp_code_t cddp_exec_forward(cddp_exec_t *exec, const cddp_samples_t *samples,
                              double *loss_sum, int64_t *correct,
                              cddp_error_t *error);

/* Compute the gradients of [scale] * loss_sum. They overwrite grads, or are
 * added if [add] is not 0. For models with one loss. CDDP_CONFIG if the exec is
 * not for training. */
cddp_code_t cddp_exec_backward(cddp_exec_t *exec, const cddp_samples_t *samples,
                               double scale, int add, cddp_error_t *error);
/* cddp_exec_backward for several losses: [scales] has one scale per loss, and
 * the gradients are those of the scaled sum. A scale is usually weight /
 * cddp_model_weigh_loss, or 0 if no target counts. */
cddp_code_t cddp_exec_backward_losses(cddp_exec_t *exec,
                                      const cddp_samples_t *samples,
                                      const double *scales, int add,
                                      cddp_error_t *error);

/* Copy an output of the last forward, [samples, output], to [out]: the tensor
 * that the first loss reads, or that loss number [loss] reads. */
cddp_code_t cddp_exec_output(cddp_exec_t *exec, float *out,
                             cddp_error_t *error);
cddp_code_t cddp_exec_output_loss(cddp_exec_t *exec, int loss, float *out,
                                  cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
