/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * In the common block each rank has two rooms, which it uses in turn. A rank
 * fills one of them while the others may still copy from the other one: they
 * have done so when they begin the next exchange. So one exchange of an address
 * is enough to wait for each other.
 *
 * If an exchange fails on one rank, another rank may still copy from the rooms
 * of this one. So the block is freed by the rank that closes it last.
 */
#include "hdf5io/checkpoint_window.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"

static const char what[] = "reading a checkpoint";

/* What all ranks use. Rank 0 makes it. */
struct hdf5io_hall {
    atomic_int users; /* ranks that have not closed it */
    char *rooms;      /* [size][2][each] */
};

static err_code_t hall_open(hdf5io_window_t *window, size_t size, err_t *err)
{
    err_code_t rc = mem_new(hdf5io_hall_t, 1, what, &window->hall, err);

    if (rc != ERR_OK)
        return rc;
    atomic_init(&window->hall->users, 1);
    return mem_new(char, 2 * window->each * size, what, &window->hall->rooms,
                   err);
}

err_code_t hdf5io_window_open(hdf5io_spread_t *spread, size_t each,
                              hdf5io_window_t *out, err_t *err)
{
    const size_t size = (size_t)spread->votes->size;
    err_code_t rc;

    *out = (hdf5io_window_t){.spread = spread, .each = each};
    rc = mem_new(size_t, size + 1, what, &out->cuts, err);
    if (rc != ERR_OK)
        return rc;
    if (!spread->votes->together)
        return mem_new(char, each *size, what, &out->apart, err);
    rc = mem_new(hdf5io_hall_t *, size, what, &out->halls, err);
    if (rc == ERR_OK && spread->votes->rank == 0)
        rc = hall_open(out, size, err);
    return rc;
}

/* Give the address of the hall to all ranks, and wait for all of them. */
static err_code_t hall_tell(hdf5io_window_t *window, err_t *err)
{
    const hdf5io_votes_t *votes = window->spread->votes;

    return votes->exchange(votes->context, &window->hall, sizeof window->hall,
                           window->halls, err);
}

err_code_t hdf5io_window_meet(hdf5io_window_t *window, err_t *err)
{
    const hdf5io_votes_t *votes = window->spread->votes;
    err_code_t rc;

    if (!votes->together)
        return ERR_OK;
    if (votes->rank == 0)
        atomic_store(&window->hall->users, votes->size);
    rc = hall_tell(window, err);
    if (rc == ERR_OK)
        window->hall = window->halls[0];
    return rc;
}

void hdf5io_window_close(hdf5io_window_t *window)
{
    hdf5io_hall_t *hall = window->hall;

    if (hall != NULL && atomic_fetch_sub(&hall->users, 1) == 1) {
        mem_free(hall->rooms);
        mem_free(hall);
    }
    mem_free(window->halls);
    mem_free(window->apart);
    mem_free(window->cuts);
    *window = (hdf5io_window_t){0};
}

/* The room of [rank] for exchange number [exchange]. */
static char *room_of(const hdf5io_window_t *window, int rank, uint64_t exchange)
{
    if (window->apart != NULL)
        return window->apart + window->cuts[rank];
    check(window->cuts[rank + 1] - window->cuts[rank] <= window->each,
          "rank %d passes on %zu bytes, its room has %zu", rank,
          window->cuts[rank + 1] - window->cuts[rank], window->each);
    return window->hall->rooms +
           (2 * (size_t)rank + (size_t)(exchange % 2)) * window->each;
}

char *hdf5io_window_room(const hdf5io_window_t *window)
{
    return room_of(window, window->spread->votes->rank, window->exchanges);
}

err_code_t hdf5io_window_exchange(hdf5io_window_t *window, err_t *err)
{
    window->exchanges++;
    if (window->apart != NULL)
        return hdf5io_spread_ranges(window->spread, window->apart, window->cuts,
                                    err);
    return hall_tell(window, err);
}

const char *hdf5io_window_bytes(const hdf5io_window_t *window, int rank)
{
    return room_of(window, rank, window->exchanges - 1);
}
