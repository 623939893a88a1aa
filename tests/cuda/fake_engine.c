/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * One thread for each device executes its operations when the host does not
 * wait for them by CUDA. Only two kinds of operations need this: collectives,
 * for which other processes wait, and functions of the host, for which another
 * thread may wait. All other operations stay pending until the host waits.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake_cudart.h"

typedef struct engine {
    fake_device_t *dev; /* NULL: the thread has not been started */
    bool asked;
    bool live; /* graphs may have collectives */
} engine_t;

static engine_t engines[FAKE_DEVICES];
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

void fake_hang(void)
{
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

    for (;;)
        fake_sleep(&never);
}

static void *engine_main(void *argument)
{
    engine_t *engine = argument;

    fake_lock();
    for (;;) {
        while (!engine->asked)
            fake_sleep(&asked);
        engine->asked = false;
        fake_run(engine->dev, NULL, NULL);
    }
    return NULL;
}

void fake_engine_start(fake_device_t *dev, bool live)
{
    engine_t *engine = &engines[dev - fake.device];
    pthread_t thread;

    engine->live |= live;
    engine->asked = true;
    if (engine->dev == NULL) {
        engine->dev = dev;
        if (pthread_create(&thread, NULL, engine_main, engine) != 0) {
            fprintf(stderr, "fake_cuda: no thread for a device\n");
            abort();
        }
        pthread_detach(thread);
    }
    pthread_cond_broadcast(&asked);
}

bool fake_engine_launched(fake_device_t *dev)
{
    const bool live = engines[dev - fake.device].live;

    if (live)
        fake_engine_start(dev, true);
    return live;
}

void fake_engine_await(fake_device_t *dev)
{
    while (dev->running)
        fake_sleep(&idle);
}

void fake_engine_idle(fake_device_t *dev)
{
    dev->running = false;
    pthread_cond_broadcast(&idle);
}
