/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shared by the files of nn only: the registry row of a layer kind, and the
 * built graph. exec_priv.h does this for an exec.
 *
 * A kind is one constant row (nn_kind_t) at the end of its own file, listed in
 * registry.h. A kind that is listed there is known to the run file, the help
 * and the documentation.
 */
#ifndef CDDP_NN_NN_PRIV_H
#define CDDP_NN_NN_PRIV_H

#include "nn/fail.h"
#include "nn/init.h"
#include "nn/nn.h"
#include "nn/shape.h"

/* Maximum bytes of the options struct of a kind. Each file asserts that its
 * struct fits. */
#define NN_OPTIONS_MAX 1024
#define NN_BUFFERS_MAX 2
/* Stands for the graph's first input where the number of a layer is expected.
 * Input k is NN_INPUT - k. */
#define NN_INPUT (-1)
/* Tensors of an arena start at multiples of this many elements: a cache line of
 * float32. */
#define NN_TENSOR_ALIGN 16

typedef struct nn_layer nn_layer_t;

/* Initial values of a tensor. */
typedef enum nn_fill {
    NN_FILL_ZERO,
    NN_FILL_ONE,
    NN_FILL_QUARTER, /* 0.25, as the slopes of PyTorch's PReLU */
    NN_FILL_FAN_IN,  /* uniform in +-1/sqrt(fan_in of the layer's weight) */
    NN_FILL_OUT,     /* uniform in +-1/sqrt(output features) */
    NN_FILL_UNIFORM, /* uniform in +-bound */
    NN_FILL_NORMAL /* normal, with this mean and bound as standard deviation */
} nn_fill_t;

typedef struct nn_slot { /* a parameter or buffer of a kind */
    const char *name;    /* such as "weight" */
    nn_fill_t fill;
} nn_slot_t;

/* One kind of layer, or of loss. */
typedef struct nn_kind {
    const char *name; /* in the run file */
    op_kind_t op;
    const char *help;      /* one sentence, no full stop */
    const opt_row_t *rows; /* options, read into a struct of the kind's file */
    nn_slot_t params[OP_PARAMS_MAX];   /* in the order of op_params */
    nn_slot_t buffers[NN_BUFFERS_MAX]; /* each of shape [channels] */
    bool moments; /* unless frozen, forward in training writes sums of shape [2
                   * channels] */
    bool view; /* y has the elements of x unchanged, so it may always overwrite
                  x */
    bool
        classifier; /* loss: targets are classes; correct answers are counted */
    bool several;   /* takes 2 to OP_INPUTS_MAX inputs */
    int most;       /* if not several: takes 1 to [most] inputs; 0 means 1 */
    bool tokens;    /* takes int32 tokens; otherwise real numbers */
    const struct nn_kind *shares_with; /* another kind whose parameters it may
                                     share; NULL: only its own kind */
    /* Copy [options] to layer->config, in which kind, in and training are set
     * already, and to the layer's own fields. [tree] is the map of the options,
     * for places in errors; it may be NULL. */
    err_code_t (*configure)(nn_layer_t *layer, const void *options,
                            const tree_t *tree, err_t *err);
} nn_kind_t;

struct nn_layer {
    const nn_kind_t *kind;
    char *name;
    int inputs;
    int from[OP_INPUTS_MAX]; /* earlier layers, or inputs: see nn_is_input */
    int owner; /* the layer whose parameters it uses: itself, unless it shares
                */
    int last_user; /* if it is an owner: the last layer that uses its parameters
                    */
    op_config_t config; /* for a batch of one in plain layout */
    op_desc_t out;      /* for a batch of one in plain layout */
    double momentum;    /* momentum of the running statistics */
    nn_init_t init;
    char *later_options;  /* text of nn_hash_options for the hash; NULL: none */
    float *class_weights; /* cross_entropy, bce: [classes], owned; or NULL */
    double weight;        /* loss: its factor in the sum of losses */
    int target;           /* loss: number of the target that it reads */
    int sample_weight;    /* loss: 1 + number of the target with weights of
                             samples; 0: none */
    int param_count;
    int params[OP_PARAMS_MAX]; /* parameter k of the op is tensor params[k] of
                                  the arena */
    size_t param_elems; /* elements of its own parameters, without gaps */
    bool back; /* its backward runs: this layer, or a layer that it depends on,
                  has parameters */
    int buffers[NN_BUFFERS_MAX];
    size_t moments; /* offset of its sums in the moments, in doubles */
    char place[NN_PLACE_TEXT]; /* in the run file */
};

typedef struct nn_tensor {
    nn_param_t public;
    nn_fill_t fill;
    double bound, mean; /* used by NN_FILL_FAN_IN, _OUT, _UNIFORM and _NORMAL */
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
    int64_t tokens; /* see nn_input_info_t */
    char place[NN_PLACE_TEXT];
} nn_input_t;

typedef struct nn_target {
    char *name;
    int loss;     /* the first loss that reads it */
    bool weights; /* it is the weight of a sample */
} nn_target_t;

struct nn_graph {
    struct nn_plugin *plugin; /* NULL: none */
    nn_input_t inputs[NN_FIELDS_MAX];
    int input_count;
    nn_target_t targets[NN_FIELDS_MAX];
    int target_count;
    nn_layer_t *layers; /* layer_count layers, then loss_count losses */
    int layer_count, loss_count;
    nn_table_t params;
    nn_table_t buffers;
    size_t moments; /* number of doubles */
};

/* Does a training step sum up moments for running statistics of [layer]? */
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

/* Does [index] stand for a graph input instead of a layer? Then nn_input_of is
 * the number of the input. */
static inline bool nn_is_input(int index)
{
    return index < 0;
}
static inline int nn_input_of(int index)
{
    return NN_INPUT - index;
}
/* Describe [batch] samples of the graph's input number [input]. */
void nn_desc_input(const nn_graph_t *graph, int input, int64_t batch,
                   op_desc_t *out);
/* Loss number [loss], which is stored as a layer. */
static inline nn_layer_t *nn_loss_of(const nn_graph_t *graph, int loss)
{
    return &graph->layers[graph->layer_count + loss];
}
/* Describe how losses read [target], which need not be in the graph yet. */
nn_target_info_t nn_target_describe(const nn_graph_t *graph,
                                    const nn_target_t *target);

#endif
