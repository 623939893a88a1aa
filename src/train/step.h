/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The parts of a step, each in the file that is named with it. */
#ifndef CDDP_TRAIN_STEP_H
#define CDDP_TRAIN_STEP_H

#include "train/run_priv.h"

/* Seconds of the parts of a step; [begin] is the clock instant at its start. On
 * a device that works by itself, forward and backward are the times of their
 * calls, and backward includes the wait for the device. */
typedef struct train_times {
    double begin, data, forward, backward;
    /* All-reduces besides those of the buckets; none is overlapped. */
    double tree;
} train_times_t;

/*
 * step_in.c: tell the device what it has to know of the step.
 * - begin: all but the weights, from [batch] (NULL: this rank has none).
 * - weigh: the weights, when their sum over ranks is known.
 * - send: enqueue the copy.
 */
void train_in_begin(train_state_t *run, const hdf5io_batch_t *batch);
void train_in_weigh(train_state_t *run);
err_code_t train_in_send(train_state_t *run, err_t *err);

/* flags.c: set the flags of the tail for received signals, for the end of the
 * job and for the time of the next checkpoint. */
void train_flags_fill(train_state_t *run, double *flags);

/*
 * Local SGD (local_sgd.c):
 * - due: return whether the next step uses each rank's own gradients.
 * - begin: tell the reducer; called after ddp_step_begin.
 * - check: enqueue a check whether this rank's gradients are finite. The other
 *   ranks do not see these gradients, so it is enqueued while this rank can
 *   still report the error in the tail.
 * - blame: after a step that failed: ERR_DIVERGED or ERR_DATA if this rank's
 *   gradients are the reason.
 * - end: average over ranks if it is time. Collective.
 * - apart: return whether ranks differ, so that what is due has to wait; this
 *   is logged once.
 */
bool train_local_due(const train_state_t *run);
void train_local_begin(train_state_t *run);
err_code_t train_local_check(train_state_t *run, err_t *err);
err_code_t train_local_blame(const train_state_t *run,
                             const hdf5io_batch_t *batch, err_t *err);
err_code_t train_local_end(train_state_t *run, train_times_t *times,
                           err_t *err);
bool train_local_apart(train_state_t *run);

/* leaves.c: a step in reproducible mode. The results are stored where the
 * default mode stores them. [own] is the error of this rank so far, and becomes
 * its error in this step. Returns the result of the reductions. Collective;
 * blocks. */
err_code_t train_leaves_step(train_state_t *run, const hdf5io_batch_t *batch,
                             train_times_t *times, train_own_t *own);

/* leaves.c: an evaluation step in reproducible mode. train_leaves_eval sums
 * over the leaves of this rank. It is local, so its errors are known before any
 * rank enters the reduction. train_leaves_eval_reduce adds the sums of all
 * ranks into [sums] from EVAL_FLAGS on. */
err_code_t train_leaves_eval(train_state_t *run, const hdf5io_batch_t *batch,
                             err_t *err);
err_code_t train_leaves_eval_reduce(train_state_t *run,
                                    const hdf5io_batch_t *batch, double *sums,
                                    err_t *err);

/*
 * step_end.c: the end of a step whose sums over ranks are in the tail, or will
 * be when the replica's stream gets there.
 * - start: enqueue norm, verdict, fold and update, and the copy of their
 *   results to the host. Collective with shards, where it blocks.
 * - finish: after a wait for the stream. Advance run->progress, or return the
 *   error that all ranks agree on. [own] is this rank's own error. Collective.
 */
err_code_t train_end_start(train_state_t *run, err_t *err);
err_code_t train_end_finish(train_state_t *run, const hdf5io_batch_t *batch,
                            train_times_t *times, train_own_t *own);

#endif
