/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* data_team: the tasks of one command of cddp-data. srun may have started
 * several tasks, which divide the work. */
#ifndef CDDP_CMD_DATA_TEAM_H
#define CDDP_CMD_DATA_TEAM_H

#include <stdint.h>

#include "boot/boot.h"
#include "comm/comm.h"

enum { CMD_TEAM_SUMS = 2 };

typedef struct cmd_team {
    comm_group_t *group; /* NULL: this task is alone, or the team is not open */
    int rank, size;
} cmd_team_t;

/* Find the other tasks. ERR_CONFIG: there are several, but srun was called
 * without --mpi=pmix. Collective. */
err_code_t cmd_team_open(cmd_team_t *out, err_t *err);
/* The tasks are the ranks of [boot]. Closes [boot]. Collective. */
err_code_t cmd_team_join(boot_t *boot, cmd_team_t *out, err_t *err);
void cmd_team_close(cmd_team_t *team); /* a zeroed one is allowed */

/*
 * Add the numbers [sums] of all tasks, and vote: [rc] is the outcome of this
 * task, with its message in [err]. If tasks fail, all tasks get the code of the
 * first of them. Only that task keeps its message, and the messages of the
 * other tasks become empty, so that one message is printed. ERR_PEER: a task
 * died, or did not come for an hour. Collective; blocks until all tasks call
 * it.
 */
err_code_t cmd_team_meet(cmd_team_t *team, int64_t sums[CMD_TEAM_SUMS],
                         err_code_t rc, err_t *err);

/* Vote as in cmd_team_meet, and set out[t] to the number [mine] of task t, for
 * each t < count. After an error [out] is not changed. It may be NULL if [rc]
 * is an error. There are several tasks. Collective. */
err_code_t cmd_team_gather(cmd_team_t *team, int64_t mine, err_code_t rc,
                           int64_t *out, int count, err_t *err);

/* The vote alone. Collective. */
err_code_t cmd_team_vote(cmd_team_t *team, err_code_t rc, err_t *err);

#endif
