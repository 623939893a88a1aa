/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How ranks agree that all of them are well, so that an error of one ends all
 * with the same status, and the sentence is printed once.
 */
#ifndef CDDP_TRAIN_VOTE_H
#define CDDP_TRAIN_VOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "comm/comm.h"

/* The all-gather that a vote goes through; see boot_exchange. */
typedef struct train_votes {
    void *context;
    int rank, size;
    err_code_t (*exchange)(void *context, const void *mine, size_t bytes,
                           void *all, err_t *err);
} train_votes_t;

/* Votes over a group. */
train_votes_t train_votes_of_group(comm_group_t *group);

/*
 * Tell all ranks how this one fares: [code] with its sentence in [err] (not
 * read for ERR_OK). ERR_OK when all are well; else the error of the lowest rank
 * that has one, on every rank, in [err], with rank and host in front if others
 * are well. *speaker is true on that rank only (rank 0 if all are well), which
 * is the one to print. Collective; blocks as the exchange does. When the
 * exchange itself fails, its error is returned and every rank speaks.
 */
err_code_t train_vote(const train_votes_t *votes, err_code_t code,
                      bool *speaker, err_t *err);

/* Everybody learns the [bytes] bytes in [data] of rank [from], there. On
 * failure, the exchange's or ERR_MEMORY, [data] is as it was. Collective. */
err_code_t train_tell(const train_votes_t *votes, int from, void *data,
                      size_t bytes, err_t *err);

#endif
