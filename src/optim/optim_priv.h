/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Types for the files of optim. An optimizer is one constant row with its
 * options, state slots and update; optim.c lists these rows. A schedule is a
 * row, too; schedule.c lists them.
 */
#ifndef CDDP_OPTIM_OPTIM_PRIV_H
#define CDDP_OPTIM_OPTIM_PRIV_H

#include "base/opt_pick.h"
#include "optim/optim.h"

#define OPTIM_OPTIONS_MAX 256 /* maximum bytes of an options struct */
#define OPTIM_ROWS_MAX 16     /* maximum number of options of one kind */
#define OPTIM_SLOTS_MAX 3

/* A real-valued option, stored in a field of struct [where]. */
#define OPTIM_REAL(where, field, value, least, most, text)                  \
    {                                                                       \
        .name = #field, .type = OPT_REAL, .offset = offsetof(where, field), \
        .fallback = (value), .min = (least), .max = (most), .help = (text)  \
    }
#define OPTIM_LR(where, value) \
    OPTIM_REAL(where, lr, value, 0, 1e6, "Learning rate, before the schedule")

/* One update of a contiguous part of the arena. The arrays do not overlap. */
typedef struct optim_update {
    const void *options;
    size_t elems;
    float *params;
    const float *grads;
    /* In the order of the kind's slots; NULL: unused. */
    float *slots[OPTIM_SLOTS_MAX];
    double lr;
    int64_t number; /* number of the update, counted from 1 */
    bool vector;    /* the tensor has at most one dimension */
} optim_update_t;

typedef struct optim_kind {
    opt_pick_row_t row;
    const char *slots[OPTIM_SLOTS_MAX]; /* names of the state slots */
    size_t lr; /* offset of the learning rate, a double, in the options */
    /* (optional) Check that the options are consistent with each other. */
    err_code_t (*validate)(const void *options, err_t *err);
    /* Bit i is set if slots[i] is used. */
    unsigned (*slots_used)(const void *options);
    /* (optional; both or none) For a learning rate that depends on the tensor.
     * Before the update, [measure] computes two sums of squares over at most
     * OPTIM_BLOCK elements of a tensor. From these sums, added up over the
     * tensor, [ratio] computes the factor of the tensor's learning rate. */
    void (*measure)(const optim_update_t *update, double squares[2]);
    double (*ratio)(const optim_update_t *update, const double squares[2]);
    void (*update)(const optim_update_t *update);
} optim_kind_t;

/* The first member of the options of every schedule. */
typedef struct optim_warmup {
    int64_t warmup_steps;
} optim_warmup_t;

typedef enum optim_warmup_form {
    OPTIM_WARMUP_BEFORE, /* linear warm-up; the shape begins after it */
    /* The shape begins with the run; during warm-up a factor reduces it. */
    OPTIM_WARMUP_OVER,
    OPTIM_WARMUP_OWN /* the shape includes its own warm-up */
} optim_warmup_form_t;

typedef struct optim_schedule_kind {
    opt_pick_row_t row;
    optim_warmup_form_t warmup;
    /* (optional) Check that the options are consistent with each other. */
    err_code_t (*validate)(const void *options, err_t *err);
    /* The learning rate of update [step] (counted from 0) of [span]. */
    double (*lr)(const void *options, const optim_span_t *span, double lr,
                 int64_t step);
    /* (optional; all or none) See optim_schedule_metric, _watch and _cut. */
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

/* The options of all parameters that match the same groups. */
typedef struct optim_set {
    /* Bit i: the parameters match group i; no two sets have equal bits. */
    uint64_t groups;
    double lr_ratio; /* factor of the base learning rate */
    bool freeze;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
} optim_set_t;

/* The optimizer's own options, and the groups whose options are added. */
typedef struct optim_base {
    const optim_kind_t *kind;
    const tree_t *written; /* the options in the run file; NULL: none */
    const tree_t *groups;  /* the list of groups in it; NULL: none */
    const void *options;   /* the options as a struct */
} optim_base_t;

/* The sets of options of an optimizer. */
typedef struct optim_sets {
    optim_set_t *list; /* [count] */
    int count;
} optim_sets_t;

/* Read base->groups and find the options of each view of [layout]. Sets
 * set_of[view] to the index of its set in [out]; optim_sets_free frees it. */
err_code_t optim_groups_read(const optim_base_t *base,
                             const optim_layout_t *layout, optim_sets_t *out,
                             int *set_of, err_t *err);
void optim_sets_free(const optim_kind_t *kind, optim_sets_t *sets);
void optim_groups_document(str_buf_t *out);

/* ---- the optimizer ------------------------------------------------------- */

/* Contiguous elements with equal options, within one range of this rank. */
typedef struct optim_run {
    size_t offset, elems;
    size_t state; /* index of the run's first element in the slots */
    const optim_set_t *set;
    bool vector;
    /* Index of the first element of the run's tensor, if the run is part of
     * one tensor only. */
    size_t tensor;
    /* First index and number of the tensor's block sums. */
    size_t sums, sum_count;
    double ratio; /* factor of the learning rate in this update */
    /* Number of the first piece; number of pieces, 0 if frozen. */
    int64_t first, pieces;
} optim_run_t;

typedef struct optim_part {
    view_range_t range;
    size_t state;          /* index of the range's first element in the slots */
    int run, runs;         /* runs [run, run + runs) are in this range */
    int64_t piece, pieces; /* [pieces]: number of pieces of these runs */
} optim_part_t;

struct optim {
    const optim_kind_t *kind;
    size_t elems;       /* elements of the arena */
    size_t state_elems; /* elements of a slot */
    size_t frozen;
    double lr;
    /* In the order of the kind's slots; NULL: unused. */
    float *state[OPTIM_SLOTS_MAX];
    float *average; /* moving average; NULL: none */
    float fresh;    /* 1 - decay of the average */
    const char *slot_names[OPTIM_SLOTS_MAX + 1]; /* names of the slots in use */
    float *slots[OPTIM_SLOTS_MAX + 1];
    int slot_count;
    optim_sets_t sets;
    bool whole; /* this rank has the whole arena */
    optim_part_t *parts;
    int part_count;
    optim_run_t *runs;
    int run_count;
    /* [sum_count] pairs of sums of squares, if the kind has [measure]. */
    double *sums;
    size_t sum_count;
    int threads;
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

/* pass.c: divide the arena into runs within the ranges. set_of[view] is the
 * index of the view's set; the sets must be complete. */
err_code_t optim_runs_cut(optim_t *optim, const optim_layout_t *layout,
                          const int *set_of, err_t *err);

/* ---- sums ---------------------------------------------------------------- */

/* A sum along a binary tree over the numbers of blocks: its bits depend only on
 * the sums of the blocks. Initialize it with zeros. */
typedef struct optim_sum {
    /* Levels[k] is the sum of a complete subtree of 2^k blocks, if bit k of
     * [blocks] is set. */
    double levels[64];
    size_t blocks;
} optim_sum_t;

#define OPTIM_BLOCK OPTIM_UNIT /* number of elements in a block */

void optim_sum_add(optim_sum_t *sum, double block);
double optim_sum_total(const optim_sum_t *sum);
/* The sum of squares of at most OPTIM_BLOCK numbers. */
double optim_block_squares(const float *x, size_t elems);

#endif
