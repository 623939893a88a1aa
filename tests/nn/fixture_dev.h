/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The exec and the memory of a fixture once more, on a device whose memory the
 * host cannot access. */
#ifndef CDDP_TESTS_NN_FIXTURE_DEV_H
#define CDDP_TESTS_NN_FIXTURE_DEV_H

#include "nn/fixture.h"
#include "nn/nn_exec.h"

#define FIXTURE_BLOCKS 32

typedef struct fixture_dev {
    const fixture_t *like; /* the same on the CPU, for comparison */
    dev_device_t *dev;
    nn_exec_t *exec;
    nn_bind_t bind;
    nn_batch_t batch;
    void *blocks[FIXTURE_BLOCKS];
    int count;
} fixture_dev_t;

/* Open device [index] of [backend], which is also the name of the op backend,
 * and on it the exec that [config] describes, with copies of the memory of
 * [like]. */
void fixture_dev_open(fixture_dev_t *f, const fixture_t *like,
                      const nn_exec_config_t *config, const char *backend,
                      int index);
void fixture_dev_close(fixture_dev_t *f);

/* Copy [bytes] at [at], on the device. The caller frees them by free(). */
void *fixture_dev_read(fixture_dev_t *f, const void *at, size_t bytes);

#endif
