/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A model as a graph of layers, from the same text as in a run file; see
 * docs/CONFIG.md for the layers. Parameters are one arena of float32 in the
 * order in which backward finishes their gradients, so that an arena of
 * gradients of the same layout suits cddp_ddp_open. Buffers are running
 * statistics. Moments are a step's sums (float64) of batch norm: they are
 * summed over ranks with the gradients, then folded into the buffers.
 *
 * An exec is the model planned for one number of samples; several of them share
 * parameters. Forward and backward allocate nothing.
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

/* Most inputs, most targets and most losses of a model. */
#define CDDP_FIELDS_MAX 8

/* One loss. The text lives as long as the model. */
typedef struct cddp_loss {
    const char *name; /* that of its target, if it has no own */
    const char *kind; /* "cross_entropy" */
    int target;       /* number of the target that it reads */
    double weight;    /* its factor in the loss that is minimized */
} cddp_loss_t;

/* One tensor of the arena of parameters or buffers. */
typedef struct cddp_param {
    const char *name; /* "conv1.weight"; lives as long as the model */
    size_t offset, count;
    int ndim;
    int64_t dims[6];
} cddp_param_t;

/* Build from the keys `model` and `loss` of the YAML [text], which errors call
 * [name]: CDDP_CONFIG with name:line:column. Other keys are left alone, so the
 * text may be that of a whole run file. */
cddp_code_t cddp_model_open(const char *name, const char *text,
                            cddp_model_t **out, cddp_error_t *error);
void cddp_model_close(cddp_model_t *model); /* NULL allowed; its execs first */

int cddp_model_params(const cddp_model_t *model);
cddp_param_t cddp_model_param(const cddp_model_t *model, int index);
size_t cddp_model_param_elems(const cddp_model_t *model);
int cddp_model_buffers(const cddp_model_t *model);
cddp_param_t cddp_model_buffer(const cddp_model_t *model, int index);
size_t cddp_model_buffer_elems(const cddp_model_t *model);
size_t cddp_model_moments(const cddp_model_t *model); /* doubles */

/* Inputs in the order of the text, losses too, targets in the order in which
 * losses name them: how many, and the name of number [index]. */
int cddp_model_inputs(const cddp_model_t *model);
const char *cddp_model_input(const cddp_model_t *model, int index);
int cddp_model_targets(const cddp_model_t *model);
const char *cddp_model_target(const cddp_model_t *model, int index);
int cddp_model_losses(const cddp_model_t *model);
cddp_loss_t cddp_model_loss(const cddp_model_t *model, int index);

/* syncs: the calls of an exec's sum in a training forward, and again in its
 * backward: one for each syncbatchnorm layer. sync_count: the numbers that call
 * [index] sums, with index from 0 to 2 * syncs - 1, forward first. All ranks
 * make all calls: a rank without samples must make them itself, with zeros. */
int cddp_model_syncs(const cddp_model_t *model);
size_t cddp_model_sync_count(const cddp_model_t *model, int index);

/* A number that two models of the same structure share. */
uint64_t cddp_model_hash(const cddp_model_t *model);

/* Initial values of all parameters and buffers, a function of [seed] alone. */
void cddp_model_init(const cddp_model_t *model, uint64_t seed, float *params,
                     float *buffers);

/* The denominator that turns the summed loss of [samples] samples into their
 * mean. If the loss has class weights or ignores targets, it depends on
 * [target]: then sum it over ranks. Otherwise it is proportional to [samples],
 * and [target] may be NULL. */
double cddp_model_weigh(const cddp_model_t *model, const void *target,
                        int64_t samples);
/* The same for loss number [loss], with the [target] that it reads. */
double cddp_model_weigh_loss(const cddp_model_t *model, int loss,
                             const void *target, int64_t samples);

/* Fold a step's moments, summed over all ranks, of [samples] samples in all,
 * into the buffers. */
void cddp_model_fold(const cddp_model_t *model, const double *moments,
                     int64_t samples, float *buffers);

typedef struct cddp_exec_config {
    int64_t samples; /* of every forward of this exec */
    int training;    /* 0: evaluation, no backward */
    int threads;     /* 0: the cores that this process may use */
    const float *params;
    float *grads;         /* laid out as params; training only */
    const float *buffers; /* NULL if there are none, as moments */
    double *moments;      /* added to by a training forward */
    /* (optional) Parameter [index]'s gradient is final in this backward; called
     * with 0, 1, 2, ... An error ends the backward. */
    cddp_code_t (*ready)(void *context, int index, cddp_error_t *error);
    void *context;
    int recompute; /* training, 1: keep for backward only the tensors between
                      blocks of layers, and compute each block again before its
                      backward: the same bits in less memory, for up to one more
                      forward (see train.recompute of the run file) */
    /* Sum [count] numbers over the ranks, in place: for models with
     * syncbatchnorm layers, see cddp_model_syncs. If a reducer works at the
     * same time, this needs a group of its own. */
    cddp_code_t (*sum)(void *context, double *sums, size_t count,
                       cddp_error_t *error);
    int bf16; /* 1: mixed precision, as train.precision of the run file;
                 CDDP_UNAVAILABLE if the CPU does not support it */
} cddp_exec_config_t;

typedef struct cddp_samples {
    const void *input;   /* float, or int32_t tokens, [samples, input] */
    const void *target;  /* int64_t classes or float, [samples, target]; with
                            soft_target a float for each class, in the shape of
                            the output */
    const uint64_t *ids; /* [samples], key of random numbers (dropout) */
    uint64_t seed, epoch;
    /* (optional) Of a model with several: each, instead of input and target.
     * Only read. */
    void *const *inputs, *const *targets;
} cddp_samples_t;

cddp_code_t cddp_exec_open(const cddp_model_t *model,
                           const cddp_exec_config_t *config, cddp_exec_t **out,
                           cddp_error_t *error);
void cddp_exec_close(cddp_exec_t *exec); /* NULL allowed */

/* Bytes of the exec's own arena: activations, scratch, what backward needs. */
size_t cddp_exec_bytes(const cddp_exec_t *exec);

/* As cddp_model_weigh_loss, of [count] samples; also where the loss has
 * sample_weight, whose name is then one more target of the model. */
double cddp_model_weigh_samples(const cddp_model_t *model, int loss,
                                const cddp_samples_t *samples, int64_t count);

/* The loss, summed over all samples, into *loss_sum; for classifiers the
 * correct answers into *correct (NULL: not wanted; with soft_target the label
 * is the class of the largest probability). Several losses: an element for
 * each. */
cddp_code_t cddp_exec_forward(cddp_exec_t *exec, const cddp_samples_t *samples,
                              double *loss_sum, int64_t *correct,
                              cddp_error_t *error);

/* Gradients of [scale] * loss_sum, written over grads, or added to them. For
 * models with one loss. CDDP_CONFIG if the exec is not for training. */
cddp_code_t cddp_exec_backward(cddp_exec_t *exec, const cddp_samples_t *samples,
                               double scale, int add, cddp_error_t *error);
/* Gradients of the sum of scales[k] * loss_sum[k] over all losses. A scale is
 * usually weight / cddp_model_weigh_loss, or 0 if no target counts. */
cddp_code_t cddp_exec_backward_losses(cddp_exec_t *exec,
                                      const cddp_samples_t *samples,
                                      const double *scales, int add,
                                      cddp_error_t *error);

/* Copy to [out] the output of the last forward, [samples, output], that the
 * first loss has read, or loss number [loss]. */
cddp_code_t cddp_exec_output(cddp_exec_t *exec, float *out,
                             cddp_error_t *error);
cddp_code_t cddp_exec_output_loss(cddp_exec_t *exec, int loss, float *out,
                                  cddp_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
