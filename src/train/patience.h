/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * patience: storage may keep a rank in one system call, an fsync or a read, for
 * longer than fault.timeout, and the rank cannot report progress from in there.
 * A thread does it meanwhile, for fault.io_timeout at most: a rank that waits
 * for its disk has not failed, one that is stopped or dead reports nothing.
 *
 * Thread rule: also, begin and end from one thread.
 */
#ifndef CDDP_TRAIN_PATIENCE_H
#define CDDP_TRAIN_PATIENCE_H

#include "comm/comm.h"

typedef struct train_patience train_patience_t;

/* Reports to [group], which outlives it, several times in [timeout] seconds,
 * for [limit] seconds from each begin. ERR_MEMORY. */
err_code_t train_patience_open(comm_group_t *group, double timeout,
                               double limit, train_patience_t **out,
                               err_t *err);
void train_patience_close(train_patience_t *patience); /* NULL allowed */

/* Ranks wait for this one in [group], too; NULL: no longer, before that is
 * closed. */
void train_patience_also(train_patience_t *patience, comm_group_t *group);

/* From here to end this rank may be in storage; [phase] is a static text. Again
 * before end: there was progress. NULL allowed: nobody waits for this rank. */
void train_patience_begin(train_patience_t *patience, int64_t step,
                          const char *phase);
void train_patience_end(train_patience_t *patience);

#endif
