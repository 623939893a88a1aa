/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to base: sentences about faults in a run file. All functions set and
 * return ERR_CONFIG; each sentence starts with the place. [name] is the dotted
 * key. */
#ifndef CDDP_BASE_OPT_ERROR_H
#define CDDP_BASE_OPT_ERROR_H

#include "base/opt.h"

/* Any sentence at the place of [tree]; NULL: without place. */
err_code_t opt_error(err_t *err, const tree_t *tree, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "expected an integer, found 'ten'". */
err_code_t opt_error_type(const opt_row_t *row, const tree_t *value,
                          const char *name, err_t *err);

/* "expected 1 to 64 samples, found 0"; [number] is the value of [value]. */
err_code_t opt_error_bounds(const opt_row_t *row, const tree_t *value,
                            const char *name, double number, err_t *err);

/* "unknown key 'epoch' in train; did you mean 'epochs'?", for item [index] of
 * [map], for which [rows] has no row. */
err_code_t opt_error_unknown(const opt_row_t *rows, const tree_t *map,
                             size_t index, const char *path, err_t *err);

#endif
