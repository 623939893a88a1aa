/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Arenas: memory that NCCL allocates and knows, so that NCCL sums without a
 * copy. From version 2.27 of NCCL on, this memory is registered as a window of
 * all ranks: then NCCL can also use kernels that read and write the memory of
 * other ranks. Either all ranks must have a window, or no rank: on each rank,
 * NCCL chooses its kernels without asking the other ranks. So the ranks agree
 * before they register windows, and once more afterwards.
 */
#include "base/log.h"
#include "base/mem.h"
#include "comm/nccl/nccl_group.h"
#include "dev/dev_cuda.h"

/* The kind of memory that this rank has for an arena. */
typedef enum arena_kind {
    ARENA_PLAIN, /* of dev_alloc */
    ARENA_NCCL,  /* of NCCL */
    ARENA_WINDOW /* of NCCL, which has windows */
} arena_kind_t;

typedef struct nccl_arena {
    comm_arena_t base;
    void *handle; /* of the registration; NULL: not registered */
    void *window; /* NULL: no window */
    bool plain;   /* the memory is dev_alloc's, not NCCL's */
} nccl_arena_t;

/* ---- what the log says, once --------------------------------------------- */

static void arena_plain_say(nccl_group_t *group, const char *why)
{
    if (!group->plain_said && group->base.rank == 0)
        log_info("comm",
                 "NCCL copies gradients, as their memory could not be "
                 "registered with it: %s",
                 why);
    group->plain_said = true;
}

static void arena_say(nccl_group_t *group, const nccl_arena_t *arena)
{
    if (!group->memory_said && group->base.rank == 0)
        log_debug("comm", "NCCL knows the memory of gradients %s",
                  arena->window != NULL   ? "as a window, where it can use one"
                  : arena->handle != NULL ? "of each rank"
                                          : "of no rank");
    group->memory_said = true;
}

/* ---- open ---------------------------------------------------------------- */

/* Wait until a call of NCCL, which returned [result], is no longer in progress.
 * Returns its final result. A call may return ncclSuccess while a thread of
 * NCCL still works on it, as ncclCommWindowRegister does in version 2.28. Only
 * the state of the communicator says when the call is done. */
static ncclResult_t arena_settle(nccl_group_t *group, ncclResult_t result)
{
    if (result != ncclSuccess && result != ncclInProgress)
        return result;
    return nccl_settle(group, NULL) == ERR_OK ? ncclSuccess : ncclInternalError;
}

/* Let NCCL allocate zeroed memory. */
static arena_kind_t arena_alloc(nccl_group_t *group, size_t bytes,
                                nccl_arena_t *arena)
{
    const nccl_library_t *nccl = group->nccl;
    cudaStream_t stream = dev_cuda_stream(group->stream);
    const ncclResult_t result = nccl->MemAlloc(&arena->base.data, bytes);

    if (result != ncclSuccess) {
        arena_plain_say(group, nccl->GetErrorString(result));
        return ARENA_PLAIN;
    }
    if (cudaMemsetAsync(arena->base.data, 0, bytes, stream) == cudaSuccess &&
        nccl_stream_wait(group, NULL) == ERR_OK)
        return nccl->CommWindowRegister != NULL ? ARENA_WINDOW : ARENA_NCCL;
    if (!dev_abandoned(group->base.dev)) /* else CUDA might not return */
        nccl->MemFree(arena->base.data);
    return ARENA_PLAIN;
}

static void window_close(nccl_group_t *group, nccl_arena_t *arena)
{
    if (arena->window != NULL)
        (void)arena_settle(group, group->nccl->CommWindowDeregister(
                                      group->comm, arena->window));
    arena->window = NULL;
}

/* Register the memory of all ranks as a window. Where NCCL cannot use windows,
 * some versions store no handle. Other versions, such as 2.27 and 2.28,
 * register the memory of each rank alone, and store a handle of that
 * registration. If one rank has no handle, all other ranks close theirs. */
static err_code_t window_open(nccl_group_t *group, size_t bytes,
                              nccl_arena_t *arena, err_t *err)
{
    ncclResult_t result =
        group->nccl->CommWindowRegister(group->comm, arena->base.data, bytes,
                                        &arena->window, NCCL_WINDOW_SYMMETRIC);
    int32_t have;
    err_code_t rc;

    result = arena_settle(group, result);
    if (result != ncclSuccess)
        arena->window = NULL;
    have = arena->window != NULL;
    rc = nccl_least(group, &have, err);
    if (rc == ERR_OK && !have)
        window_close(group, arena);
    return rc;
}

/* Register the memory of this rank. */
static void arena_register(nccl_group_t *group, size_t bytes,
                           nccl_arena_t *arena)
{
    const nccl_library_t *nccl = group->nccl;
    const ncclResult_t result =
        arena_settle(group, nccl->CommRegister(group->comm, arena->base.data,
                                               bytes, &arena->handle));

    if (result == ncclSuccess)
        return;
    arena->handle = NULL;
    arena_plain_say(group, nccl->GetErrorString(result));
}

/* Set *out to a new arena, and *least to the kind of memory that all ranks
 * have. If a rank has no memory for the struct, all ranks fail, and *out is
 * NULL on that rank. It sends a negative number, from which the others compute
 * which rank it is. */
static err_code_t arena_begin(nccl_group_t *group, size_t bytes,
                              nccl_arena_t **out, int32_t *least, err_t *err)
{
    const comm_group_t *base = &group->base;
    err_t own = ERR_INIT;
    err_code_t rc = mem_new(nccl_arena_t, 1, "comm arena", out, &own);
    int culprit;

    *least = base->rank - base->size;
    if (rc == ERR_OK) {
        (*out)->base.group = &group->base;
        *least = (int32_t)arena_alloc(group, bytes, *out);
        (*out)->plain = *least == ARENA_PLAIN;
    }
    rc = nccl_least(group, least, err);
    if (rc != ERR_OK || *least >= 0)
        return rc;
    if (*out == NULL)
        return err_copy(err, &own);
    culprit = base->size + *least;
    return err_set(err, ERR_MEMORY,
                   "rank %d on %s: no memory left for a comm arena",
                   comm_rank_name(base, culprit), base->hellos[culprit].host);
}

err_code_t nccl_arena_open(comm_group_t *base, size_t bytes, comm_arena_t **out,
                           err_t *err)
{
    nccl_group_t *group = (nccl_group_t *)base;
    const size_t need = bytes > 0 ? bytes : 1;
    nccl_arena_t *arena = NULL;
    int32_t least;
    err_code_t rc = arena_begin(group, need, &arena, &least, err);

    if (rc == ERR_OK && least == ARENA_WINDOW)
        rc = window_open(group, need, arena, err);
    if (rc == ERR_OK && !arena->plain && arena->window == NULL)
        arena_register(group, need, arena);
    (void)cudaGetLastError(); /* a later call would return an error of these */
    if (rc == ERR_OK && arena->plain)
        rc = dev_alloc(base->dev, need, "comm arena", &arena->base.data, err);
    if (rc == ERR_OK) {
        arena_say(group, arena);
        *out = &arena->base;
        return ERR_OK;
    }
    if (arena == NULL || arena->plain)
        mem_free(arena);
    else
        nccl_arena_close(&arena->base);
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
    if (group->comm != NULL && !lost)
        window_close(group, arena);
    if (arena->handle != NULL && group->comm != NULL && !lost)
        group->nccl->CommDeregister(group->comm, arena->handle);
    if (arena->plain)
        dev_free(group->base.dev, base->data);
    else if (!lost)
        group->nccl->MemFree(base->data);
    mem_free(arena);
}
