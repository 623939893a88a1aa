/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "base/log.h"
#include "base/mem.h"
#include "comm/nccl/nccl_group.h"
#include "dev/dev_cuda.h"

typedef struct nccl_arena {
    comm_arena_t base;
    void *handle; /* of the registration; NULL: not registered */
    bool plain;   /* the memory is dev_alloc's, not NCCL's */
} nccl_arena_t;

static void arena_plain_say(nccl_group_t *group, const char *why)
{
    if (!group->plain_said && group->base.rank == 0)
        log_info("comm",
                 "NCCL copies gradients, as their memory could not be "
                 "registered with it: %s",
                 why);
    group->plain_said = true;
}

/* Allocate memory of NCCL and register it, so that NCCL sums it without a copy.
 * Returns false if there is no such memory. */
static bool arena_register(nccl_group_t *group, size_t bytes,
                           nccl_arena_t *arena)
{
    const nccl_library_t *nccl = group->nccl;
    cudaStream_t stream = dev_cuda_stream(group->stream);
    ncclResult_t result = nccl->MemAlloc(&arena->base.data, bytes);

    if (result != ncclSuccess) {
        arena_plain_say(group, nccl->GetErrorString(result));
        return false;
    }
    result = nccl->CommRegister(group->comm, arena->base.data, bytes,
                                &arena->handle);
    if (result == ncclInProgress)
        result = nccl_settle(group, NULL) == ERR_OK ? ncclSuccess
                                                    : ncclInternalError;
    if (result != ncclSuccess) {
        arena->handle = NULL;
        arena_plain_say(group, nccl->GetErrorString(result));
    }
    if (cudaMemsetAsync(arena->base.data, 0, bytes, stream) == cudaSuccess &&
        nccl_stream_wait(group, NULL) == ERR_OK)
        return true;
    if (dev_abandoned(group->base.dev)) /* CUDA might not return */
        return false;
    if (arena->handle != NULL)
        nccl->CommDeregister(group->comm, arena->handle);
    nccl->MemFree(arena->base.data);
    arena->handle = NULL;
    return false;
}

err_code_t nccl_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                           err_t *err)
{
    nccl_group_t *group = (nccl_group_t *)base;
    const size_t need = bytes > 0 ? bytes : 1;
    nccl_arena_t *arena;
    err_code_t rc = mem_new(nccl_arena_t, 1, "comm arena", &arena, err);

    if (rc != ERR_OK)
        return rc;
    arena->base.group = base;
    arena->plain = !arena_register(group, need, arena);
    (void)cudaGetLastError(); /* a later call would return an error of these */
    if (arena->plain)
        rc = dev_alloc(base->dev, need, "comm arena", &arena->base.data, err);
    if (rc == ERR_OK)
        *out = &arena->base;
    else
        mem_free(arena);
    return rc;
}

/* Freeing memory waits until the device has stopped using it. If other ranks
 * have failed, pending collectives may never end: they are aborted first. */
void nccl_arena_close(comm_arena_t *base)
{
    nccl_arena_t *arena = (nccl_arena_t *)base;
    nccl_group_t *group = (nccl_group_t *)base->group;
    bool lost;

    if (nccl_fault(group, NULL) != ERR_OK)
        nccl_end(group, false);
    lost = dev_abandoned(group->base.dev);
    if (arena->handle != NULL && group->comm != NULL && !lost)
        group->nccl->CommDeregister(group->comm, arena->handle);
    if (arena->plain)
        dev_free(group->base.dev, base->data);
    else if (!lost)
        group->nccl->MemFree(base->data);
    mem_free(arena);
}
