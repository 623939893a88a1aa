/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_load: all ranks together read a checkpoint once. In each turn
 * every rank reads one chunk or several (checkpoint_cut.h), sends the bytes to
 * the ranks that want them, and compares the hashes. Then the ranks vote. The
 * tensors get the same bytes that are hashed, but they get them before the
 * hashes are compared.
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
    /* [manifest->file_count]: the rank that reads each file, in ascending
     * order; NULL: all ranks read equally much */
    const int *readers;
} hdf5io_load_t;

/*
 * Compare the hashes of all bytes of the checkpoint, and read the wanted
 * tensors. If the checkpoint is damaged, *damaged is true, the error says where
 * the damage is, and reading ends after this turn. After an error with *damaged
 * false no other checkpoint may be tried (ERR_IO: storage could not be read).
 * After an error the wanted tensors are undefined. Collective; every rank gets
 * the same result.
 */
err_code_t hdf5io_load(const hdf5io_load_t *load, bool *damaged, err_t *err);

/* Compare the hashes of all bytes of the checkpoint. *damaged and errors as
 * above. Local. */
err_code_t hdf5io_load_check(const hdf5io_saved_t *saved, bool *damaged,
                             err_t *err);

/* Vote on [mine], and exchange [numbers] if all ranks succeed, like
 * hdf5io_vote. If one rank could not read and another rank found damage, the
 * result is the error of the rank that could not read. [cause] is the cause of
 * [mine], see retry_run. *damaged is set only if all ranks could read.
 * Collective. */
err_code_t hdf5io_load_vote(const hdf5io_votes_t *votes,
                            hdf5io_ballot_t *ballots, const err_t *mine,
                            retry_cause_t cause, uint64_t numbers[VOTE_NUMBERS],
                            bool *damaged, err_t *err);

#endif
