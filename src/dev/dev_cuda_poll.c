/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Waiting for a GPU in such a way that a fault elsewhere can end the wait. */
#include <unistd.h>

#include "base/clock.h"
#include "dev/dev_cuda_priv.h"

/* Microseconds between two queries of the GPU. */
#define PAUSE_LEAST 5
#define PAUSE_MOST 1000

/* A pause is a sixteenth of the time that this wait has taken so far, within
 * these limits. So it makes a long wait longer by a sixteenth at most. */
static void pause_for(double waited)
{
    const double share = waited * 1e6 / 16;

    usleep(share < PAUSE_LEAST  ? PAUSE_LEAST
           : share > PAUSE_MOST ? PAUSE_MOST
                                : (useconds_t)share);
}

err_code_t dev_cuda_poll_or(dev_cuda_poll_t *poll, void *object,
                            cuda_device_t *dev, dev_look_fn *look,
                            void *context, err_t *err)
{
    const double begin = clock_now();
    double now, looked = begin;
    err_code_t rc = ERR_OK;
    cudaError_t state;

    while (rc == ERR_OK && (state = poll(object)) == cudaErrorNotReady) {
        now = clock_now();
        if (look != NULL && now - looked >= DEV_CUDA_LOOK) {
            rc = look(context, now - begin, err);
            looked = now;
        }
        pause_for(now - begin);
    }
    if (rc == ERR_OK)
        return dev_cuda_check(state, "a wait for the GPU", dev->name, err);
    dev_abandon(&dev->base);
    return rc;
}
