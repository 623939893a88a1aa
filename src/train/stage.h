/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * stage: data.io: stage. The shards of both splits are copied to each node, and
 * a rank reads a copy as soon as it is complete (hdf5io/stage.h). If something
 * fails, the run reads the shards from their own place.
 */
#ifndef CDDP_TRAIN_STAGE_H
#define CDDP_TRAIN_STAGE_H

#include "base/str.h"
#include "hdf5io/stage.h"
#include "train/data.h"

typedef struct train_stage {
    uint64_t key;          /* of this start; equal on all ranks */
    hdf5io_stage_t *stage; /* NULL: nothing is copied */
} train_stage_t;

/* Agree on the key, if the run file asks for copies. Collective. */
err_code_t train_stage_agree(const train_config_t *config, comm_group_t *group,
                             train_stage_t *stage, err_t *err);

/* Begin to copy, and let the open splits read the copies. [local] is this
 * rank's number on its host: rank 0 there warns if nothing can be copied.
 * Before anything is read ahead. Local. */
void train_stage_open(const train_config_t *config, const comm_group_t *group,
                      int local, const train_data_t *train,
                      const train_data_t *valid, train_stage_t *stage);

/* To be called after the splits are closed. Removes the copies, unless other
 * ranks of the node use them. Local; a zeroed one is allowed. */
void train_stage_close(train_stage_t *stage);

/* Append a line: how many shards will be copied where. Nothing without
 * data.io: stage. */
void train_stage_add(const train_config_t *config, const train_data_t *train,
                     const train_data_t *valid, str_buf_t *text);

#endif
