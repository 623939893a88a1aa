/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * mirror: arenas of a device as the host sees them. If the host can access the
 * memory of the device, it sees the arenas themselves, and pull and push do
 * nothing. Otherwise the mirror has a copy of each arena in the host's memory:
 * pull updates the copies, push writes them to the device. So whoever saves,
 * reads or sends the state of a replica works with the host's memory only.
 * Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_MIRROR_H
#define CDDP_TRAIN_MIRROR_H

#include "dev/dev.h"
#include "hdf5io/checkpoint_share.h"

/* The most arenas: parameters, running statistics, four for the optimizer's
 * state (including the moving average), two for a comm hook's state. */
#define TRAIN_MIRROR_MAX 8

typedef struct train_mirror train_mirror_t;

/* Open a mirror without arenas. Copies are made on [stream], a stream of [dev].
 * Both must outlive the mirror. */
err_code_t train_mirror_open(dev_device_t *dev, dev_stream_t *stream,
                             train_mirror_t **out, err_t *err);
void train_mirror_close(train_mirror_t *mirror); /* NULL allowed */

/* Add the arena of [elems] numbers at [arena], named [what] in ERR_MEMORY. The
 * arena must outlive the mirror. A copy contains zeros until the first pull. */
err_code_t train_mirror_add(train_mirror_t *mirror, float *arena, size_t elems,
                            const char *what, err_t *err);

/* The host's address of the element at [at] of an arena. */
float *train_mirror_host(const train_mirror_t *mirror, const float *at);

/* Bytes of the copies; 0 if the host can access the arenas. */
size_t train_mirror_bytes(const train_mirror_t *mirror);

/* Copy all arenas to the host, or the copies to the device, after the work that
 * was put on the stream before. Block until it is done. The errors are those of
 * the device. */
err_code_t train_mirror_pull(train_mirror_t *mirror, err_t *err);
err_code_t train_mirror_push(train_mirror_t *mirror, err_t *err);

/* As train_mirror_pull, at least the runs of [share], which are in the copies:
 * what this rank writes of a checkpoint. Other numbers of the copies may stay
 * as they are. */
err_code_t train_mirror_pull_share(train_mirror_t *mirror,
                                   const hdf5io_share_t *share, err_t *err);

#endif
