/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* csv: the rows of metrics.jsonl as a table that spreadsheets read (RFC 4180).
 */
#ifndef CDDP_REPORT_CSV_H
#define CDDP_REPORT_CSV_H

#include <stdio.h>

#include "base/err.h"

/* Write all rows of the [count] runs [dirs] to [out]: a column "run", then one
 * for each key of any row, in the order in which they first come. Keys that
 * have only lists and objects are left out. Numbers are written as they are in
 * the file; null, lists and objects are empty. Writes that fail are found by
 * the caller (ferror). ERR_DATA: no run directory, or more than 256 keys.
 * ERR_IO. ERR_MEMORY. */
err_code_t report_csv(char *const *dirs, int count, FILE *out, err_t *err);

#endif
