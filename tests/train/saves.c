/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/saves.h"

#include <stdlib.h>

#include "base/str.h"
#include "lib/entries.h"

void saves_open(harness_t *harness, const char *async, const char *every,
                const char *more)
{
    harness_open(harness, 101);
    harness->settings[0] = async;
    harness->settings[1] = every;
    harness->settings[2] = "checkpoint.keep=100";
    harness->settings[3] = "train.epochs=2";
    harness->settings[4] = "train.batch=24";
    harness->settings[5] = more;
}

int saves_count(const harness_t *harness, const char *prefix)
{
    char *path = str_printf("%s/run/checkpoints", harness->dir);
    const int count = entries_begin(path, prefix);

    free(path);
    return count;
}
