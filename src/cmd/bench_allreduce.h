/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-bench allreduce: the part that each rank runs. */
#ifndef CDDP_CMD_BENCH_ALLREDUCE_H
#define CDDP_CMD_BENCH_ALLREDUCE_H

#include "boot/boot.h"
#include "cmd/bench_args.h"

/* Measure with the other ranks of [boot], which is closed here; rank 0 prints
 * to standard output. *lost is set if the process must end by _exit, as a
 * device was given up (dev_abandon). Collective. */
err_code_t bench_allreduce(const bench_args_t *args, boot_t *boot, bool *lost,
                           err_t *err);

#endif
