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
 * gradients that backward finishes first lie first and ddp's buckets are plain
 * views. Buffers (running statistics) are another arena; moments (batch-norm
 * sums of this step, double) travel with the gradients' last bucket.
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

/* Inputs of a model, its losses, and the targets that they read: each so many
 * at most. */
#define NN_FIELDS_MAX OPT_MAP_MAX

/* One tensor of the parameter (or buffer) arena. */
typedef struct nn_param {
    const char *name; /* "conv1.weight", "bn1.running_mean" */
    int layer;        /* index of its layer */
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    size_t offset; /* elements from the start of the arena */
    size_t count;  /* elements */
    bool decay;    /* does weight decay apply? (decided by optim's caller) */
} nn_param_t;

/* Whose samples: the rank's own (batchnorm), all ranks' (syncbatchnorm). */
typedef enum nn_moments {
    NN_MOMENTS_NONE,
    NN_MOMENTS_OWN,
    NN_MOMENTS_ALL
} nn_moments_t;

typedef struct nn_layer_info {
    const char *name; /* given, or kind + number ("conv1") */
    const char *kind;
    int ndim; /* output shape without the batch */
    int64_t dims[OP_DIMS_MAX];
    size_t params; /* elements */
    nn_moments_t moments;
    int64_t values; /* of a channel in one sample, that moments are taken of */
} nn_layer_info_t;

/* ---- graph --------------------------------------------------------------- */

/* What a model reads of a sample. */
typedef struct nn_input_info {
    const char *name; /* "input", where the only one has none */
    int ndim;
    int64_t dims[OP_DIMS_MAX], elems;
    int64_t tokens; /* 0: float32; else int32 from 0 to this - 1 */
    const char *place;
} nn_input_info_t;

/* One loss, and what it needs of the target that it reads. */
typedef struct nn_loss_info {
    const char *name; /* its target's, if it has no other */
    const char *kind; /* "cross_entropy" */
    const char *place;
    double weight;
    int target;           /* number of it */
    int64_t elems, terms; /* of a sample's target; the mean's divisor */
    int64_t classes; /* > 0: int64 targets below this, unless soft; 0: float */
    bool soft;       /* targets are float: a probability of each class */
    int class_axis;  /* of the output, counted with the batch */
    bool ignore;     /* does a target [ignored] count for nothing? */
    int64_t ignored;
    bool plain;        /* is it the mean of -log p, or of - sum t log p? */
    int sample_weight; /* which target has the samples' weights; -1: none */
    bool weighs;       /* does its denominator depend on the targets? */
    bool shares;       /* are targets probabilities, which sum to 1? */
    int ndim;          /* of what it reads of the model */
    int64_t dims[OP_DIMS_MAX];
} nn_loss_info_t;

typedef struct nn_target_info {
    const char *name; /* "target", where no loss names one */
    int loss;         /* number of the first loss that reads it */
    bool weights;     /* weights of samples: one float each, not below 0 */
    int64_t elems, classes, ignored; /* as in nn_loss_info_t; soft: classes 0 */
    bool ignore;
    size_t bytes; /* of a sample */
} nn_target_info_t;

/*
 * Build from the run file's `model` map (input: dims, or a map of names to
 * dims; layers: list, or preset: name and its options) and `loss`: scalar, map,
 * or a list of them. A loss is a kind, or a map with one kind as key and, if
 * wanted, from (the layer that it reads; else the last one), target (the name
 * of one), weight, sample_weight (the name of a target that holds a weight for
 * each sample) and name. A layer is a kind (relu), or
 * a map with one kind as key and, if wanted, name, from (the earlier layers
 * that it takes, or `input`; else the one before it) and share (an earlier
 * layer whose parameters it uses); or a repeat of a list of layers, inside of
 * which `entry` is what the iteration starts from and names get the iteration's
 * number. Errors are ERR_CONFIG with file:line:column. The trees are read only
 * during the call.
 */
err_code_t nn_graph_open(const tree_t *model, const tree_t *loss,
                         nn_graph_t **out, err_t *err);
void nn_graph_close(nn_graph_t *graph);

int nn_graph_layers(const nn_graph_t *graph); /* losses not counted */
nn_layer_info_t nn_graph_layer(const nn_graph_t *graph, int index);

/* Inputs, losses and targets, in the order of the run file (targets: in which
 * losses name them first). A target that losses take in several ways (as class
 * numbers and as real numbers, say) is several, of one name. What they point to
 * lives as long as the graph. */
int nn_graph_inputs(const nn_graph_t *graph);
nn_input_info_t nn_graph_input_info(const nn_graph_t *graph, int index);
int nn_graph_losses(const nn_graph_t *graph);
nn_loss_info_t nn_graph_loss_info(const nn_graph_t *graph, int index);
int nn_graph_targets(const nn_graph_t *graph);
nn_target_info_t nn_graph_target_info(const nn_graph_t *graph, int index);

/* What a sum of losses is divided by; elements of targets not ignored. */
typedef struct nn_weight {
    double denominator;
    int64_t counted;
} nn_weight_t;

/* Does a denominator depend on the targets (class weights, ignored ones)? */
bool nn_graph_weighs(const nn_graph_t *graph);

/* The weight of [samples] targets of [loss]; if it does not weigh, that is
 * nn_loss_denominator (samples; mse: elements), whatever they are. Pure. */
nn_weight_t nn_loss_weigh(const nn_graph_t *graph, int loss, const void *target,
                          int64_t samples);
double nn_loss_denominator(const nn_graph_t *graph, int loss, int64_t samples);

/* Parameters in arena order (index 0 lies first, its gradient is finished
 * first), and the arena's length in elements (each tensor starts at a multiple
 * of 16 elements; gaps stay zero). */
int nn_graph_params(const nn_graph_t *graph);
const nn_param_t *nn_graph_param(const nn_graph_t *graph, int index);
size_t nn_graph_param_elems(const nn_graph_t *graph);

/* Buffers (batch-norm running mean and variance), and moments (doubles). */
int nn_graph_buffers(const nn_graph_t *graph);
const nn_param_t *nn_graph_buffer(const nn_graph_t *graph, int index);
size_t nn_graph_buffer_elems(const nn_graph_t *graph);
size_t nn_graph_moment_elems(const nn_graph_t *graph);

/* Calls of reduce_small in a forward, and as many in a backward; call [index]
 * of a forward, then a backward (from 0 to twice as many) sums so many. */
int nn_graph_syncs(const nn_graph_t *graph);
size_t nn_graph_sync_count(const nn_graph_t *graph, int index);

/* Fill initial values as PyTorch's defaults (Kaiming-uniform with a = sqrt 5:
 * U(+-1/sqrt(fan_in)) for weight and bias; gamma 1, beta 0, mean 0, var 1);
 * numbers are keyed by (seed, parameter name). [crew] shares the work between
 * its jobs (NULL: done alone); the bits are the same for any. */
void nn_graph_init(const nn_graph_t *graph, uint64_t seed, crew_t *crew,
                   float *params, float *buffers);

/* Fold the [moments] of a step of [samples] on all ranks into the running
 * statistics (PyTorch's: unbiased variance). [lone] has the bits 1 <<
 * nn_moments_t of layers left out if a sample has one value a channel. */
void nn_graph_fold_moments(const nn_graph_t *graph, const double *moments,
                           int64_t samples, unsigned lone, float *buffers);

/* A 64-bit hash of structure and parameter table. */
uint64_t nn_graph_hash(const nn_graph_t *graph);

/* Markdown tables of every layer's and loss's options (docs/CONFIG.md). */
void nn_graph_document(str_buf_t *out);

/* The options of what is called [name], as the run file has them; NULL: there
 * is none of that name (a plugin's are not known here). */
const opt_row_t *nn_layer_option_rows(const char *name);
const opt_row_t *nn_loss_option_rows(const char *name);
const opt_row_t *nn_preset_option_rows(const char *name);

#include "nn/nn_exec.h"
#endif
