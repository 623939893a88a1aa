/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What of the settings has changed between two lives of a run. Values are
 * compared, not how they are written: 1.0e-3 is 0.001, and a key that is left
 * out has its default. Keys whose rows say so (opt_row_t.free) may differ.
 */
#ifndef CDDP_TRAIN_CHANGES_H
#define CDDP_TRAIN_CHANGES_H

#include "base/err.h"
#include "base/str.h"
#include "train/config.h"

typedef struct train_change {
    char *key; /* "optimizer.adamw.lr" */
    char *was, *now;
} train_change_t;

#define TRAIN_CHANGES_MAX 64

typedef struct train_changes {
    train_change_t items[TRAIN_CHANGES_MAX]; /* the first ones, in the order of
                                                the option tables */
    int count;                               /* of all */
} train_changes_t;

/*
 * Compare [was], the resolved configuration that a checkpoint keeps ("": not
 * known, nothing has changed), with [now]. ERR_CONFIG: [was] is no run file.
 * train_changes_free frees what is inside [out]. Local.
 */
err_code_t train_changes_find(const char *was, const train_config_t *now,
                              train_changes_t *out, err_t *err);
void train_changes_free(train_changes_t *changes); /* zeroed: fine */

/* Append "KEY WAS -> NOW, ..." of at most [most] changes (up to
 * TRAIN_CHANGES_MAX), and how many more there are. */
void train_changes_print(const train_changes_t *changes, int most,
                         str_buf_t *out);

#endif
