/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * touch: makes the kernel map the pages of arenas before the first step uses
 * them, on cores that are idle at that time. The contents of the arenas stay,
 * and other threads may use them at the same time. If the kernel cannot do this
 * (Linux before 5.14), pages are mapped when they are first used.
 */
#ifndef CDDP_TRAIN_TOUCH_H
#define CDDP_TRAIN_TOUCH_H

#include <stddef.h>

#include "base/err.h"

#define TRAIN_TOUCH_MAX 8

typedef struct train_touch_arena {
    void *block;
    size_t bytes;
} train_touch_arena_t;

typedef struct train_touch train_touch_t;

/* Start [threads] threads (>= 1) that touch [count] <= TRAIN_TOUCH_MAX arenas,
 * in order. The arenas must stay allocated until train_touch_close. */
err_code_t train_touch_open(const train_touch_arena_t *arenas, int count,
                            int threads, train_touch_t **out, err_t *err);

/* Wait until all pages are touched. */
void train_touch_wait(train_touch_t *touch);

/* Stop touching pages, and free [touch]. NULL allowed. */
void train_touch_close(train_touch_t *touch);

#endif
