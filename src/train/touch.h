/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * touch: arenas whose pages come before the first step asks for them, one by
 * one, on cores that would be idle meanwhile. What is in the arenas stays as it
 * is, and others may use them at the same time. A hint: where the kernel cannot
 * (Linux before 5.14), pages come when they are used, as they would anyway.
 */
#ifndef CDDP_TRAIN_TOUCH_H
#define CDDP_TRAIN_TOUCH_H

#include <stddef.h>

#include "base/err.h"

#define TRAIN_TOUCH_ROOMS 8

typedef struct train_room {
    void *block;
    size_t bytes;
} train_room_t;

typedef struct train_touch train_touch_t;

/* Let [threads] threads (>= 1) touch [rooms], [count] <= TRAIN_TOUCH_ROOMS, in
 * order. The rooms stay until train_touch_close. */
err_code_t train_touch_open(const train_room_t *rooms, int count, int threads,
                            train_touch_t **out, err_t *err);

/* Wait until all is touched. */
void train_touch_wait(train_touch_t *touch);

/* Stop where it is; NULL allowed. */
void train_touch_close(train_touch_t *touch);

#endif
