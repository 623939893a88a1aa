/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The device backends that were built in. */
#include "dev/dev_ops.h"

const char *const dev_choices[] = {"auto", DEV_HOST, "cuda", NULL};

const dev_ops_t *const dev_registry[] = {
    &dev_cpu_ops,
    NULL,
};
