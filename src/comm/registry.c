/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The backends that were built; nccl is not listed, as it is in the plugin. */
#include <string.h>

#include "comm/comm_ops.h"
#include "dev/dev_plugin.h"

static const comm_ops_t *const backends[] = {
    &comm_self_ops,
    &comm_threads_ops,
    &comm_ucx_ops,
};

static err_code_t plugin_find(const comm_ops_t **out, err_t *err)
{
    const cddp_cuda_t *plugin;
    err_code_t rc = dev_plugin_get(&plugin, err);

    if (rc == ERR_OK && plugin->comm == NULL)
        rc = err_set(err, ERR_UNAVAILABLE,
                     "the CUDA plugin has no comm backend nccl");
    if (rc == ERR_OK)
        *out = plugin->comm;
    return rc;
}

err_code_t comm_registry_find(const char *name, int size,
                              const comm_ops_t **out, err_t *err)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        name = size == 1 ? "self" : "ucx";
    if (strcmp(name, "nccl") == 0)
        return plugin_find(out, err);
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        if (strcmp(backends[i]->name, name) == 0) {
            *out = backends[i];
            return ERR_OK;
        }
    return err_set(err, ERR_CONFIG,
                   "comm backend \"%s\" is unknown: choose auto, self, "
                   "threads, ucx or nccl",
                   name);
}
