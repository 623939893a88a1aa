/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nn: a model as a static graph of layers. A graph (nn_graph_t) is built once
 * from the `model` and `loss` sections of the run file: names, shapes, the
 * parameter table. An exec (nn_exec_t) is the graph planned for one batch size
 * and one mode: ops prepared, activations placed in one arena by lifetime.
 * Several execs (full batch, last batch, evaluation) share parameters and one
 * activation arena, as they never run at the same time.
 *
 * Parameters are one arena of float32, in REVERSE order of use, so that the
 * gradients that backward finishes first come first, and a bucket of ddp is a
 * contiguous part of the arena. Buffers (running statistics) are another arena;
 * moments (batch-norm sums of this step, double) travel with the gradients'
 * last bucket.
 *
 * nn knows neither ddp nor comm: it calls grad_ready.
 * Thread rule: one thread per exec; a graph is constant once built.
 */
#ifndef CDDP_NN_NN_H
#define CDDP_NN_NN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crew.h"
#include "base/err.h"
#include "base/opt.h"
#include "base/tree.h"
#include "dev/dev.h"
#include "op/op.h"

typedef struct nn_graph nn_graph_t;
typedef struct nn_exec nn_exec_t;

/* Maximum number of inputs, of losses and of targets of a model. */
#define NN_FIELDS_MAX OPT_MAP_MAX

/* One tensor of the parameter (or buffer) arena. */
typedef struct nn_param {
    const char *name; /* "conv1.weight", "bn1.running_mean" */
    int layer;        /* index of its layer */
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    size_t offset; /* elements from the start of the arena */
    size_t count;  /* elements */
} nn_param_t;

/* Over whose samples a layer computes batch statistics: those of its rank
 * (batchnorm), or those of all ranks (syncbatchnorm). */
typedef enum nn_moments {
    NN_MOMENTS_NONE,
    NN_MOMENTS_OWN,
    NN_MOMENTS_ALL
} nn_moments_t;

typedef struct nn_layer_info {
    const char *name; /* from the run file, or kind and number ("conv1") */
    const char *kind;
    int ndim; /* of the output without the batch */
    int64_t dims[OP_DIMS_MAX];
    size_t params; /* elements of its parameters */
    nn_moments_t moments;
    int64_t values; /* values per channel and sample in the moments */
} nn_layer_info_t;

/* ---- graph --------------------------------------------------------------- */

/* An input of the model. */
typedef struct nn_input_info {
    const char *name; /* "input" if the only input has no name */
    int ndim;
    int64_t dims[OP_DIMS_MAX], elems;
    int64_t tokens;    /* 0: float32; otherwise int32 from 0 to tokens - 1 */
    const char *place; /* in the run file, "file:line:column" */
} nn_input_info_t;

/* A loss, and what it requires of its target. */
typedef struct nn_loss_info {
    const char *name;  /* by default the name of its target */
    const char *kind;  /* such as "cross_entropy" */
    const char *place; /* in the run file, "file:line:column" */
    double weight;
    int target;    /* index of its target */
    int64_t elems; /* elements of the target of one sample */
    int64_t terms; /* terms of the sum per sample, by which a mean is divided */
    int64_t classes; /* > 0: targets are int64 below this; 0: float */
    bool soft; /* classes > 0, but targets are float: one probability for each
                  class */
    int class_axis;    /* dimension of the classes; dimension 0 is the batch */
    bool ignore;       /* is [ignored] used? */
    int64_t ignored;   /* target value that is left out of the loss */
    bool plain;        /* the loss is the mean of -log p, or of -sum t log p,
                          unweighted */
    int sample_weight; /* target with the weights of samples; -1: none */
    bool weighs;       /* does the denominator depend on the targets? */
    bool shares;       /* are targets probabilities, which sum to 1? */
    int ndim;          /* of the output that it reads, without the batch */
    int64_t dims[OP_DIMS_MAX];
} nn_loss_info_t;

typedef struct nn_target_info {
    const char *name; /* "target" if no loss names it */
    int loss;         /* index of the first loss that reads it */
    bool weights;     /* it is the weight of a sample, one float >= 0 */
    int64_t elems, classes,
        ignored; /* as in nn_loss_info_t; if soft, classes is 0 */
    bool ignore;
    size_t bytes; /* per sample */
} nn_target_info_t;

/*
 * Build a graph from the sections `model` and `loss` of the run file, whose
 * syntax docs/CONFIG.md describes ("The graph", "Several losses"). Errors are
 * ERR_CONFIG with file:line:column. The trees are read only during the call.
 */
err_code_t nn_graph_open(const tree_t *model, const tree_t *loss,
                         nn_graph_t **out, err_t *err);
void nn_graph_close(nn_graph_t *graph); /* NULL allowed */

int nn_graph_layers(const nn_graph_t *graph); /* without losses */
nn_layer_info_t nn_graph_layer(const nn_graph_t *graph, int index);

/* Inputs and losses are in the order of the run file, targets in the order in
 * which losses name them. If losses read a target in several types, such as
 * class numbers and real numbers, the target is listed once for each type,
 * under one name. Pointers are valid until the graph is closed. */
int nn_graph_inputs(const nn_graph_t *graph);
nn_input_info_t nn_graph_input_info(const nn_graph_t *graph, int index);
int nn_graph_losses(const nn_graph_t *graph);
nn_loss_info_t nn_graph_loss_info(const nn_graph_t *graph, int index);
int nn_graph_targets(const nn_graph_t *graph);
nn_target_info_t nn_graph_target_info(const nn_graph_t *graph, int index);

typedef struct nn_weight {
    double denominator; /* the number by which a sum of losses is divided */
    int64_t counted;    /* target elements that are not ignored */
} nn_weight_t;

/* Does the denominator of any loss depend on the targets or weights of
 * samples? */
bool nn_graph_weighs(const nn_graph_t *graph);

/* The weight of [samples] targets of [loss], all samples weighing 1. If
 * nn_loss_info_t.weighs is false, the denominator is nn_loss_denominator
 * (samples times terms) for any targets. Pure. */
nn_weight_t nn_loss_weigh(const nn_graph_t *graph, int loss, const void *target,
                          int64_t samples);
double nn_loss_denominator(const nn_graph_t *graph, int loss, int64_t samples);

/* Parameters, in the order of the arena. Backward finishes their gradients in
 * this order. Each tensor starts at a multiple of 16 elements; gaps stay zero.
 * nn_graph_param_elems is the length of the arena in elements. */
int nn_graph_params(const nn_graph_t *graph);
const nn_param_t *nn_graph_param(const nn_graph_t *graph, int index);
size_t nn_graph_param_elems(const nn_graph_t *graph);

/* Buffers (batch-norm running mean and variance), and the number of moments
 * (doubles). */
int nn_graph_buffers(const nn_graph_t *graph);
const nn_param_t *nn_graph_buffer(const nn_graph_t *graph, int index);
size_t nn_graph_buffer_elems(const nn_graph_t *graph);
size_t nn_graph_moment_elems(const nn_graph_t *graph);

/* Write initial values. Defaults are PyTorch's: U(+-1/sqrt(fan_in)) for weight
 * and bias (Kaiming-uniform with a = sqrt 5), gamma 1, beta 0, mean 0, var 1.
 * Random numbers depend only on seed and parameter name, not on the number of
 * threads in [crew] (NULL: this thread only). */
void nn_graph_init(const nn_graph_t *graph, uint64_t seed, crew_t *crew,
                   float *params, float *buffers);

/* Update the running statistics in the host's memory with the [moments] of a
 * step of [samples] on all ranks, as PyTorch does (unbiased variance). See
 * nn_graph_fold. */
void nn_graph_fold_moments(const nn_graph_t *graph, const double *moments,
                           int64_t samples, float *buffers);

/* A 64-bit hash of layers, options and table of parameters. */
uint64_t nn_graph_hash(const nn_graph_t *graph);

/* Markdown tables of every layer's and loss's options (docs/CONFIG.md). */
void nn_graph_document(str_buf_t *out);

/* The option rows of the layer, loss or preset [name]. NULL: the name is
 * unknown. Layers of plugins are unknown here. */
const opt_row_t *nn_layer_option_rows(const char *name);
const opt_row_t *nn_loss_option_rows(const char *name);
const opt_row_t *nn_preset_option_rows(const char *name);

#include "nn/nn_exec.h"
#endif
