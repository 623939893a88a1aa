/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_team.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"

/* Seconds for which tasks wait for each other at the start. */
#define START_TIMEOUT 120.0
/* Seconds for which tasks wait for each other later: a task may have a large
 * file, or slow storage. A task that dies is noticed at once. */
#define TEAM_TIMEOUT 3600.0

/* What a task sends to the other tasks. */
typedef struct team_word {
    int64_t code;
    int64_t sums[CMD_TEAM_SUMS];
} team_word_t;

/* PMIx would not wait for long: a fence between nodes ends after
 * SLURM_PMIX_TIMEOUT. So tasks leave PMIx, and meet in a group of comm. */
err_code_t cmd_team_join(boot_t *boot, cmd_team_t *out, err_t *err)
{
    const bool threads = strcmp(boot_name(boot), "threads") == 0;
    const comm_config_t config = {.backend = threads ? "threads" : "auto",
                                  .timeout = TEAM_TIMEOUT};
    const comm_oob_t oob = {.context = boot,
                            .rank = boot_rank(boot),
                            .size = boot_size(boot),
                            .exchange = boot_exchange_call};
    cmd_team_t team = {.rank = oob.rank, .size = oob.size};
    err_code_t rc = ERR_OK;

    if (team.size > 1)
        rc = comm_group_open(&config, &oob, &team.group, err);
    if (team.group != NULL)
        comm_group_report(team.group, 0, "conversion");
    boot_close(boot);
    if (rc == ERR_OK)
        *out = team;
    return rc;
}

err_code_t cmd_team_open(cmd_team_t *out, err_t *err)
{
    const boot_config_t config = {.timeout = START_TIMEOUT};
    boot_t *boot = NULL;
    err_code_t rc = boot_open(&config, &boot, err);

    return rc == ERR_OK ? cmd_team_join(boot, out, err) : rc;
}

void cmd_team_close(cmd_team_t *team)
{
    comm_group_close(team->group);
    team->group = NULL;
}

/* The group has failed, so all tasks fail. Only the first task that is not the
 * culprit keeps the message. */
static err_code_t lost(const cmd_team_t *team, err_code_t rc, err_t *err)
{
    const int speaker = err->culprit == 0 ? 1 : 0;

    return rc != ERR_PEER || team->rank == speaker ? rc
                                                   : err_set(err, rc, "%s", "");
}

/* Get the words of all tasks, and vote. The caller frees *out by mem_free, also
 * after an error. */
static err_code_t words_exchange(cmd_team_t *team, const team_word_t *mine,
                                 team_word_t **out, err_t *err)
{
    team_word_t *all = NULL;
    int first = 0;
    err_code_t rc =
        mem_new(team_word_t, (size_t)team->size, "a vote", &all, err);

    *out = all;
    if (rc != ERR_OK)
        return rc;
    rc = comm_allgather(team->group, mine, sizeof *mine, all, err);
    if (rc != ERR_OK)
        return lost(team, rc, err);
    while (first < team->size && all[first].code == ERR_OK)
        first++;
    if (first == team->size)
        return ERR_OK;
    rc = (err_code_t)all[first].code;
    return first == team->rank ? rc : err_set(err, rc, "%s", "");
}

err_code_t cmd_team_meet(cmd_team_t *team, int64_t sums[CMD_TEAM_SUMS],
                         err_code_t rc, err_t *err)
{
    team_word_t mine = {.code = rc}, *all = NULL;

    if (team->size == 1)
        return rc;
    for (int i = 0; i < CMD_TEAM_SUMS; i++)
        mine.sums[i] = sums[i];
    rc = words_exchange(team, &mine, &all, err);
    for (int i = 0; i < CMD_TEAM_SUMS && rc == ERR_OK; i++) {
        sums[i] = 0;
        for (int r = 0; r < team->size; r++)
            sums[i] += all[r].sums[i];
    }
    mem_free(all);
    return rc;
}

err_code_t cmd_team_gather(cmd_team_t *team, int64_t mine, err_code_t rc,
                           int64_t *out, int count, err_t *err)
{
    const team_word_t word = {.code = rc, .sums = {mine}};
    team_word_t *all = NULL;

    check(team->size > 1 && count <= team->size, "%d numbers of %d tasks",
          count, team->size);
    rc = words_exchange(team, &word, &all, err);
    for (int r = 0; r < count && rc == ERR_OK; r++)
        out[r] = all[r].sums[0];
    mem_free(all);
    return rc;
}

err_code_t cmd_team_vote(cmd_team_t *team, err_code_t rc, err_t *err)
{
    int64_t none[CMD_TEAM_SUMS] = {0};

    return cmd_team_meet(team, none, rc, err);
}
