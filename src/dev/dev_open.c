/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Finds the table of a backend by its name. */
#include <string.h>

#include "base/str.h"
#include "dev/dev_ops.h"
#include "dev/dev_plugin.h"

static void unknown_say(const char *backend, err_t *err)
{
    str_buf_t names = {0};

    for (int i = 0; dev_registry[i] != NULL; i++)
        str_buf_add(&names, "%s, ", dev_registry[i]->name);
    err_set(err, ERR_UNAVAILABLE,
            "there is no device backend \"%s\" (there are: %scuda)", backend,
            names.text);
    str_buf_free(&names);
}

static err_code_t cuda_find(const dev_ops_t **out, err_t *err)
{
    const cddp_cuda_t *cuda;
    err_code_t rc = dev_plugin_get(&cuda, err);

    if (rc == ERR_OK && cuda->dev == NULL)
        rc = err_set(err, ERR_UNAVAILABLE, "the CUDA plugin has no devices");
    if (rc == ERR_OK)
        *out = cuda->dev;
    return rc;
}

static err_code_t backend_find(const char *name, const dev_ops_t **out,
                               err_t *err)
{
    for (int i = 0; dev_registry[i] != NULL; i++) {
        if (strcmp(dev_registry[i]->name, name) == 0) {
            *out = dev_registry[i];
            return ERR_OK;
        }
    }
    if (strcmp(name, "cuda") == 0)
        return cuda_find(out, err);
    unknown_say(name, err);
    return ERR_UNAVAILABLE;
}

err_code_t dev_open(const char *backend, int index, dev_device_t **out,
                    err_t *err)
{
    const dev_ops_t *ops;
    dev_device_t *dev;
    err_code_t rc = backend_find(backend, &ops, err);

    if (rc == ERR_OK)
        rc = ops->open(index, &dev, err);
    if (rc != ERR_OK)
        return rc;
    dev->ops = ops;
    *out = dev;
    return ERR_OK;
}

err_code_t dev_list(const char *backend, dev_info_t *out, int room, int *count,
                    err_t *err)
{
    const dev_ops_t *ops;
    err_code_t rc = backend_find(backend, &ops, err);

    return rc == ERR_OK ? ops->list(out, room, count, err) : rc;
}

err_code_t dev_links_find(const char *backend, int index, dev_links_t *out,
                          err_t *err)
{
    const dev_ops_t *ops;
    err_code_t rc = backend_find(backend, &ops, err);

    if (rc != ERR_OK)
        return rc;
    if (ops->links == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "devices of backend \"%s\" have no links", backend);
    return ops->links(index, out, err);
}
