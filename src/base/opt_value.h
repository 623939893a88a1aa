/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Internal to base: conversion of one scalar of an option table from and to
 * text. */
#ifndef CDDP_BASE_OPT_VALUE_H
#define CDDP_BASE_OPT_VALUE_H

#include "base/opt.h"

/* Parse text; false (and *out unchanged) if it is not such a value. */
bool opt_value_bool(const char *text, bool *out);
bool opt_value_seconds(const char *text, double *out);
bool opt_value_every(const char *text, opt_every_t *out);

/* Print text that reads back as the same value; a real number always contains
 * '.' or 'e'. */
void opt_value_print_real(double value, str_buf_t *out);
void opt_value_print_every(opt_every_t every, str_buf_t *out);

/* Describe the type of [row]: "an integer", "one of fp32, bf16", ... */
void opt_value_describe(const opt_row_t *row, str_buf_t *out);

/* Does [row] have bounds, and is [value] within them? */
bool opt_value_bounded(const opt_row_t *row);
bool opt_value_inside(const opt_row_t *row, double value);

/* Describe the bounds: "at least 1 samples", "0 to 1". A bound that is very
 * large is omitted, unless [found] violates it (NAN: no value). */
void opt_value_describe_bounds(const opt_row_t *row, double found,
                               str_buf_t *out);

#endif
