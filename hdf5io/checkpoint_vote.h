/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_vote: all ranks learn the outcome of a stage, so that they go on
 * or give up together, with the same code and sentence.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_VOTE_H
#define CDDP_HDF5IO_CHECKPOINT_VOTE_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint.h"

#define VOTE_NUMBERS 3

/* What a rank says beside its outcome: free numbers. */
typedef struct hdf5io_ballot {
    int64_t code; /* err_code_t; filled by hdf5io_vote */
    uint64_t numbers[VOTE_NUMBERS];
} hdf5io_ballot_t;

/*
 * Vote: [mine] is this rank's outcome (code ERR_OK: fine), [numbers] go to all
 * ([all], votes->size ballots in rank order, NULL: not wanted). If any rank
 * failed, every rank returns the code of the lowest that did, with its sentence
 * behind "rank R on HOST: ". *agreed (NULL allowed) tells the two kinds of
 * failure apart: true if the vote itself worked. Collective.
 */
err_code_t hdf5io_vote(const hdf5io_votes_t *votes, const err_t *mine,
                       const uint64_t numbers[VOTE_NUMBERS],
                       hdf5io_ballot_t *all, bool *agreed, err_t *err);

#endif
