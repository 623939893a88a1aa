/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/place.h"

#include <string.h>

#include "dev/dev_plugin.h"
#include "optim/place_ops.h"

static err_code_t cuda_find(const optim_place_ops_t **out, err_t *err)
{
    const cddp_cuda_t *cuda;
    err_code_t rc = dev_plugin_get(&cuda, err);

    if (rc == ERR_OK && cuda->optim == NULL)
        return err_set(err, ERR_UNAVAILABLE,
                       "there are no optimizers for GPUs in this build");
    if (rc == ERR_OK)
        *out = cuda->optim;
    return rc;
}

/* The place for devices of the backend [name]. */
static err_code_t ops_find(const char *name, const optim_place_ops_t **out,
                           err_t *err)
{
    for (int i = 0; optim_registry[i] != NULL; i++) {
        if (strcmp(optim_registry[i]->name, name) == 0) {
            *out = optim_registry[i];
            return ERR_OK;
        }
    }
    if (strcmp(name, "cuda") == 0)
        return cuda_find(out, err);
    return err_set(err, ERR_UNAVAILABLE,
                   "there are no optimizers for the device %s", name);
}

err_code_t optim_place_open(dev_device_t *dev, size_t elems,
                            optim_place_t **out, err_t *err)
{
    const optim_place_ops_t *ops = NULL;
    err_code_t rc = ops_find(dev_name(dev), &ops, err);

    if (rc == ERR_OK)
        rc = ops->open(dev, elems, out, err);
    if (rc != ERR_OK)
        return rc;
    (*out)->ops = ops;
    (*out)->dev = dev;
    return ERR_OK;
}

void optim_place_close(optim_place_t *place)
{
    if (place != NULL)
        place->ops->close(place);
}

void optim_place_team(optim_place_t *place, int threads)
{
    if (place->ops->team != NULL)
        place->ops->team(place, threads);
}

err_code_t optim_norm(optim_place_t *place, const float *grads, size_t elems,
                      double *norm, dev_stream_t *stream, err_t *err)
{
    return place->ops->norm(place, grads, elems, norm, stream, err);
}

size_t optim_norm_blocks(size_t elems)
{
    return (elems + OPTIM_BLOCK - 1) / OPTIM_BLOCK;
}

err_code_t optim_norm_part(optim_place_t *place, const float *grads,
                           view_range_t range, double *blocks,
                           dev_stream_t *stream, err_t *err)
{
    return place->ops->norm_part(place, grads, range, blocks, stream, err);
}

err_code_t optim_norm_whole(optim_place_t *place, const double *blocks,
                            size_t count, double *norm, dev_stream_t *stream,
                            err_t *err)
{
    return place->ops->norm_whole(place, blocks, count, norm, stream, err);
}

err_code_t optim_norm_flag(optim_place_t *place, const double *norm,
                           double *flag, dev_stream_t *stream, err_t *err)
{
    return place->ops->norm_flag(place, norm, flag, stream, err);
}

err_code_t optim_scale(optim_place_t *place, float *data, size_t elems,
                       float factor, dev_stream_t *stream, err_t *err)
{
    return place->ops->scale(place, data, elems, factor, stream, err);
}

err_code_t optim_judge(optim_place_t *place, const optim_question_t *question,
                       optim_verdict_t *verdict, dev_stream_t *stream,
                       err_t *err)
{
    return place->ops->judge(place, question, verdict, stream, err);
}
