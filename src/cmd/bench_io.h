/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench io: reads samples, and writes and reads checkpoints, each against
 * what the storage can do. */
#ifndef CDDP_CMD_BENCH_IO_H
#define CDDP_CMD_BENCH_IO_H

#include "cmd/bench_io_args.h"

/* Measure and print the rows. All files are in a new directory, which is
 * removed. ERR_DATA: a value was wrong. ERR_IO, ERR_MEMORY. */
err_code_t bench_io(const bench_io_args_t *args, err_t *err);

#endif
