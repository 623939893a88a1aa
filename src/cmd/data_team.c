/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_team.h"

#include "base/mem.h"

/* Seconds for which tasks wait for each other. PMIx ends the step when a task
 * dies, so nobody waits for a dead one; a task may wait for slow storage. */
#define TEAM_TIMEOUT 3600.0

/* What a task sends to the other tasks. */
typedef struct team_word {
    int64_t code;
    int64_t sums[CMD_TEAM_SUMS];
} team_word_t;

err_code_t cmd_team_open(cmd_team_t *out, err_t *err)
{
    const boot_config_t config = {.timeout = TEAM_TIMEOUT};
    boot_t *boot = NULL;
    err_code_t rc = boot_open(&config, &boot, err);

    if (rc == ERR_OK)
        *out = (cmd_team_t){
            .boot = boot, .rank = boot_rank(boot), .size = boot_size(boot)};
    return rc;
}

void cmd_team_close(cmd_team_t *team)
{
    boot_close(team->boot);
    team->boot = NULL;
}

err_code_t cmd_team_meet(cmd_team_t *team, int64_t sums[CMD_TEAM_SUMS],
                         err_code_t rc, err_t *err)
{
    team_word_t mine = {.code = rc}, *all = NULL;
    err_code_t verdict;
    int first = 0;

    if (team->size == 1)
        return rc;
    for (int i = 0; i < CMD_TEAM_SUMS; i++)
        mine.sums[i] = sums[i];
    verdict = mem_new(team_word_t, (size_t)team->size, "a vote", &all, err);
    if (verdict == ERR_OK)
        verdict = boot_exchange(team->boot, &mine, sizeof mine, all, err);
    if (verdict == ERR_OK) {
        while (first < team->size && all[first].code == ERR_OK)
            first++;
        for (int i = 0; i < CMD_TEAM_SUMS; i++) {
            sums[i] = 0;
            for (int r = 0; r < team->size; r++)
                sums[i] += all[r].sums[i];
        }
        if (first < team->size)
            verdict = (err_code_t)all[first].code;
        if (first < team->size && first != team->rank)
            err_set(err, verdict, "%s", "");
    }
    mem_free(all);
    return verdict;
}

err_code_t cmd_team_vote(cmd_team_t *team, err_code_t rc, err_t *err)
{
    int64_t none[CMD_TEAM_SUMS] = {0};

    return cmd_team_meet(team, none, rc, err);
}
