/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_spread.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* Most bytes of one exchange: of one rank, and of all ranks together. */
#define BITE_MAX ((size_t)1 << 20)
#define ALL_MAX ((size_t)16 << 20)

err_code_t hdf5io_spread_open(const hdf5io_votes_t *votes, hdf5io_spread_t *out,
                              err_t *err)
{
    const size_t size = (size_t)votes->size;
    hdf5io_spread_t spread = {
        .votes = votes,
        .bite = ALL_MAX / size < BITE_MAX ? ALL_MAX / size + 1 : BITE_MAX};
    err_code_t rc = ERR_OK;

    if (size > 1 && (votes->spread == NULL || votes->broadcast == NULL)) {
        rc = mem_new(char, size *spread.bite, "reading a checkpoint",
                     &spread.all, err);
        if (rc == ERR_OK)
            rc = mem_new(char, spread.bite, "reading a checkpoint",
                         &spread.mine, err);
    }
    if (rc != ERR_OK) {
        hdf5io_spread_close(&spread);
        return rc;
    }
    *out = spread;
    return ERR_OK;
}

void hdf5io_spread_close(hdf5io_spread_t *spread)
{
    mem_free(spread->all);
    mem_free(spread->mine);
    *spread = (hdf5io_spread_t){0};
}

/* Number of bytes of [at, at + bite) that lie before [last]. */
static size_t bite_of(size_t at, size_t last, size_t bite)
{
    if (at >= last)
        return 0;
    return last - at < bite ? last - at : bite;
}

/* Exchange [bite] bytes of each range (fewer at its end), from byte [at] of the
 * range on. */
static err_code_t bites_exchange(hdf5io_spread_t *spread, char *data,
                                 const size_t *cuts, size_t at, size_t bite,
                                 err_t *err)
{
    const hdf5io_votes_t *votes = spread->votes;
    const size_t begin = cuts[votes->rank] + at;
    const size_t mine = bite_of(begin, cuts[votes->rank + 1], bite);
    err_code_t rc;

    if (mine > 0)
        memcpy(spread->mine, data + begin, mine);
    rc = votes->exchange(votes->context, spread->mine, bite, spread->all, err);
    for (int r = 0; r < votes->size && rc == ERR_OK; r++) {
        const size_t count = bite_of(cuts[r] + at, cuts[r + 1], bite);

        if (r != votes->rank && count > 0)
            memcpy(data + cuts[r] + at, spread->all + (size_t)r * bite, count);
    }
    return rc;
}

err_code_t hdf5io_spread_ranges(hdf5io_spread_t *spread, void *data,
                                const size_t *cuts, err_t *err)
{
    const hdf5io_votes_t *votes = spread->votes;
    size_t longest = 0;
    err_code_t rc = ERR_OK;

    if (votes->size == 1)
        return ERR_OK;
    if (votes->spread != NULL)
        return votes->spread(votes->context, data, cuts, err);
    for (int r = 0; r < votes->size; r++)
        if (cuts[r + 1] - cuts[r] > longest)
            longest = cuts[r + 1] - cuts[r];
    for (size_t at = 0; at < longest && rc == ERR_OK; at += spread->bite)
        rc = bites_exchange(spread, data, cuts, at,
                            bite_of(at, longest, spread->bite), err);
    return rc;
}

err_code_t hdf5io_spread_first(hdf5io_spread_t *spread, void *data,
                               size_t bytes, err_t *err)
{
    const hdf5io_votes_t *votes = spread->votes;
    char *to = data;
    err_code_t rc = ERR_OK;

    if (votes->size == 1)
        return ERR_OK;
    if (votes->broadcast != NULL)
        return votes->broadcast(votes->context, data, bytes, err);
    for (size_t at = 0; at < bytes && rc == ERR_OK; at += spread->bite) {
        const size_t bite = bite_of(at, bytes, spread->bite);

        if (votes->rank == 0)
            memcpy(spread->mine, to + at, bite);
        rc = votes->exchange(votes->context, spread->mine, bite, spread->all,
                             err);
        if (rc == ERR_OK && votes->rank != 0)
            memcpy(to + at, spread->all, bite);
    }
    return rc;
}
