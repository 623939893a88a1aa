/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench step: the part that each rank runs. */
#ifndef CDDP_CMD_BENCH_STEP_H
#define CDDP_CMD_BENCH_STEP_H

#include "boot/boot.h"
#include "cmd/bench_step_args.h"

/* Print the header line above the rows of bench_step. */
void bench_step_header(const bench_step_args_t *args);

/* Time the steps with the other ranks of [boot], which is closed here; rank 0
 * prints one row to standard output. Collective. */
err_code_t bench_step(const bench_step_args_t *args, boot_t *boot, err_t *err);

#endif
