/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * update: the end of a step on the device of the optimizer's place: the norm of
 * the gradients, the verdict whether there is an update, and the update. It
 * keeps what these read of the step, in the host's memory and on the device.
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_UPDATE_H
#define CDDP_TRAIN_UPDATE_H

#include "optim/optim.h"
#include "train/shard.h"

typedef struct train_update {
    dev_device_t *dev;
    optim_t *optim;         /* not owned */
    optim_case_t about;     /* filled by the caller before judge */
    optim_verdict_t result; /* after judge */
    optim_in_t *in;         /* [in_bytes] */
    size_t in_bytes;
    void *there; /* memory of the device: the following, one after the other */
    optim_verdict_t *there_verdict;
    optim_case_t *there_about;
    optim_in_t *there_in;
} train_update_t;

/* [update] is zeroed before; close it after a failure, too. */
err_code_t train_update_open(dev_device_t *dev, optim_t *optim,
                             train_update_t *update, err_t *err);
void train_update_close(train_update_t *update);

/* A step whose gradients and losses are complete. */
typedef struct train_update_step {
    dev_stream_t *stream;
    train_shard_t *shard; /* NULL: this rank has the whole arena */
    ddp_t *ddp;
    float *params, *grads; /* [elems] */
    size_t elems;
    optim_question_t question; /* but for [about] */
    double lr;
    int64_t number; /* of the update, counted from 1 */
} train_update_step_t;

/* Set the gradients of frozen parameters to 0, and *norm to the norm of this
 * rank's own gradients. Blocks. */
err_code_t train_update_norm(train_update_t *update,
                             const train_update_step_t *step, double *norm,
                             err_t *err);

/* Set update->result. Blocks. Collective with shards. */
err_code_t train_update_judge(train_update_t *update,
                              const train_update_step_t *step, err_t *err);

/* Update the parameters, if update->result says so. Collective with shards;
 * otherwise it does not block. */
err_code_t train_update_run(train_update_t *update,
                            const train_update_step_t *step, err_t *err);

#endif
