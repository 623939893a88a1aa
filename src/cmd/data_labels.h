/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_labels: the classes of samples, from a source of cmd_source_open. */
#ifndef CDDP_CMD_DATA_LABELS_H
#define CDDP_CMD_DATA_LABELS_H

#include "import/source.h"

enum { CMD_LABELS_MAX = 65536 }; /* classes */

/* The label of a number that is not whole. */
#define CMD_LABELS_NONE INT64_MIN

/* ERR_DATA: field [field] is not one number a sample. */
err_code_t cmd_labels_check(const import_source_t *source, int field,
                            err_t *err);

/* Convert the labels of [rows] samples in [data], as the source has read them.
 */
err_code_t cmd_labels_get(const import_source_t *source, int field,
                          int64_t rows, const void *data, int64_t *out,
                          err_t *err);

/* Read all labels of [source], which has no other field, and add the number of
 * samples of each class to counts[CMD_LABELS_MAX]; *classes: the largest label
 * plus 1. ERR_DATA: a label is negative or too large. */
err_code_t cmd_labels_count(import_source_t *source, int64_t *counts,
                            int *classes, err_t *err);

#endif
