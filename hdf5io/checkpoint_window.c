/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * In the shared memory each rank has two slots, which it uses in turn. While a
 * rank writes to one of its slots, other ranks may still copy from its other
 * slot. They have finished this copy when they begin the next exchange. So one
 * exchange of an address is enough to wait for all ranks.
 *
 * If an exchange fails on one rank, another rank may still copy from the slots
 * of this rank. So the rank that closes its window last frees the shared
 * memory.
 */
#include "hdf5io/checkpoint_window.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"

static const char what[] = "reading a checkpoint";

/* Memory of rank 0 that all ranks use. */
struct hdf5io_shared {
    atomic_int users; /* ranks that have not closed their windows */
    char *slots;      /* [size][2][each] */
};

static err_code_t shared_open(hdf5io_window_t *window, size_t size, err_t *err)
{
    err_code_t rc = mem_new(hdf5io_shared_t, 1, what, &window->shared, err);

    if (rc != ERR_OK)
        return rc;
    atomic_init(&window->shared->users, 1);
    return mem_new(char, 2 * window->each * size, what, &window->shared->slots,
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
        return mem_new(char, each *size, what, &out->buffer, err);
    rc = mem_new(hdf5io_shared_t *, size, what, &out->addresses, err);
    if (rc == ERR_OK && spread->votes->rank == 0)
        rc = shared_open(out, size, err);
    return rc;
}

/* Tell all ranks the address of the shared memory, and wait for all ranks. */
static err_code_t address_exchange(hdf5io_window_t *window, err_t *err)
{
    const hdf5io_votes_t *votes = window->spread->votes;

    return votes->exchange(votes->context, &window->shared,
                           sizeof window->shared, window->addresses, err);
}

err_code_t hdf5io_window_share(hdf5io_window_t *window, err_t *err)
{
    const hdf5io_votes_t *votes = window->spread->votes;
    err_code_t rc;

    if (!votes->together)
        return ERR_OK;
    if (votes->rank == 0)
        atomic_store(&window->shared->users, votes->size);
    rc = address_exchange(window, err);
    if (rc == ERR_OK)
        window->shared = window->addresses[0];
    return rc;
}

void hdf5io_window_close(hdf5io_window_t *window)
{
    hdf5io_shared_t *shared = window->shared;

    if (shared != NULL && atomic_fetch_sub(&shared->users, 1) == 1) {
        mem_free(shared->slots);
        mem_free(shared);
    }
    mem_free(window->addresses);
    mem_free(window->buffer);
    mem_free(window->cuts);
    *window = (hdf5io_window_t){0};
}

/* The slot of [rank] for exchange number [exchange]. */
static char *slot_of(const hdf5io_window_t *window, int rank, uint64_t exchange)
{
    if (window->buffer != NULL)
        return window->buffer + window->cuts[rank];
    check(window->cuts[rank + 1] - window->cuts[rank] <= window->each,
          "rank %d writes %zu bytes to a slot of %zu bytes", rank,
          window->cuts[rank + 1] - window->cuts[rank], window->each);
    return window->shared->slots +
           (2 * (size_t)rank + (size_t)(exchange % 2)) * window->each;
}

char *hdf5io_window_slot(const hdf5io_window_t *window)
{
    return slot_of(window, window->spread->votes->rank, window->exchanges);
}

err_code_t hdf5io_window_exchange(hdf5io_window_t *window, err_t *err)
{
    window->exchanges++;
    if (window->buffer != NULL)
        return hdf5io_spread_ranges(window->spread, window->buffer,
                                    window->cuts, err);
    return address_exchange(window, err);
}

const char *hdf5io_window_bytes(const hdf5io_window_t *window, int rank)
{
    return slot_of(window, rank, window->exchanges - 1);
}
