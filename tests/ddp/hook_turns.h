/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A comm hook for tests, with one table for the host and one for a device. The
 * first half of a bucket gets the sum over ranks. The other half gets the
 * numbers of the last rank, times the number of ranks. The result is wrong if
 * the device executes what turns enqueue in another order. Both tables give the
 * same bits. */
#ifndef CDDP_TESTS_DDP_HOOK_TURNS_H
#define CDDP_TESTS_DDP_HOOK_TURNS_H

#include "ddp/hook.h"

/* Lists for ddp_config_t.hooks. The hook's name is "turns". */
extern const ddp_hook_ops_t *const hook_turns_host[2];
extern const ddp_hook_ops_t *const hook_turns_device[2];

#endif
