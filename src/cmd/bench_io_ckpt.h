/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench io write and load: checkpoints. */
#ifndef CDDP_CMD_BENCH_IO_CKPT_H
#define CDDP_CMD_BENCH_IO_CKPT_H

#include "base/crew.h"
#include "cmd/bench_io_args.h"

/* Write a checkpoint below [directory], check what is read back, and print a
 * row for args->what; a load has rows for the warm and, if possible, for the
 * cold page cache. Each of args->threads ranks needs args->bytes of memory, and
 * so does the state that is written. The limit is measured by [crew]. ERR_DATA:
 * a value was wrong. ERR_IO, ERR_MEMORY. */
err_code_t bench_io_ckpt(const bench_io_args_t *args, const char *directory,
                         crew_t *crew, err_t *err);

#endif
