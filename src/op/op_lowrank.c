/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/op_lowrank.h"

#include "base/check.h"
#include "op/op_ops.h"

bool op_lowrank_offered(const op_backend_ops_t *backend)
{
    return backend->lowrank != NULL;
}

err_code_t op_lowrank_open(const op_backend_ops_t *backend, dev_device_t *dev,
                           const op_lowrank_config_t *config,
                           op_lowrank_t **out, err_t *err)
{
    err_code_t rc;

    check(backend->lowrank != NULL, "%s has no arithmetic for PowerSGD",
          backend->name);
    check(config->rank >= 1, "rank %d", config->rank);
    rc = backend->lowrank->open(dev, config, out, err);
    if (rc == ERR_OK)
        (*out)->ops = backend->lowrank;
    return rc;
}

void op_lowrank_close(op_lowrank_t *lowrank)
{
    if (lowrank != NULL)
        lowrank->ops->close(lowrank);
}

err_code_t op_lowrank_run(op_lowrank_t *lowrank, const op_lowrank_part_t *part,
                          dev_stream_t *stream, err_t *err)
{
    return part->count == 0 ? ERR_OK
                            : lowrank->ops->run(lowrank, part, stream, err);
}
