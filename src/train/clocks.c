/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/clocks.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* The fastest of so many messages counts in each direction. */
#define ROUNDS 64

/*
 * Rank r reads its clock and sends the instant. This rank reads its own clock
 * when it has received it. The difference of both instants is the time of the
 * message plus the difference of both clocks. shortest[r] becomes the smallest
 * one of several messages.
 */
static err_code_t rounds_make(comm_group_t *group, double *instants,
                              double *shortest, err_t *err)
{
    const int size = comm_group_size(group);
    err_code_t rc = ERR_OK;

    for (int r = 0; r < size; r++)
        shortest[r] = INFINITY;
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

/* Let all ranks of a host take the shift with the smallest doubt there. */
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

err_code_t train_clocks_compare(comm_group_t *group, double *room,
                                train_clock_t *out, err_t *err)
{
    const int size = comm_group_size(group), rank = comm_group_rank(group);
    double *shortest = room + size;
    double from_first, to_first;
    err_code_t rc = rounds_make(group, room, shortest, err);

    if (rc != ERR_OK)
        return rc;
    from_first = shortest[0];
    /* Rank 0 knows how long the messages of the others took to it. */
    rc = comm_broadcast(group, shortest, (size_t)size * sizeof *shortest, 0,
                        err);
    if (rc != ERR_OK)
        return rc;
    to_first = shortest[rank];
    *out = (train_clock_t){0};
    if (strcmp(comm_group_host(group, rank), comm_group_host(group, 0)) != 0)
        *out = (train_clock_t){.shift = (to_first - from_first) / 2,
                               .doubt = (to_first + from_first) / 2};
    return host_agree(group, room, out, err);
}
