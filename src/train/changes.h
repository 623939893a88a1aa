/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * changes: which settings differ between two lives of a run. Values are
 * compared, not their spelling: 1.0e-3 equals 0.001, and a missing key has its
 * default. Keys with opt_row_t.free set may differ.
 */
#ifndef CDDP_TRAIN_CHANGES_H
#define CDDP_TRAIN_CHANGES_H

#include "base/err.h"
#include "base/str.h"
#include "train/config.h"

typedef struct train_change {
    char *key; /* path of the key, such as "optimizer.adamw.lr" */
    char *was, *now;
} train_change_t;

#define TRAIN_CHANGES_MAX 64

typedef struct train_changes {
    train_change_t items[TRAIN_CHANGES_MAX]; /* the first ones, in the order of
                                                the option tables */
    int count;    /* number of all changes, those beyond [items] included */
    int defaults; /* how many of them only changed from the default of an
                     earlier version to the present default */
} train_changes_t;

/*
 * Compare [was], the resolved configuration in a checkpoint ("" if it is not
 * known: then there are no changes), with [now]. ERR_CONFIG: [was] is no run
 * file. train_changes_free frees what is inside [out]. Local.
 */
err_code_t train_changes_find(const char *was, const train_config_t *now,
                              train_changes_t *out, err_t *err);
void train_changes_free(train_changes_t *changes); /* zeroed: fine */

/* Append "KEY WAS -> NOW, ..." for at most [most] changes (up to
 * TRAIN_CHANGES_MAX), then the number of changes left out. */
void train_changes_print(const train_changes_t *changes, int most,
                         str_buf_t *out);

#endif
