/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A vote has one or two rounds. The first exchanges the codes, a few bytes. If
 * there is an error, the second brings the message of the lowest rank with an
 * error.
 */
#include "train/vote.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static err_code_t group_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    return comm_allgather(context, mine, bytes, all, err);
}

train_votes_t train_votes_of_group(comm_group_t *group)
{
    return (train_votes_t){.context = group,
                           .rank = comm_group_rank(group),
                           .size = comm_group_size(group),
                           .exchange = group_exchange};
}

static int first_failed(const int32_t *codes, int size)
{
    for (int r = 0; r < size; r++)
        if (codes[r] != ERR_OK)
            return r;
    return -1;
}

static bool any_ok(const int32_t *codes, int size)
{
    for (int r = 0; r < size; r++)
        if (codes[r] == ERR_OK)
            return true;
    return false;
}

/* If only some ranks have an error, the reason may be their host: put rank and
 * host in front of the message. */
static void place_say(const train_votes_t *votes, err_t *mine)
{
    char host[ERR_HOST_MAX] = "";

    if (mine->code == ERR_OK)
        return;
    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "unknown host");
    err_prefix(mine, "rank %d on %s", votes->rank, host);
}

err_code_t train_tell(const train_votes_t *votes, int from, void *data,
                      size_t bytes, err_t *err)
{
    char *all = NULL;
    err_code_t rc;

    rc = mem_new(char, (size_t)votes->size *bytes, "vote", &all, err);
    if (rc == ERR_OK)
        rc = votes->exchange(votes->context, data, bytes, all, err);
    if (rc == ERR_OK)
        memcpy(data, all + (size_t)from * bytes, bytes);
    mem_free(all);
    return rc;
}

err_code_t train_vote(const train_votes_t *votes, err_code_t code,
                      bool *speaker, err_t *err)
{
    int32_t mine = (int32_t)code;
    int32_t *codes = NULL;
    err_t said = ERR_INIT;
    err_code_t rc;
    int failed;

    if (code != ERR_OK && err != NULL)
        said = *err;
    *speaker = true;
    rc = mem_new(int32_t, (size_t)votes->size, "vote", &codes, err);
    if (rc != ERR_OK)
        return rc;
    rc = votes->exchange(votes->context, &mine, sizeof mine, codes, err);
    if (rc != ERR_OK)
        goto free;
    failed = first_failed(codes, votes->size);
    if (failed < 0) {
        *speaker = votes->rank == 0;
        goto free;
    }
    if (any_ok(codes, votes->size))
        place_say(votes, &said);
    rc = train_tell(votes, failed, &said, sizeof said, err);
    if (rc == ERR_OK)
        rc = err_copy(err, &said);
    *speaker = rc == ERR_PEER || failed == votes->rank;
free:
    mem_free(codes);
    return rc;
}
