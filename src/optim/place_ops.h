/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The function table of a place, and what an optimizer tells it. place.c and
 * update.c forward the calls of place.h and optim.h to it, with the same
 * contracts. A place has optim_place_t as the first member of its own struct.
 */
#ifndef CDDP_OPTIM_PLACE_OPS_H
#define CDDP_OPTIM_PLACE_OPS_H

#include "optim/arith.h"
#include "optim/optim.h"

/* Contiguous elements with equal options, within one range of this rank. */
typedef struct optim_run {
    size_t offset, elems;
    size_t state; /* index of the run's first element in the slots */
    int set;      /* index of its options */
    bool freeze;
    bool adapts; /* the rate of its tensor depends on the tensor's norms */
    /* Index of the first element of the run's tensor, if the run is part of
     * one tensor only. */
    size_t tensor;
    /* First index and number of the tensor's block sums. */
    size_t sums, sum_count;
    /* Number of the first piece; number of pieces, 0 if frozen. */
    int64_t first, pieces;
} optim_run_t;

typedef struct optim_part {
    view_range_t range;
    size_t state;          /* index of the range's first element in the slots */
    int run, runs;         /* runs [run, run + runs) are in this range */
    int64_t piece, pieces; /* [pieces]: number of pieces of these runs */
} optim_part_t;

/* Elements of a piece: whole blocks, few enough to stay in a CPU's cache until
 * the moving average is updated, too. Pieces begin at multiples of their size
 * in the arena. */
#define OPTIM_BLOCK ((size_t)OPTIM_UNIT)
#define OPTIM_PIECE (4 * OPTIM_BLOCK)

/* What does not change after optim_open. */
typedef struct optim_table {
    size_t elems;        /* of the arena */
    optim_rule_t *rules; /* [rule_count]: one for each set of options */
    int rule_count;
    optim_part_t *parts;
    int part_count;
    optim_run_t *runs;
    int run_count;
    bool measures;    /* the rates of some tensors depend on their norms */
    size_t sum_count; /* pairs of sums */
    float fresh;      /* 1 - decay of the average */
    /* Memory of the device. [slots] are in the order of the kind's slots; NULL:
     * unused. [sums] are [sum_count] pairs of sums of squares over blocks of
     * tensors, and [ratios] a factor of the rate for each run. */
    float *slots[OPTIM_SLOTS_MAX];
    float *average; /* NULL: none */
    double *sums, *ratios;
} optim_table_t;

/* An update. */
typedef struct optim_pass {
    const optim_table_t *table;
    void *state; /* what table_open made */
    optim_args_t args;
    float most; /* clamp gradients to [-most, most]; 0: no limit */
} optim_pass_t;

typedef struct optim_place_ops {
    const char *name; /* the name of the dev backend */
    err_code_t (*open)(dev_device_t *dev, size_t elems, optim_place_t **out,
                       err_t *err);
    void (*close)(optim_place_t *place);
    void (*team)(optim_place_t *place, int threads); /* (optional) */
    /* (optional; both or none) Copy what updates need of [table] to the
     * device. */
    err_code_t (*table_open)(optim_place_t *place, const optim_table_t *table,
                             void **out, err_t *err);
    void (*table_close)(optim_place_t *place, void *state); /* NULL allowed */

    err_code_t (*norm)(optim_place_t *place, const float *grads, size_t elems,
                       double *norm, dev_stream_t *stream, err_t *err);
    err_code_t (*norm_part)(optim_place_t *place, const float *grads,
                            view_range_t range, double *blocks,
                            dev_stream_t *stream, err_t *err);
    err_code_t (*norm_whole)(optim_place_t *place, const double *blocks,
                             size_t count, double *norm, dev_stream_t *stream,
                             err_t *err);
    err_code_t (*norm_flag)(optim_place_t *place, const double *norm,
                            double *flag, dev_stream_t *stream, err_t *err);
    err_code_t (*scale)(optim_place_t *place, float *data, size_t elems,
                        float factor, dev_stream_t *stream, err_t *err);
    err_code_t (*judge)(optim_place_t *place, const optim_question_t *question,
                        optim_verdict_t *verdict, dev_stream_t *stream,
                        err_t *err);
    /* Before the updates of the parts: clip gradients, unless update does;
     * for kinds that need norms, write the sums of this rank's blocks. */
    err_code_t (*measure)(optim_place_t *place, const optim_pass_t *pass,
                          dev_stream_t *stream, err_t *err);
    err_code_t (*update)(optim_place_t *place, const optim_pass_t *pass,
                         int part, dev_stream_t *stream, err_t *err);
} optim_place_ops_t;

struct optim_place {
    const optim_place_ops_t *ops;
    dev_device_t *dev;
};

/* Places, one folder each; registry.c lists those that were built in. */
extern const optim_place_ops_t optim_cpu_place;
extern const optim_place_ops_t optim_cuda_place; /* in the plugin */

/* The registry; it ends with NULL. */
extern const optim_place_ops_t *const optim_registry[];

#endif
