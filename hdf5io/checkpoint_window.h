/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_window: passes bytes from each rank to all ranks while they read a
 * checkpoint. The window has a slot for each rank. A rank writes its bytes to
 * its slot, then all ranks exchange the slots, and then each rank copies the
 * bytes that it needs from the slots. If the ranks are threads of one process
 * (hdf5io_votes_t.together), all slots are in one block of memory that the
 * ranks share, so the exchange copies nothing. Otherwise each rank has a buffer
 * with the slots of all ranks, and the exchange sends the bytes.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_WINDOW_H
#define CDDP_HDF5IO_CHECKPOINT_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint_spread.h"

typedef struct hdf5io_shared hdf5io_shared_t;

typedef struct hdf5io_window {
    hdf5io_spread_t *spread;
    size_t each;             /* most bytes of a slot */
    size_t *cuts;            /* [size + 1], see hdf5io_window_exchange */
    char *buffer;            /* the slots of all ranks; NULL: in [shared] */
    hdf5io_shared_t *shared; /* NULL: none, or hdf5io_window_share is to come */
    hdf5io_shared_t **addresses; /* [size], scratch: of each rank */
    uint64_t exchanges;          /* number of exchanges that have begun */
} hdf5io_window_t;

/* Open a window whose slots have at most [each] bytes, a multiple of
 * HDF5IO_SPREAD_ALIGN. The caller calls hdf5io_window_close, also after an
 * error. ERR_MEMORY. Local. */
err_code_t hdf5io_window_open(hdf5io_spread_t *spread, size_t each,
                              hdf5io_window_t *out, err_t *err);
/* Tell all ranks the address of the shared memory, if there is any. All ranks
 * must have opened the window before. Collective; blocks. */
err_code_t hdf5io_window_share(hdf5io_window_t *window, err_t *err);
/* Free the memory of the window. The last rank that closes its window frees the
 * shared memory. Local. */
void hdf5io_window_close(hdf5io_window_t *window);

/* The slot of this rank for the next exchange. The caller has set [cuts]. */
char *hdf5io_window_slot(const hdf5io_window_t *window);
/* Exchange the slots: rank r has written cuts[r + 1] - cuts[r] bytes to its
 * slot. All ranks have set the same cuts, as hdf5io_votes_t.spread requires.
 * Collective; blocks. */
err_code_t hdf5io_window_exchange(hdf5io_window_t *window, err_t *err);
/* The bytes of [rank] in the last exchange. They are valid until this rank
 * begins the next exchange. */
const char *hdf5io_window_bytes(const hdf5io_window_t *window, int rank);

#endif
