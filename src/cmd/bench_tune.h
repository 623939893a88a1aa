/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench allreduce --tune: measures every algorithm and writes a table. */
#ifndef CDDP_CMD_BENCH_TUNE_H
#define CDDP_CMD_BENCH_TUNE_H

#include "boot/boot.h"
#include "cmd/bench_args.h"
#include "comm/comm_table.h"

/* Measure with the other ranks of [boot], which is closed here. Rank 0 prints
 * the times as CSV and writes the table to args->tune: the table of
 * args->table, with its rows replaced by measured ones. Collective. */
err_code_t bench_tune(const bench_args_t *args, boot_t *boot, err_t *err);

/* ---- arithmetic ---------------------------------------------------------- */

#define TUNE_SIZES 16

/* Median times of one collective in one place of data. */
typedef struct tune_times {
    comm_choice_t choice;
    comm_where_t where;
    int count;
    size_t bytes[TUNE_SIZES]; /* sizes in ascending order */
    double seconds[TUNE_SIZES][COMM_ALGORITHMS];
} tune_times_t;

/* Replace the rows of [table] for the collective and place of [times] by rows
 * that choose the fastest algorithm. The algorithm changes from one size to the
 * next only if that saves at least 5 %. The bound of a row is the geometric
 * middle between two sizes. Rows for sums of 16-bit floats are kept, and all
 * rows if nothing was measured. ERR_CONFIG: too many rows. */
err_code_t tune_rows(comm_table_t *table, const tune_times_t *times,
                     err_t *err);

#endif
