/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench allreduce --tune: measure every algorithm, write a table. */
#ifndef CDDP_CMD_BENCH_TUNE_H
#define CDDP_CMD_BENCH_TUNE_H

#include "boot/boot.h"
#include "cmd/bench_args.h"
#include "comm/comm_table.h"

/* Measure with the other ranks of [boot], which is closed here. Rank 0 prints
 * what it measured as CSV and publishes the table at args->tune: that of
 * args->table, with the measured rows in place of its own. Collective. */
err_code_t bench_tune(const bench_args_t *args, boot_t *boot, err_t *err);

/* ---- arithmetic ---------------------------------------------------------- */

#define TUNE_SIZES 16

/* Median seconds of one collective in one place; 0: not measured. */
typedef struct tune_times {
    comm_choice_t choice;
    comm_where_t where;
    int count;
    size_t bytes[TUNE_SIZES]; /* ascending */
    double seconds[TUNE_SIZES][COMM_ALGORITHMS];
} tune_times_t;

/* Replace the rows of [table] for [times] by what was fastest; a change of
 * algorithm must gain a twentieth. The bounds are in the middle between two
 * sizes. Rows of 16-bit floats stay, and all if nothing was measured.
 * ERR_CONFIG: too many rows. */
err_code_t tune_rows(comm_table_t *table, const tune_times_t *times,
                     err_t *err);

#endif
