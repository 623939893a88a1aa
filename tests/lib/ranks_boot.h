/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A handle of boot for the ranks of ranks.h. */
#ifndef CDDP_TESTS_LIB_RANKS_BOOT_H
#define CDDP_TESTS_LIB_RANKS_BOOT_H

#include "boot/boot.h"
#include "comm/comm.h"

/* Open a handle whose exchanges are those of [oob], which outlives it. */
err_code_t ranks_boot(const comm_oob_t *oob, boot_t **out, err_t *err);

#endif
