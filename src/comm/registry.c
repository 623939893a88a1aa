/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The backends that were built, one row each. */
#include <string.h>

#include "comm/comm_ops.h"

static const comm_ops_t *const backends[] = {
    &comm_self_ops,
    &comm_threads_ops,
    &comm_ucx_ops,
};

const comm_ops_t *comm_registry_find(const char *name, int size, err_t *err)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        name = size == 1 ? "self" : "ucx";
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    err_set(err, ERR_CONFIG,
            "comm backend \"%s\" is unknown: choose auto, self, threads or "
            "ucx",
            name);
    return NULL;
}
