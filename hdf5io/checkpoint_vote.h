/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_vote: all ranks learn the outcome of a stage, so that they
 * continue or fail together, with the same code and sentence.
 */
#ifndef CDDP_HDF5IO_CHECKPOINT_VOTE_H
#define CDDP_HDF5IO_CHECKPOINT_VOTE_H

#include <stdint.h>

#include "base/err.h"
#include "hdf5io/checkpoint.h"

#define VOTE_NUMBERS 3

/* What one rank contributes to a vote: its outcome and a few numbers. */
typedef struct hdf5io_ballot {
    int64_t code; /* err_code_t; filled by hdf5io_vote */
    uint64_t numbers[VOTE_NUMBERS];
} hdf5io_ballot_t;

/*
 * [mine] is this rank's outcome (code ERR_OK: success), [numbers] (or NULL) its
 * numbers. [all] (or NULL) receives the ballots of all votes->size ranks, in
 * rank order. If any rank failed, every rank returns the code of the lowest
 * failed rank, with that rank's sentence after "rank R on HOST: ". *agreed (may
 * be NULL) is true if the vote itself worked, so that a failed stage differs
 * from a failed exchange. Collective.
 */
err_code_t hdf5io_vote(const hdf5io_votes_t *votes, const err_t *mine,
                       const uint64_t numbers[VOTE_NUMBERS],
                       hdf5io_ballot_t *all, bool *agreed, err_t *err);

#endif
