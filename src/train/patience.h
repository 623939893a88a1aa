/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * patience: slow storage may keep a rank in one system call (fsync, read) for
 * longer than fault.timeout. Meanwhile the rank cannot report progress, so a
 * thread of this object does, for at most fault.io_timeout: a rank that waits
 * for its disk has not failed. A stopped or dead process reports nothing.
 *
 * Thread rule: also, begin and end from one thread.
 */
#ifndef CDDP_TRAIN_PATIENCE_H
#define CDDP_TRAIN_PATIENCE_H

#include "comm/comm.h"

typedef struct train_patience train_patience_t;

/* Report to [group], which outlives this object, several times in each
 * [timeout] seconds, until [limit] seconds after the last begin. ERR_MEMORY. */
err_code_t train_patience_open(comm_group_t *group, double timeout,
                               double limit, train_patience_t **out,
                               err_t *err);
void train_patience_close(train_patience_t *patience); /* NULL allowed */

/* Report to [group], too. NULL: no longer; call it before that group is closed.
 */
void train_patience_also(train_patience_t *patience, comm_group_t *group);

/* Until end, this rank may wait for storage; [phase] is a static text. A begin
 * before end reports progress. NULL allowed: no rank waits for this one. */
void train_patience_begin(train_patience_t *patience, int64_t step,
                          const char *phase);
void train_patience_end(train_patience_t *patience);

#endif
