/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_team: the tasks in which srun has started one command of cddp-data,
 * which divide its work; or one task. */
#ifndef CDDP_CMD_DATA_TEAM_H
#define CDDP_CMD_DATA_TEAM_H

#include <stdint.h>

#include "boot/boot.h"

enum { CMD_TEAM_SUMS = 2 };

typedef struct cmd_team {
    boot_t *boot; /* NULL: not open */
    int rank, size;
} cmd_team_t;

/* Find the other tasks. ERR_CONFIG: there are several, but srun was called
 * without --mpi=pmix. */
err_code_t cmd_team_open(cmd_team_t *out, err_t *err);
void cmd_team_close(cmd_team_t *team); /* a zeroed one is allowed */

/*
 * Add the numbers [sums] of all tasks, and vote: [rc] is the outcome of this
 * task, with its message in [err]. If one fails, all get the code of the first
 * one; its message stays with it, and the message of the others is empty, so
 * that it is printed once. Collective; blocks until all tasks call it.
 */
err_code_t cmd_team_meet(cmd_team_t *team, int64_t sums[CMD_TEAM_SUMS],
                         err_code_t rc, err_t *err);

/* The vote alone. Collective. */
err_code_t cmd_team_vote(cmd_team_t *team, err_code_t rc, err_t *err);

#endif
