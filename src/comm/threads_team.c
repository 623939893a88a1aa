/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How the ranks of a threads group find their common team. Rank 0 makes the
 * team and distributes its address. The other ranks accept the address only if
 * the memory there can be read and contains the nonce that came with the
 * address.
 */
#include "comm/threads_team.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

typedef struct team_ticket {
    threads_team_t *team;
    uint64_t nonce;
} team_ticket_t;

void threads_team_free(threads_team_t *team)
{
    if (team == NULL)
        return;
    for (int i = 0; i < COMM_WORKS_MAX; i++) {
        mem_free(team->slots[i].requests);
        mem_free(team->slots[i].views);
    }
    mem_free(team->members);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    mem_free(team);
}

/* Allocate the arrays of [team]; threads_team_free frees them. */
static err_code_t team_alloc(threads_team_t *team, err_t *err)
{
    size_t ranks = (size_t)team->size, views = ranks * COMM_VIEWS_MAX;
    err_code_t rc =
        mem_new(threads_member_t, ranks, "comm team", &team->members, err);

    for (int i = 0; rc == ERR_OK && i < COMM_WORKS_MAX; i++) {
        threads_slot_t *slot = &team->slots[i];

        rc = mem_new(comm_request_t, ranks, "comm team", &slot->requests, err);
        if (rc == ERR_OK)
            rc = mem_new(void *, views, "comm team", &slot->views, err);
    }
    return rc;
}

static err_code_t team_new(int size, double timeout, threads_team_t **out,
                           err_t *err)
{
    threads_team_t *team;
    err_code_t rc = mem_new(threads_team_t, 1, "comm team", &team, err);

    if (rc != ERR_OK)
        return rc;
    team->size = team->users = size;
    team->timeout = timeout;
    team->spin = thread_cores() > size;
    team->fault = (err_t)ERR_INIT;
    pthread_mutex_init(&team->lock, NULL);
    thread_cond_init(&team->changed);
    rc = team_alloc(team, err);
    if (rc == ERR_OK && getrandom(&team->nonce, sizeof team->nonce, 0) < 0)
        rc = err_set(err, ERR_IO, "no random number for the comm team");
    for (int i = 0; rc == ERR_OK && i < size; i++)
        atomic_store(&team->members[i].progress, clock_now());
    if (rc == ERR_OK)
        *out = team;
    else
        threads_team_free(team);
    return rc;
}

/* Return whether there is a team with the nonce of [ticket] at its address. The
 * kernel reads the memory for us, so that a wrong address gives an error and
 * not a crash. */
static bool ticket_valid(const team_ticket_t *ticket)
{
    uint64_t nonce = 0;
    bool valid = false;
    int ends[2];

    if (ticket->team == NULL || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    valid = write(ends[1], &ticket->team->nonce, sizeof nonce) ==
                (ssize_t)sizeof nonce &&
            read(ends[0], &nonce, sizeof nonce) == (ssize_t)sizeof nonce &&
            nonce == ticket->nonce;
    close(ends[0]);
    close(ends[1]);
    return valid;
}

/* Exchange the tickets in [tickets], and then in [votes] whether each rank has
 * found the team of rank 0. All ranks find it, or all fail. */
static err_code_t team_exchange(const comm_oob_t *oob,
                                const team_ticket_t *mine,
                                team_ticket_t *tickets, char *votes, err_t *err)
{
    char found;
    err_code_t rc =
        oob->exchange(oob->context, mine, sizeof *mine, tickets, err);

    if (rc != ERR_OK)
        return rc;
    found = (char)ticket_valid(tickets);
    rc = oob->exchange(oob->context, &found, 1, votes, err);
    for (int rank = 0; rc == ERR_OK && rank < oob->size; rank++)
        if (!votes[rank])
            rc = err_set(err, ERR_UNAVAILABLE,
                         "rank %d could not join the threads team of rank 0",
                         rank);
    return rc;
}

/* Rank 0 allocates all that it needs before other ranks learn where its team
 * is: after a failure it frees the team, and then no other rank may read it. */
static err_code_t team_meet(const comm_oob_t *oob, const team_ticket_t *mine,
                            threads_team_t **out, err_t *err)
{
    const size_t size = (size_t)oob->size;
    team_ticket_t *tickets = NULL;
    char *votes = NULL;
    err_code_t rc = mem_new(team_ticket_t, size, "comm tickets", &tickets, err);

    if (rc == ERR_OK)
        rc = mem_new(char, size, "comm votes", &votes, err);
    if (rc == ERR_OK)
        rc = team_exchange(oob, mine, tickets, votes, err);
    if (rc == ERR_OK)
        *out = tickets->team;
    mem_free(votes);
    mem_free(tickets);
    return rc;
}

err_code_t threads_team_join(const comm_oob_t *oob, double timeout,
                             threads_team_t **out, err_t *err)
{
    team_ticket_t mine = {.team = NULL};
    threads_team_t *team = NULL;
    err_code_t made = ERR_OK, rc;
    err_t reason = ERR_INIT;

    if (oob->rank == 0)
        made = team_new(oob->size, timeout, &team, &reason);
    if (team != NULL) {
        mine.team = team;
        mine.nonce = team->nonce;
    }
    /* Also if the team could not be made, as the others wait. */
    rc = team_meet(oob, &mine, out, err);
    if (rc != ERR_OK)
        threads_team_free(team);
    return made == ERR_OK ? rc : err_copy(err, &reason);
}

void threads_slot_complete(threads_team_t *team, threads_slot_t *slot,
                           uint64_t number)
{
    pthread_mutex_lock(&team->lock);
    check(slot->number == number && atomic_load(&slot->completed) <= number,
          "collective %llu is complete after %llu, in the slot of %llu",
          (unsigned long long)number,
          (unsigned long long)atomic_load(&slot->completed),
          (unsigned long long)slot->number);
    atomic_store(&slot->completed, number + 1);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}
