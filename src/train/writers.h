/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* writers: which ranks write a shard of a checkpoint together
 * (checkpoint.writers). Thread rule: one thread. */
#ifndef CDDP_TRAIN_WRITERS_H
#define CDDP_TRAIN_WRITERS_H

#include "comm/comm.h"
#include "train/config.h"

/* The heads of the ranks of [group], for hdf5io_checkpoint_config_t; NULL: each
 * rank writes a shard of its own. The caller frees *out with mem_free.
 * ERR_MEMORY. Local; equal on all ranks. */
err_code_t train_writers_open(const train_config_t *config,
                              const comm_group_t *group, int **out, err_t *err);

/* The rest of a sentence that begins with "checkpoint.writers", and says what
 * is wrong with this setting; NULL: nothing is wrong. */
const char *train_writers_wrong(const train_config_t *config);

#endif
