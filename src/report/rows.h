/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* rows: reads metrics.jsonl from its begin to its end, also while a run writes
 * it. Only a buffer of 1 MiB is in memory. Thread rule: one thread. */
#ifndef CDDP_REPORT_ROWS_H
#define CDDP_REPORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "report/row.h"

typedef struct report_rows report_rows_t;

/* Open [run_dir]/metrics.jsonl. ERR_IO (*missing, NULL allowed: there is no
 * such file), ERR_DATA (no regular file). */
err_code_t report_rows_open(const char *run_dir, report_rows_t **out,
                            bool *missing, err_t *err);

/* Read the next row; its texts are valid until the next call. *got false: there
 * is no further whole line now; a later call continues with what has been
 * appended meanwhile. A line that is no row is left out. ERR_IO. */
err_code_t report_rows_next(report_rows_t *rows, report_row_t *row, bool *got,
                            err_t *err);

/* The same, but rows of steps may be left out, which is 10 times as fast; the
 * last row of the file is not. */
err_code_t report_rows_next_event(report_rows_t *rows, report_row_t *row,
                                  bool *got, err_t *err);

/* Was the file replaced by another one, or cut (by a resume or a rollback)?
 * Then it must be opened and read again. */
bool report_rows_stale(const report_rows_t *rows);

/* Number of lines that were left out so far, and whether the file ends in part
 * of a line now. */
int64_t report_rows_bad(const report_rows_t *rows);
bool report_rows_torn(const report_rows_t *rows);

void report_rows_close(report_rows_t *rows); /* NULL allowed */

#endif
