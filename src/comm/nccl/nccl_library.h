/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * nccl_library: NCCL's functions. The library is loaded when the first group of
 * the backend nccl is opened, so a run of one rank needs no NCCL.
 */
#ifndef CDDP_COMM_NCCL_NCCL_LIBRARY_H
#define CDDP_COMM_NCCL_NCCL_LIBRARY_H

#include <nccl.h>

#include "base/err.h"

/* The functions that are used, without the "nccl" of their names. */
#define NCCL_FUNCTIONS(_) \
    _(GetVersion)         \
    _(GetErrorString)     \
    _(GetLastError)       \
    _(GetUniqueId)        \
    _(CommInitRankConfig) \
    _(CommGetAsyncError)  \
    _(CommFinalize)       \
    _(CommDestroy)        \
    _(CommAbort)          \
    _(GroupStart)         \
    _(GroupEnd)           \
    _(AllReduce)          \
    _(Reduce)             \
    _(ReduceScatter)      \
    _(Broadcast)          \
    _(AllGather)          \
    _(Send)               \
    _(Recv)               \
    _(MemAlloc)           \
    _(MemFree)            \
    _(CommRegister)       \
    _(CommDeregister)

#define NCCL_POINTER(name) __typeof__(nccl##name) *name;
typedef struct nccl_library {
    NCCL_FUNCTIONS(NCCL_POINTER)
    /* ncclCommInitRankScalable; NULL: this library has none (before 2.23). */
    ncclResult_t (*CommInitRankScalable)(ncclComm_t *comm, int size, int rank,
                                         int ids, ncclUniqueId *id,
                                         ncclConfig_t *config);
    /* ncclCommWindowRegister and ncclCommWindowDeregister; NULL: this library
     * has none (before 2.27). [window] is an ncclWindow_t. */
    ncclResult_t (*CommWindowRegister)(ncclComm_t comm, void *data,
                                       size_t bytes, void **window, int flags);
    ncclResult_t (*CommWindowDeregister)(ncclComm_t comm, void *window);
} nccl_library_t;

/* NCCL_WIN_COLL_SYMMETRIC, which headers before 2.27 lack. */
#define NCCL_WINDOW_SYMMETRIC 1

/* Load the library, which stays loaded. ERR_UNAVAILABLE: it was not found, or
 * is too old. Any thread. */
err_code_t nccl_library_get(const nccl_library_t **out, err_t *err);

#endif
