/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Inside base: one scalar of an option table, from text and to text. */
#ifndef CDDP_BASE_OPT_VALUE_H
#define CDDP_BASE_OPT_VALUE_H

#include "base/opt.h"

/* From text; false (and *out untouched) if it is not such a value. */
bool opt_value_bool(const char *text, bool *out);
bool opt_value_seconds(const char *text, double *out);
bool opt_value_every(const char *text, opt_every_t *out);

/* To text that reads back to the same value; a real always has a '.' or 'e'. */
void opt_value_print_real(double value, str_buf_t *out);
void opt_value_print_every(opt_every_t every, str_buf_t *out);

/* What [row] wants, for a human: "an integer", "one of fp32, bf16", ... */
void opt_value_describe(const opt_row_t *row, str_buf_t *out);

/* Has the row bounds, and does [value] keep them? */
bool opt_value_bounded(const opt_row_t *row);
bool opt_value_inside(const opt_row_t *row, double value);

/* The bounds in words: "at least 1 samples", "0 to 1". A bound that is far out
 * is left out, unless [found] is on the wrong side of it (NAN: it is not). */
void opt_value_describe_bounds(const opt_row_t *row, double found,
                               str_buf_t *out);

#endif
