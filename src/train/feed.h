/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * feed: brings batches to a device. A batch is copied on a stream of its own,
 * while the device computes the batch before it. For that the feed has memory
 * of the device for two batches, and pins the loader's. Where the host can
 * access the device's memory, batches stay where they are. Thread rule: one
 * thread.
 */
#ifndef CDDP_TRAIN_FEED_H
#define CDDP_TRAIN_FEED_H

#include "hdf5io/loader.h"
#include "nn/nn.h"

typedef struct train_feed train_feed_t;

/* Open a feed to [dev] for batches of up to [most] samples of [graph]. They are
 * in the memory of [loader], or anywhere if it is NULL. Device and loader must
 * outlive the feed. Neither put nor take allocates. */
err_code_t train_feed_open(dev_device_t *dev, const nn_graph_t *graph,
                           hdf5io_loader_t *loader, int64_t most,
                           train_feed_t **out, err_t *err);
/* Waits for the copies. NULL allowed. */
void train_feed_close(train_feed_t *feed);

/* Start to copy [batch], which must stay unchanged until the work that reads
 * the copy is done. It takes the place of the batch that was put before the
 * last one: the work that reads that one must be done. Does not block. */
err_code_t train_feed_put(train_feed_t *feed, const hdf5io_batch_t *batch,
                          err_t *err);

/* Set [out] to the batch that was put last, in the memory of the device. Later
 * work on [stream] starts after the copy. Does not block. */
err_code_t train_feed_take(train_feed_t *feed, dev_stream_t *stream,
                           hdf5io_batch_t *out, err_t *err);

/* The number of the slot in which the batch put last is: 0 or 1. */
int train_feed_slot(const train_feed_t *feed);

#endif
