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
#include "optim/place_ops.h"

#define OPTIM_OPTIONS_MAX 256 /* maximum bytes of an options struct */
#define OPTIM_ROWS_MAX 16     /* maximum number of options of one kind */

/* A real-valued option, stored in a field of struct [where]. */
#define OPTIM_REAL(where, field, value, least, most, text)                  \
    {                                                                       \
        .name = #field, .type = OPT_REAL, .offset = offsetof(where, field), \
        .fallback = (value), .min = (least), .max = (most), .help = (text)  \
    }
#define OPTIM_LR(where, value) \
    OPTIM_REAL(where, lr, value, 0, 1e6, "Learning rate, before the schedule")

/* The rate of a set of options in an update. */
typedef struct optim_rate {
    double lr;
    int64_t number; /* number of the update, counted from 1 */
} optim_rate_t;

typedef struct optim_kind {
    opt_pick_row_t row;
    const char *slots[OPTIM_SLOTS_MAX]; /* names of the state slots */
    size_t lr; /* offset of the learning rate, a double, in the options */
    /* (optional) Check that the options are consistent with each other. */
    err_code_t (*validate)(const void *options, err_t *err);
    /* Bit i is set if slots[i] is used. */
    unsigned (*slots_used)(const void *options);
    bool norms; /* the rates of tensors depend on their norms */
    /* Fill in the rule, which is zeroed. */
    void (*rule)(const void *options, optim_rule_t *out);
    /* Write the kind's scalars of arith.h to [out]. */
    void (*scalars)(const void *options, const optim_rate_t *rate, void *out);
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

struct optim {
    const optim_kind_t *kind;
    dev_device_t *dev;
    optim_place_t *place;
    optim_table_t table;
    void *table_state;  /* the place's */
    size_t state_elems; /* elements of a slot */
    size_t frozen;
    double lr;
    float most;                                  /* see optim_clip_value */
    const char *slot_names[OPTIM_SLOTS_MAX + 1]; /* names of the slots in use */
    float *slots[OPTIM_SLOTS_MAX + 1];
    int slot_count;
    optim_sets_t sets;
    bool whole; /* this rank has the whole arena */
    _Alignas(max_align_t) unsigned char options[OPTIM_OPTIONS_MAX];
};

/* runs.c: divide the arena into runs within the ranges. set_of[view] is the
 * index of the view's set; the sets must be complete. */
err_code_t optim_runs_cut(optim_t *optim, const optim_layout_t *layout,
                          const int *set_of, err_t *err);

#endif
