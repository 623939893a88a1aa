/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* In the normal case one exchange of a few numbers is enough. Only after a
 * failure a second exchange carries the sentences. */
#include "hdf5io/checkpoint_vote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

typedef struct excuse {
    char host[ERR_HOST_MAX];
    char text[ERR_TEXT_MAX];
} excuse_t;

/* Exchange the sentences; [out] becomes that of rank [culprit]. */
static err_code_t excuses_exchange(const hdf5io_votes_t *votes,
                                   const err_t *mine, int culprit,
                                   excuse_t *out, err_t *err)
{
    excuse_t own = {0};
    excuse_t *all = NULL;
    err_code_t rc = mem_new(excuse_t, (size_t)votes->size, "a vote", &all, err);

    if (rc != ERR_OK)
        return rc;
    gethostname(own.host, sizeof own.host - 1);
    memcpy(own.text, mine->text, sizeof own.text);
    own.text[sizeof own.text - 1] = '\0';
    rc = votes->exchange(votes->context, &own, sizeof own, all, err);
    if (rc == ERR_OK)
        *out = all[culprit];
    mem_free(all);
    return rc;
}

static err_code_t failure_share(const hdf5io_votes_t *votes, const err_t *mine,
                                int culprit, err_code_t rc, err_t *err)
{
    excuse_t excuse;
    err_code_t failed = excuses_exchange(votes, mine, culprit, &excuse, err);

    if (failed != ERR_OK)
        return failed;
    if (votes->size == 1)
        return err_set(err, rc, "%s", excuse.text);
    return err_set(err, rc, "rank %d on %s: %s", culprit, excuse.host,
                   excuse.text);
}

err_code_t hdf5io_vote(const hdf5io_votes_t *votes, const err_t *mine,
                       const uint64_t numbers[VOTE_NUMBERS],
                       hdf5io_ballot_t *all, bool *agreed, err_t *err)
{
    hdf5io_ballot_t ballot = {.code = mine->code};
    hdf5io_ballot_t *got = all;
    err_code_t rc = ERR_OK;
    int culprit = -1;

    if (agreed != NULL)
        *agreed = false;
    if (got == NULL)
        rc = mem_new(hdf5io_ballot_t, (size_t)votes->size, "a vote", &got, err);
    if (rc != ERR_OK)
        return rc;
    for (int i = 0; numbers != NULL && i < VOTE_NUMBERS; i++)
        ballot.numbers[i] = numbers[i];
    rc = votes->exchange(votes->context, &ballot, sizeof ballot, got, err);
    for (int r = 0; rc == ERR_OK && r < votes->size && culprit < 0; r++)
        if (got[r].code != ERR_OK)
            culprit = r;
    if (rc == ERR_OK && agreed != NULL)
        *agreed = true;
    if (culprit >= 0)
        rc = failure_share(votes, mine, culprit, (err_code_t)got[culprit].code,
                           err);
    if (got != all)
        mem_free(got);
    return rc;
}
