/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* checkpoint_spread: sends the bytes of a checkpoint to other ranks, by
 * votes->spread and votes->broadcast; if these are NULL, by votes->exchange. */
#ifndef CDDP_HDF5IO_CHECKPOINT_SPREAD_H
#define CDDP_HDF5IO_CHECKPOINT_SPREAD_H

#include <stddef.h>

#include "base/err.h"
#include "hdf5io/checkpoint.h"

/* Memory for votes->exchange; NULL if it is not needed. */
typedef struct hdf5io_spread {
    const hdf5io_votes_t *votes;
    size_t bite; /* bytes of a rank in one exchange */
    char *all;   /* [size * bite] */
    char *mine;  /* [bite] */
} hdf5io_spread_t;

/* hdf5io_spread_close frees what is inside. ERR_MEMORY. Local. */
err_code_t hdf5io_spread_open(const hdf5io_votes_t *votes, hdf5io_spread_t *out,
                              err_t *err);
void hdf5io_spread_close(hdf5io_spread_t *spread);

/* See hdf5io_votes_t.spread. Collective. */
err_code_t hdf5io_spread_ranges(hdf5io_spread_t *spread, void *data,
                                const size_t *cuts, err_t *err);

/* See hdf5io_votes_t.broadcast. Collective. */
err_code_t hdf5io_spread_first(hdf5io_spread_t *spread, void *data,
                               size_t bytes, err_t *err);

#endif
