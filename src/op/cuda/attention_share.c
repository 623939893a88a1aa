/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cuda/attention_share.h"

#include "base/mem.h"
#include "op/cuda/libs.h"

struct cuda_attention_shared {
    cuda_attention_shared_t *next;
    cuda_attention_shape_t shape;
    cuda_attention_plans_t plans;
    bool unsupported;
    int users;
};

static err_code_t shared_make(dev_device_t *dev,
                              const cuda_attention_shape_t *shape,
                              cuda_attention_shared_t **out, err_t *err)
{
    cuda_planner_t planner = {0};
    err_t words = ERR_INIT; /* cuDNN's message; dropped if unsupported */
    cuda_attention_shared_t *shared;
    err_code_t rc = cuda_libs_dnn(dev, &planner.handle, err);

    if (rc == ERR_OK)
        rc = mem_new(cuda_attention_shared_t, 1, "plans of attention", &shared,
                     err);
    if (rc != ERR_OK)
        return rc;
    shared->shape = *shape;
    rc = cuda_attention_plans_open(shape, &planner, &shared->plans,
                                   &shared->unsupported, &words);
    if (rc != ERR_OK) {
        cuda_attention_plans_close(&shared->plans);
        mem_free(shared);
        err_copy(err, &words);
        return rc;
    }
    *out = shared;
    return ERR_OK;
}

err_code_t cuda_attention_share(dev_device_t *dev,
                                const cuda_attention_shape_t *shape,
                                cuda_attention_shared_t **out, err_t *err)
{
    cuda_attention_shared_t **list = NULL, *shared;
    err_code_t rc = cuda_libs_attention(dev, &list, err);

    if (rc != ERR_OK)
        return rc;
    for (shared = *list; shared != NULL; shared = shared->next)
        if (cuda_attention_shapes_equal(&shared->shape, shape))
            break;
    if (shared == NULL) {
        rc = shared_make(dev, shape, &shared, err);
        if (rc != ERR_OK)
            return rc;
        shared->next = *list;
        *list = shared;
    }
    shared->users++;
    *out = shared;
    return ERR_OK;
}

void cuda_attention_drop(dev_device_t *dev, cuda_attention_shared_t *shared)
{
    err_t none = ERR_INIT;
    cuda_attention_shared_t **link;

    if (shared == NULL || --shared->users > 0)
        return;
    if (cuda_libs_attention(dev, &link, &none) != ERR_OK)
        return; /* impossible: the list exists, as [shared] is in it */
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    cuda_attention_plans_close(&shared->plans);
    mem_free(shared);
}

const cuda_attention_plans_t *
cuda_attention_plans(const cuda_attention_shared_t *shared)
{
    return shared->unsupported ? NULL : &shared->plans;
}
