/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Types for the files of optim. An optimizer is one constant row: its options,
 * state slots and update; optim.c lists them. So is a schedule; schedule.c
 * lists them.
 */
#ifndef CDDP_OPTIM_OPTIM_PRIV_H
#define CDDP_OPTIM_OPTIM_PRIV_H

#include "base/opt_pick.h"
#include "optim/optim.h"

#define OPTIM_OPTIONS_MAX 256 /* bytes of an options struct */
#define OPTIM_ROWS_MAX 16     /* options of one kind */
#define OPTIM_SLOTS_MAX 3

/* A real-valued option, a field of struct [where]. */
#define OPTIM_REAL(where, field, value, least, most, text)                  \
    {                                                                       \
        .name = #field, .type = OPT_REAL, .offset = offsetof(where, field), \
        .fallback = (value), .min = (least), .max = (most), .help = (text)  \
    }
#define OPTIM_LR(where, value) \
    OPTIM_REAL(where, lr, value, 0, 1e6, "Learning rate, before the schedule")

/* One update of a contiguous part of the arena; pointers do not overlap. */
typedef struct optim_update {
    const void *options;
    size_t elems;
    float *params;
    const float *grads;
    float *slots[OPTIM_SLOTS_MAX]; /* in the kind's order; NULL: unused */
    double lr;
    int64_t number; /* of the update, from 1 */
    bool vector;    /* a tensor of at most one dimension */
} optim_update_t;

typedef struct optim_kind {
    opt_pick_row_t row;
    const char *slots[OPTIM_SLOTS_MAX]; /* names */
    size_t lr; /* offset of the rate, a double, in the options */
    /* (optional) Are the options consistent with each other? */
    err_code_t (*validate)(const void *options, err_t *err);
    unsigned (*slots_used)(const void *options); /* bit i: slots[i] */
    /* (optional, together) For a rate that depends on the tensor. Before the
     * update, [measure] computes two square sums of at most OPTIM_BLOCK
     * elements of a tensor. From these, summed over the tensor, [ratio]
     * computes the factor of its rate. */
    void (*measure)(const optim_update_t *update, double squares[2]);
    double (*ratio)(const optim_update_t *update, const double squares[2]);
    void (*update)(const optim_update_t *update);
} optim_kind_t;

/* The options of every schedule begin with this. */
typedef struct optim_warmup {
    int64_t warmup_steps;
} optim_warmup_t;

typedef enum optim_warmup_form {
    OPTIM_WARMUP_BEFORE, /* linear; the shape begins after it */
    OPTIM_WARMUP_OVER,   /* a factor on the shape, which spans the whole run */
    OPTIM_WARMUP_OWN     /* the shape includes it */
} optim_warmup_form_t;

typedef struct optim_schedule_kind {
    opt_pick_row_t row;
    optim_warmup_form_t warmup;
    /* (optional) Are the options consistent with each other? */
    err_code_t (*validate)(const void *options, err_t *err);
    /* The rate of update [step] (from 0) of [span]. */
    double (*lr)(const void *options, const optim_span_t *span, double lr,
                 int64_t step);
    /* (optional, together) See optim_schedule_metric, _watch and _cut. */
    const char *(*metric)(const void *options);
    bool (*watch)(const void *options, double value, optim_watch_t *watch);
    double (*cut)(const void *options, const optim_watch_t *watch, double lr);
} optim_schedule_kind_t;

extern const optim_schedule_kind_t optim_schedule_constant, optim_schedule_step,
    optim_schedule_multistep, optim_schedule_exponential, optim_schedule_cosine,
    optim_schedule_restarts, optim_schedule_plateau, optim_schedule_one_cycle,
    optim_schedule_polynomial, optim_schedule_inverse_sqrt;

extern const optim_kind_t optim_kind_sgd, optim_kind_adam, optim_kind_adamw,
    optim_kind_rmsprop, optim_kind_lamb, optim_kind_lars;

void optim_schedule_document(str_buf_t *out);

/* ---- groups -------------------------------------------------------------- */

/* Options of some of the parameters. */
typedef struct optim_set {
    uint64_t groups; /* bit i: group i matches them; unique among sets */
    double lr_ratio; /* of the base rate */
    bool freeze;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
} optim_set_t;

/* The optimizer, as the groups are read. */
typedef struct optim_base {
    const optim_kind_t *kind;
    const tree_t *written; /* its options in the run file; NULL: none */
    const void *options;   /* its options as a struct */
} optim_base_t;

/* The sets of options of an optimizer. */
typedef struct optim_sets {
    optim_set_t *list; /* [count] */
    int count;
} optim_sets_t;

/* Read [groups] (NULL: none): which options hold for which view of [layout].
 * set_of[view] is the index of its set in [out], which optim_sets_free frees.
 */
err_code_t optim_groups_read(const optim_base_t *base, const tree_t *groups,
                             const optim_layout_t *layout, optim_sets_t *out,
                             int *set_of, err_t *err);
void optim_sets_free(const optim_kind_t *kind, optim_sets_t *sets);
void optim_groups_document(str_buf_t *out);

/* ---- the optimizer ------------------------------------------------------- */

/* Contiguous elements with the same options, within one range of this rank. */
typedef struct optim_run {
    size_t offset, elems;
    size_t state; /* index of its first element in the slots */
    const optim_set_t *set;
    bool vector;
    size_t tensor;          /* first element of its tensor, if it is part of
                               one tensor only */
    size_t sums, sum_count; /* index and number of the tensor's block sums */
    double ratio;           /* factor of its rate in this update */
    int64_t first, pieces;  /* its pieces: first number, count; frozen: 0 */
} optim_run_t;

typedef struct optim_part {
    view_range_t range;
    size_t state;          /* index of its first element in the slots */
    int run, runs;         /* its runs: [run, run + runs) */
    int64_t piece, pieces; /* of its runs */
} optim_part_t;

struct optim {
    const optim_kind_t *kind;
    size_t elems;       /* of the arena */
    size_t state_elems; /* of a slot */
    size_t frozen;
    double lr;
    float *state[OPTIM_SLOTS_MAX]; /* in the kind's order; NULL: unused */
    float *average;                /* NULL: none */
    float fresh;                   /* 1 - decay of the average */
    const char *slot_names[OPTIM_SLOTS_MAX + 1]; /* those that exist */
    float *slots[OPTIM_SLOTS_MAX + 1];
    int slot_count;
    optim_sets_t sets;
    bool whole; /* this rank has the whole arena */
    optim_part_t *parts;
    int part_count;
    optim_run_t *runs;
    int run_count;
    double *sums; /* [sum_count] pairs, of kinds that measure */
    size_t sum_count;
    int threads;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

/* Cut the arena into runs for the ranges; set_of[view] is an index into the
 * sets, which are there. pass.c */
err_code_t optim_runs_cut(optim_t *optim, const optim_layout_t *layout,
                          const int *set_of, err_t *err);

/* ---- sums ---------------------------------------------------------------- */

/* A sum along a binary tree over the numbers of blocks: its bits depend on the
 * blocks alone. Zero-initialise. */
typedef struct optim_sum {
    double levels[64]; /* [k]: the sum of a finished subtree of 2^k blocks, if
                          bit k of [blocks] is set */
    size_t blocks;
} optim_sum_t;

#define OPTIM_BLOCK OPTIM_UNIT /* elements of a block */

void optim_sum_add(optim_sum_t *sum, double block);
double optim_sum_total(const optim_sum_t *sum);
/* The sum of squares of at most OPTIM_BLOCK numbers. */
double optim_block_squares(const float *x, size_t elems);

#endif
