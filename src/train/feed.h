/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * feed: brings batches to a device. A batch is copied on a stream of its own to
 * a slot, memory of the device for one batch; with two slots the device can
 * compute another batch meanwhile. The feed pins the loader's memory. Where the
 * host can access the device's memory, batches stay where they are. Thread
 * rule: one thread.
 */
#ifndef CDDP_TRAIN_FEED_H
#define CDDP_TRAIN_FEED_H

#include "hdf5io/loader.h"
#include "nn/nn.h"

typedef struct train_feed train_feed_t;

#define TRAIN_FEED_SLOTS 2 /* at most */

typedef struct train_feed_plan {
    dev_device_t *dev;
    const nn_graph_t *graph;
    hdf5io_loader_t *loader; /* whose batches they are; NULL: others */
    int64_t most;            /* samples of the largest batch */
    int slots;
} train_feed_plan_t;

/* Device and loader must outlive the feed. Neither put nor take allocates. */
err_code_t train_feed_open(const train_feed_plan_t *plan, train_feed_t **out,
                           err_t *err);
/* Waits for the copies. If the device was given up (dev_abandon), copies may
 * never end: then the loader keeps its memory until the process ends. NULL
 * allowed. */
void train_feed_close(train_feed_t *feed);

/* Start to copy [batch], which must stay unchanged until the work that reads
 * the copy is done. The slots are used in turns: the work that reads the batch
 * that was in this slot before must be done. Does not block. */
err_code_t train_feed_put(train_feed_t *feed, const hdf5io_batch_t *batch,
                          err_t *err);

/* Call this instead of a put if there is no batch, or after a put that failed,
 * so that all ranks of a run use the same slot. */
void train_feed_skip(train_feed_t *feed);

/* Set [out] to the batch that was put last, in the memory of the device. Later
 * work on [stream] starts after the copy. Does not block. */
err_code_t train_feed_take(train_feed_t *feed, dev_stream_t *stream,
                           hdf5io_batch_t *out, err_t *err);

/* The number of the slot in which the batch put last is. */
int train_feed_slot(const train_feed_t *feed);

#endif
