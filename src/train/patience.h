/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * patience: reports progress for a rank that waits for slow storage. One system
 * call (fsync, read) may take longer than fault.timeout. Meanwhile the rank
 * cannot report progress, so a thread of this object does, for at most
 * fault.io_timeout: a rank that waits for its disk has not failed. A stopped or
 * dead process reports nothing.
 *
 * Thread rule: also, begin and end are called from one thread.
 */
#ifndef CDDP_TRAIN_PATIENCE_H
#define CDDP_TRAIN_PATIENCE_H

#include "comm/comm.h"

typedef struct train_patience train_patience_t;

/* Start the thread. Between begin and end it reports to [group], which outlives
 * this object, several times in each [timeout] seconds, until [limit] seconds
 * have passed since the last begin. ERR_MEMORY. */
err_code_t train_patience_open(comm_group_t *group, double timeout,
                               double limit, train_patience_t **out,
                               err_t *err);
void train_patience_close(train_patience_t *patience); /* NULL allowed */

/* also: report to [group] (NULL: nothing is done), too. only: report to the
 * first group only; to be called before one of the others is closed. */
void train_patience_also(train_patience_t *patience, comm_group_t *group);
void train_patience_only(train_patience_t *patience);

/* From here until end, this rank may wait for storage; [phase] is a static
 * text. Another begin before end reports progress. [patience] NULL: nothing is
 * done, as no other rank waits for this one. */
void train_patience_begin(train_patience_t *patience, int64_t step,
                          const char *phase);
void train_patience_end(train_patience_t *patience);

#endif
