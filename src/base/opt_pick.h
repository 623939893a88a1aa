/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Selects one of several kinds, each with its own options, from the run file:
 * 'sgd', or {sgd: {lr: 0.1}}.
 */
#ifndef CDDP_BASE_OPT_PICK_H
#define CDDP_BASE_OPT_PICK_H

#include "base/opt.h"

#define OPT_PLACE_TEXT 320 /* bytes for tree_place_format */

/* One kind. */
typedef struct opt_pick_row {
    const char *name; /* name in the run file */
    const char *help; /* one sentence without full stop */
    const opt_row_t *options;
} opt_pick_row_t;

/* The kind that the run file selects. */
typedef struct opt_pick {
    int index;             /* index of the row */
    tree_place_t place;    /* place of the name */
    const tree_t *options; /* options below the name; NULL: none */
} opt_pick_t;

/* The kinds that a section of the run file may select. */
typedef struct opt_pick_table {
    const char *what;   /* the section's name, for errors */
    const char *beside; /* a key that may stand next to the kind; NULL: none */
    const opt_pick_row_t *const *rows;
    int count; /* of rows */
} opt_pick_table_t;

/* Find the row of [table] that [tree] selects (a name, or a map with one name
 * as key, and perhaps the key [beside]), and fill its options into the zeroed
 * [options], which must be large enough for every row. ERR_CONFIG. */
err_code_t opt_pick_read(const tree_t *tree, const opt_pick_table_t *table,
                         void *options, opt_pick_t *out, err_t *err);

/* Options of the kind called [name]; NULL: there is no such kind. */
const opt_row_t *opt_pick_rows(const opt_pick_row_t *const *rows, int count,
                               const char *name);

/* Append Markdown: a heading and an option table for each of rows[0 ..
 * count). */
void opt_pick_document(const opt_pick_row_t *const *rows, int count,
                       const char *what, str_buf_t *out);

#endif
