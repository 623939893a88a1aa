/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_window: passes bytes from each rank to all ranks while they read a
 * checkpoint. A rank puts its bytes into its room, then all ranks exchange, and
 * then each rank copies what it wants from the rooms. If the ranks are threads
 * of one process (hdf5io_votes_t.together), all rooms are in one block of
 * memory, so the exchange copies nothing. Otherwise each rank has memory for
 * the rooms of all ranks, and the exchange sends the bytes.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_WINDOW_H
#define CDDP_HDF5IO_CHECKPOINT_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_spread.h"

typedef struct hdf5io_hall hdf5io_hall_t;

typedef struct hdf5io_window {
    hdf5io_spread_t *spread;
    size_t each;           /* most bytes of a room */
    size_t *cuts;          /* [size + 1], see hdf5io_window_exchange */
    char *apart;           /* the rooms of all ranks; NULL: in [hall] */
    hdf5io_hall_t *hall;   /* that all ranks use; NULL: none, or not yet met */
    hdf5io_hall_t **halls; /* [size], scratch */
    uint64_t exchanges;    /* so far */
} hdf5io_window_t;

/* Open a window whose rooms have at most [each] bytes, a multiple of
 * HDF5IO_SPREAD_ALIGN. hdf5io_window_close frees what is inside, also after an
 * error. ERR_MEMORY. Local. */
err_code_t hdf5io_window_open(hdf5io_spread_t *spread, size_t each,
                              hdf5io_window_t *out, err_t *err);
/* Let the ranks find each other's rooms, after all ranks have opened the
 * window. Collective; blocks. */
err_code_t hdf5io_window_meet(hdf5io_window_t *window, err_t *err);
/* The last rank frees what all ranks use. Local. */
void hdf5io_window_close(hdf5io_window_t *window);

/* The room of this rank for the next exchange. The caller has set [cuts]. */
char *hdf5io_window_room(const hdf5io_window_t *window);
/* Exchange the rooms: rank r has put cuts[r + 1] - cuts[r] bytes into its room.
 * All ranks have set the same cuts, which are what hdf5io_votes_t.spread needs.
 * Collective; blocks. */
err_code_t hdf5io_window_exchange(hdf5io_window_t *window, err_t *err);
/* The bytes of [rank] in the last exchange. They are valid until this rank
 * begins the next exchange. */
const char *hdf5io_window_bytes(const hdf5io_window_t *window, int rank);

#endif
