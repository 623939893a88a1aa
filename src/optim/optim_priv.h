/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What the files of optim share. An optimizer is one constant row (its options,
 * its state slots, its update), listed in optim.c; a schedule is one, listed in
 * schedule.c.
 */
#ifndef CDDP_OPTIM_OPTIM_PRIV_H
#define CDDP_OPTIM_OPTIM_PRIV_H

#include "base/opt.h"
#include "optim/optim.h"

#define OPTIM_OPTIONS_MAX 256 /* bytes; each file asserts that its fit */
#define OPTIM_SLOTS_MAX 4
#define OPTIM_PLACE_TEXT 320

/* What both kinds of row begin with. */
typedef struct optim_row {
    const char *name; /* in the run file */
    const char *help; /* one sentence, no full stop */
    const opt_row_t *options;
} optim_row_t;

/* One update; pointers do not overlap. */
typedef struct optim_update {
    const void *options;
    size_t elems;
    float *params;
    const float *grads;
    float *slots[OPTIM_SLOTS_MAX];
    double lr;
    int64_t step; /* from 1 */
} optim_update_t;

typedef struct optim_kind {
    optim_row_t row;
    const char *slots[OPTIM_SLOTS_MAX]; /* names */
    /* Do the options fit together? (optional) */
    err_code_t (*check)(const void *options, err_t *err);
    int (*slots_used)(const void *options);
    double (*lr)(const void *options);
    void (*update)(const optim_update_t *update);
} optim_kind_t;

typedef struct optim_schedule_kind {
    optim_row_t row;
    /* The rate of update [step] (from 0) of [steps]. */
    double (*lr)(const void *options, int64_t steps, double lr, int64_t step);
} optim_schedule_kind_t;

extern const optim_kind_t optim_kind_sgd, optim_kind_adamw;

/* Find the row that [tree] (a name, or a map with one name as key) asks for
 * among rows[0 .. count), whose index is the result, and fill its options into
 * [options] of OPTIM_OPTIONS_MAX zeroed bytes. [what], the section's name, is
 * for errors. */
err_code_t optim_row_read(const tree_t *tree, const char *what,
                          const optim_row_t *const *rows, int count,
                          void *options, int *out, err_t *err);

/* Markdown: a heading and an option table for each of rows[0 .. count). */
void optim_rows_document(const optim_row_t *const *rows, int count,
                         const char *what, str_buf_t *out);
void optim_schedule_document(str_buf_t *out);

#endif
