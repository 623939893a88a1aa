/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of nn share, and nobody else sees: the registry row of a layer
 * kind, and the built graph. exec_priv.h has the same of an exec.
 *
 * A kind is one constant row (nn_kind_t) at the end of its own file, listed in
 * registry.c. To add a layer: write the row, list it, and it is in the run
 * file, in the help and in the documentation.
 */
#ifndef CDDP_NN_NN_PRIV_H
#define CDDP_NN_NN_PRIV_H

#include "nn/fail.h"
#include "nn/init.h"
#include "nn/nn.h"
#include "nn/shape.h"

/* Most bytes of the options struct of a kind; each file asserts that it fits.
 */
#define NN_OPTIONS_MAX 1024
#define NN_BUFFERS_MAX 2
/* The graph's first input, where a layer's number is expected; the others
 * follow downwards. */
#define NN_INPUT (-1)
/* Tensors of an arena start at multiples of this many elements: a cache line
 * of float32. */
#define NN_TENSOR_ALIGN 16

typedef struct nn_layer nn_layer_t;

/* Initial values of a tensor. */
typedef enum nn_fill {
    NN_FILL_ZERO,
    NN_FILL_ONE,
    NN_FILL_QUARTER, /* 0.25, as the slopes of PyTorch's PReLU */
    NN_FILL_FAN_IN,  /* uniform in +-1/sqrt(fan_in of the layer's weight) */
    NN_FILL_OUT,     /* uniform in +-1/sqrt(features out) */
    NN_FILL_UNIFORM, /* in +-bound */
    NN_FILL_NORMAL   /* around mean, with bound as standard deviation */
} nn_fill_t;

typedef struct nn_slot { /* a parameter or buffer that a kind has */
    const char *name;    /* "weight" */
    nn_fill_t fill;
} nn_slot_t;

/* One kind of layer, or of loss. */
typedef struct nn_kind {
    const char *name; /* in the run file */
    op_kind_t op;
    const char *help;                  /* one sentence, no full stop */
    const opt_row_t *rows;             /* options; fill a private struct */
    nn_slot_t params[OP_PARAMS_MAX];   /* in op_params' order */
    nn_slot_t buffers[NN_BUFFERS_MAX]; /* [channels] each */
    bool moments;    /* training forward gives [2 * channels] sums, unless
                        frozen */
    bool view;       /* y has the numbers of x, so it may always overwrite x */
    bool classifier; /* loss: targets are classes; right answers are counted */
    bool several;    /* takes 2 to OP_INPUTS_MAX inputs */
    int most;        /* without several: takes 1 to [most] inputs; 0: one */
    bool tokens;     /* takes int32 tokens; otherwise real numbers */
    const struct nn_kind *lender; /* another kind whose parameters it may share,
                                     or NULL */
    /* Copy [options] to layer->config, in which kind, in and training are set,
     * and to the layer's own fields. [tree] is where the options were written,
     * for the places in errors; it may be NULL. */
    err_code_t (*configure)(nn_layer_t *layer, const void *options,
                            const tree_t *tree, err_t *err);
} nn_kind_t;

struct nn_layer {
    const nn_kind_t *kind;
    char *name;
    int inputs;
    int from[OP_INPUTS_MAX]; /* earlier layers, or inputs: see nn_is_input */
    int owner;     /* layer whose parameters it uses: itself, if not shared */
    int last_user; /* of an owner: the last layer that uses its parameters */
    op_config_t config; /* for a batch of one, plain */
    op_desc_t out;      /* for a batch of one, plain */
    double momentum;    /* of running statistics */
    nn_init_t init;
    char *later_options;  /* for the hash: see nn_hash_options; NULL: none */
    float *class_weights; /* cross_entropy, bce: [classes], owned; or NULL */
    double weight;        /* loss: its part of the sum of losses */
    int target;           /* loss: the target that it reads */
    int sample_weight;    /* loss: 1 + the target with the samples' weights; 0:
                             none */
    int param_count;
    int params[OP_PARAMS_MAX]; /* op's parameter k is params[k] of the arena */
    size_t param_elems;        /* without gaps */
    int buffers[NN_BUFFERS_MAX];
    size_t moments; /* where its sums begin, in doubles */
    char place[NN_PLACE_TEXT];
};

typedef struct nn_tensor {
    nn_param_t public;
    nn_fill_t fill;
    double bound, mean; /* NN_FILL_FAN_IN, _OUT, _UNIFORM, _NORMAL */
} nn_tensor_t;

typedef struct nn_table { /* the tensors of one arena */
    nn_tensor_t *tensors;
    int count;
    size_t elems;
} nn_table_t;

typedef struct nn_input {
    char *name;
    int ndim;
    int64_t dims[OP_DIMS_MAX];
    int reader;     /* the first layer that reads it; NN_INPUT: none yet */
    int64_t tokens; /* nn_input_info_t */
    char place[NN_PLACE_TEXT];
} nn_input_t;

typedef struct nn_target {
    char *name;
    int loss;     /* the first loss that reads it */
    bool weights; /* of samples */
} nn_target_t;

struct nn_graph {
    struct nn_plugin *plugin; /* NULL: none */
    nn_input_t inputs[NN_FIELDS_MAX];
    int input_count;
    nn_target_t targets[NN_FIELDS_MAX];
    int target_count;
    nn_layer_t *layers; /* layer_count of them, then the losses */
    int layer_count, loss_count;
    nn_table_t params;
    nn_table_t buffers;
    size_t moments; /* doubles */
};

/* Does a training step add up sums for the running statistics of [layer]? */
static inline bool nn_layer_has_moments(const nn_layer_t *layer)
{
    return layer->kind->moments && !layer->config.norm.frozen;
}

static inline nn_moments_t nn_layer_moments(const nn_layer_t *layer)
{
    if (!nn_layer_has_moments(layer))
        return NN_MOMENTS_NONE;
    return layer->config.kind == OP_SYNCBATCHNORM ? NN_MOMENTS_ALL
                                                  : NN_MOMENTS_OWN;
}

/* ---- graph --------------------------------------------------------------- */

/* Is [index], where a layer's number is expected, a graph input? Then it is
 * number nn_input_of. */
static inline bool nn_is_input(int index)
{
    return index < 0;
}
static inline int nn_input_of(int index)
{
    return NN_INPUT - index;
}
/* [batch] samples of the graph's input number [input]. */
void nn_desc_input(const nn_graph_t *graph, int input, int64_t batch,
                   op_desc_t *out);
/* The layer that is loss number [loss]. */
static inline nn_layer_t *nn_loss_of(const nn_graph_t *graph, int loss)
{
    return &graph->layers[graph->layer_count + loss];
}
/* How losses take [target], which need not be in the graph yet. */
nn_target_info_t nn_target_describe(const nn_graph_t *graph,
                                    const nn_target_t *target);

#endif
