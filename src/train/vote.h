/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * vote: ranks tell each other whether they have an error. An error of one rank
 * ends all ranks with one status, and its message is printed once.
 */
#ifndef CDDP_TRAIN_VOTE_H
#define CDDP_TRAIN_VOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "comm/comm.h"

/* The all-gather with which ranks vote; see boot_exchange. */
typedef struct train_votes {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
} train_votes_t;

/* Votes that use the collectives of [group]. */
train_votes_t train_votes_of_group(comm_group_t *group);

/*
 * Tell all ranks the outcome of this rank: [code], with its message in [err]
 * (not read for ERR_OK). Returns ERR_OK if no rank has an error; otherwise
 * every rank gets the error of the lowest rank that has one. If other ranks
 * have no error, the message begins with that rank and its host. *speaker is
 * set to true only on the rank that should print the message: the lowest one
 * with an error, or rank 0 if there is no error. Collective; blocks as the
 * exchange does. If the exchange itself fails, every rank gets the error of the
 * exchange and *speaker is true.
 */
err_code_t train_vote(const train_votes_t *votes, err_code_t code,
                      bool *speaker, err_t *err);

/* Copy [bytes] bytes at [data] of rank [from] to [data] on all ranks. On
 * failure (of the exchange, or ERR_MEMORY) [data] is unchanged. Collective. */
err_code_t train_tell(const train_votes_t *votes, int from, void *data,
                      size_t bytes, err_t *err);

#endif
