/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* cddp-info --topology: prints how the ranks of this Slurm step send to each
 * other. */
#ifndef CDDP_CMD_INFO_ROUTES_H
#define CDDP_CMD_INFO_ROUTES_H

#include "base/err.h"
#include "boot/boot.h"

/*
 * Open a group of all ranks of [boot], as a run does, and let each rank send to
 * others. Rank 0 then prints the transport and device that UCX has chosen on
 * each host for messages to other hosts, and how ranks of one host reach each
 * other. Nothing is printed if there is one rank. Collective; a rank that does
 * not answer is given up after INFO_CHECK_PATIENCE seconds (info_check.h).
 */
err_code_t info_routes(boot_t *boot, err_t *err);

#endif
