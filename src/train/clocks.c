/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/clocks.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"

/* In each direction the fastest of so many messages counts. While the doubt of
 * a rank is larger than GOAL seconds, as on a busy machine, as many messages
 * follow again, until the caller's patience is over. */
#define ROUNDS 64
#define GOAL 0.25e-3

/*
 * Rank r reads its clock and sends the instant. This rank reads its own clock
 * when it has received it. The difference of both instants is the time of the
 * message plus the difference of both clocks. shortest[r] becomes the smallest
 * of these differences and of its old value. [instants] is scratch.
 */
static err_code_t rounds_make(comm_group_t *group, double *instants,
                              double *shortest, err_t *err)
{
    const int size = comm_group_size(group);
    err_code_t rc = ERR_OK;

    for (int i = 0; i < ROUNDS && rc == ERR_OK; i++) {
        const double before = clock_now();
        double after;

        rc = comm_allgather(group, &before, sizeof before, instants, err);
        after = clock_now();
        for (int r = 0; r < size && rc == ERR_OK; r++)
            shortest[r] = fmin(shortest[r], after - instants[r]);
    }
    return rc;
}

/* Find this rank's shift and doubt from the messages between it and rank 0.
 * [theirs] is scratch. */
static err_code_t own_find(comm_group_t *group, const double *shortest,
                           double *theirs, train_clock_t *out, err_t *err)
{
    const int size = comm_group_size(group), rank = comm_group_rank(group);
    err_code_t rc;

    /* Rank 0 knows how long the messages of the others took to it. */
    memcpy(theirs, shortest, (size_t)size * sizeof *theirs);
    rc = comm_broadcast(group, theirs, (size_t)size * sizeof *theirs, 0, err);
    if (rc != ERR_OK)
        return rc;
    *out = (train_clock_t){0};
    if (strcmp(comm_group_host(group, rank), comm_group_host(group, 0)) != 0)
        *out = (train_clock_t){.shift = (theirs[rank] - shortest[0]) / 2,
                               .doubt = (theirs[rank] + shortest[0]) / 2};
    return ERR_OK;
}

/* Let all ranks of a host take the shift with the smallest doubt there. [room]
 * is scratch for two numbers a rank. */
static err_code_t host_agree(comm_group_t *group, double *room,
                             train_clock_t *clock, err_t *err)
{
    const char *host = comm_group_host(group, comm_group_rank(group));
    const double mine[2] = {clock->shift, clock->doubt};
    err_code_t rc = comm_allgather(group, mine, sizeof mine, room, err);

    if (rc != ERR_OK)
        return rc;
    clock->doubt = INFINITY;
    for (int r = 0; r < comm_group_size(group); r++)
        if (room[2 * r + 1] < clock->doubt &&
            strcmp(comm_group_host(group, r), host) == 0)
            *clock = (train_clock_t){room[2 * r], room[2 * r + 1]};
    return ERR_OK;
}

/* Should further rounds follow? Rank 0's clock tells whether the patience is
 * over. All ranks get the same answer. */
static err_code_t goes_on(comm_group_t *group, double doubt, double end,
                          bool *out, err_t *err)
{
    const bool first = comm_group_rank(group) == 0;
    double both[2] = {doubt, first && clock_now() >= end};
    err_code_t rc = comm_allreduce(group, both, 2, COMM_FLOAT64, COMM_MAX, err);

    *out = rc == ERR_OK && both[0] > GOAL && both[1] == 0;
    return rc;
}

err_code_t train_clocks_compare(comm_group_t *group, double patience,
                                double *room, train_clock_t *out, err_t *err)
{
    const int size = comm_group_size(group);
    const double end = clock_now() + patience;
    double *shortest = room + 2 * (size_t)size;
    bool more = true;
    err_code_t rc = ERR_OK;

    for (int r = 0; r < size; r++)
        shortest[r] = INFINITY;
    while (rc == ERR_OK && more) {
        rc = rounds_make(group, room, shortest, err);
        if (rc == ERR_OK)
            rc = own_find(group, shortest, room, out, err);
        if (rc == ERR_OK)
            rc = host_agree(group, room, out, err);
        if (rc == ERR_OK)
            rc = goes_on(group, out->doubt, end, &more, err);
    }
    return rc;
}
