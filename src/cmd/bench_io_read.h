/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench io read: reads samples in the order of training. */
#ifndef CDDP_CMD_BENCH_IO_READ_H
#define CDDP_CMD_BENCH_IO_READ_H

#include "base/crew.h"
#include "cmd/bench_io_args.h"

/* Make a file of [layout] in [directory], check what the threads of [crew] read
 * from it, and print a row for the warm and, if possible, for the cold page
 * cache. The file is removed. ERR_DATA: a value was wrong. ERR_IO,
 * ERR_MEMORY. */
err_code_t bench_io_read(const bench_io_args_t *args, bench_io_layout_t layout,
                         const char *directory, crew_t *crew, err_t *err);

#endif
