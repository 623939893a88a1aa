/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_load: reads a checkpoint once, by all ranks together. In each turn
 * every rank reads one chunk (checkpoint_cut.h) and compares its hash; the
 * ranks vote; then they pass on what they have read. So the very bytes that
 * were compared are those that are used.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_LOAD_H
#define CDDP_HDF5IO_CHECKPOINT_LOAD_H

#include <stdbool.h>

#include "base/err.h"
#include "hdf5io/checkpoint_read.h"
#include "hdf5io/checkpoint_spread.h"
#include "hdf5io/checkpoint_vote.h"

typedef struct hdf5io_load {
    hdf5io_saved_t saved;
    hdf5io_spread_t *spread;
    uint64_t window;                /* bytes; 0: the default */
    hdf5io_ballot_t *ballots;       /* [size], scratch */
    const hdf5io_tensor_t *tensors; /* of this rank */
    /* [manifest->tensor_count]: index in [tensors], -1: not wanted */
    const int *wanted;
} hdf5io_load_t;

/*
 * Compare every byte of the checkpoint, and read what is wanted of it. If it is
 * damaged, *damaged is true, and the error says where; reading ends after the
 * turn in which this is found. With *damaged false an error ends the reading of
 * any checkpoint (ERR_IO: storage could not be read). After an error the wanted
 * tensors are undefined. Collective; every rank gets the same result.
 */
err_code_t hdf5io_load(const hdf5io_load_t *load, bool *damaged, err_t *err);

/* Compare every byte of the checkpoint. *damaged and errors as above. Local. */
err_code_t hdf5io_load_check(const hdf5io_saved_t *saved, bool *damaged,
                             err_t *err);

/* Vote on [mine], and exchange [numbers] if all ranks succeed: hdf5io_vote with
 * the rule that a rank which cannot read learns nothing about the checkpoint,
 * so its error takes precedence over damage that another rank found. [cause] is
 * that of [mine], see retry_run. *damaged is set only if all ranks could read.
 * Collective. */
err_code_t hdf5io_load_vote(const hdf5io_votes_t *votes,
                            hdf5io_ballot_t *ballots, const err_t *mine,
                            retry_cause_t cause, uint64_t numbers[VOTE_NUMBERS],
                            bool *damaged, err_t *err);

#endif
