/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * step_io: what the host tells the device of a step, and what the device tells
 * the host at its end. Both are small blocks, copied from and to pinned memory,
 * so that a step needs one wait. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_STEP_IO_H
#define CDDP_TRAIN_STEP_IO_H

#include "optim/optim.h"
#include "train/tail.h"

/* Filled by the host. The optimizer's part follows: train_io_optim. */
typedef struct train_step_in {
    op_step_t step;
    optim_case_t about;
    double flags[TRAIN_TAIL_FLAGS]; /* the tail's, of this rank */
    double failed;                  /* 1 */
} train_step_in_t;

typedef struct train_step_out {
    optim_verdict_t verdict;
    double tail[]; /* flags and sums of losses over all ranks */
} train_step_out_t;

typedef struct train_step_io {
    dev_device_t *dev;
    const nn_graph_t *graph;
    size_t in_bytes;
    train_step_in_t *in;   /* [in_bytes], memory of the host */
    train_step_out_t *out; /* memory of the host */
    /* Memory of the device: a copy of [in], and the verdict. */
    train_step_in_t *there;
    optim_verdict_t *verdict;
} train_step_io_t;

/* [io] is zeroed before; on failure, too, train_io_close frees it. */
err_code_t train_io_open(dev_device_t *dev, const nn_graph_t *graph,
                         const optim_t *optim, train_step_io_t *io, err_t *err);
void train_io_close(train_step_io_t *io);

/* The optimizer's part of [in], which may be io->in or io->there. */
optim_in_t *train_io_optim(train_step_in_t *in);

/*
 * Enqueue on [stream]:
 * - send: the copy of io->in to the device.
 * - begin: the tail gets the flags that were sent, and zeros behind them.
 * - flags: the tail gets the flags that were sent, and nothing else.
 * - fail: the tail's FAILED becomes 1.
 * - fetch: the copies of verdict, flags and sums of losses to io->out, which is
 *   valid after a wait for [stream].
 * io->in must stay as it is until the copy is done. None blocks.
 */
err_code_t train_io_send(train_step_io_t *io, dev_stream_t *stream, err_t *err);
err_code_t train_io_flags(train_step_io_t *io, double *tail,
                          dev_stream_t *stream, err_t *err);
err_code_t train_io_begin(train_step_io_t *io, double *tail,
                          dev_stream_t *stream, err_t *err);
err_code_t train_io_fail(train_step_io_t *io, double *tail,
                         dev_stream_t *stream, err_t *err);
err_code_t train_io_fetch(train_step_io_t *io, const double *tail,
                          dev_stream_t *stream, err_t *err);

#endif
