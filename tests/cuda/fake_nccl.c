/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The calls of NCCL. Communicators must not block (config.blocking = 0), so
 * each call may still be in progress when it returns. Until the state of the
 * communicator says that the call is done, the communicator must not be used.
 * Some errors are forbidden but NCCL would not notice them: to use a
 * communicator after its end, or to destroy it before the graphs that use it.
 * After such an error the process ends with a sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/nccl/nccl_library.h"
#include "fake_nccl.h"

#define GROUP_MOST 4096

static ncclComm_t comms; /* protected by fake_lock */

/* The group of calls that this thread collects. */
typedef struct group {
    int depth, count;
    ncclComm_t comm;
    cudaStream_t stream;
    fake_item_t items[GROUP_MOST];
} group_t;

/* A thread's group is not NULL at first; simt.h says why. */
static group_t none;
static _Thread_local group_t *mine = &none;

static void forbidden(const char *what)
{
    fprintf(stderr, "fake_nccl: %s\n", what);
    abort();
}

/* Begin a call on [comm], which must be usable. */
static ncclResult_t comm_begin(const char *name, ncclComm_t comm)
{
    if (fake_begin(name) != cudaSuccess)
        return ncclUnhandledCudaError;
    if (comm == NULL)
        return ncclInvalidArgument;
    if (comm->state == FAKE_COMM_GONE)
        forbidden("a communicator is used after its end");
    if (comm->state == FAKE_COMM_FINAL || comm->late > 0 ||
        !fake_mail_complete(comm->mail) || comm->window != NULL)
        return ncclInvalidUsage;
    return ncclSuccess;
}

static ncclResult_t comm_end(ncclResult_t result)
{
    fake_end_library();
    return result;
}

static ncclResult_t pending(void)
{
    return fake.settings.nccl_silent ? ncclSuccess : ncclInProgress;
}

/* The result of a call that may stay in progress. */
static ncclResult_t progress(ncclComm_t comm)
{
    comm->late = fake.settings.nccl_late;
    return comm->late > 0 ? pending() : ncclSuccess;
}

/* ---- communicators ------------------------------------------------------- */

static ncclResult_t version(int *out)
{
    *out = NCCL_VERSION_CODE;
    return ncclSuccess;
}

static const char *error_text(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress"};

    return texts[result];
}

static const char *last_error(ncclComm_t comm)
{
    (void)comm;
    return "";
}

static ncclResult_t id_make(ncclUniqueId *out)
{
    const ncclResult_t result = fake_begin("ncclGetUniqueId") == cudaSuccess
                                    ? ncclSuccess
                                    : ncclUnhandledCudaError;

    memset(out, 0, sizeof *out);
    if (result == ncclSuccess)
        fake_mail_name(out->internal);
    return comm_end(result);
}

static ncclResult_t comm_join(ncclComm_t *out, int size, const char *name,
                              int rank, const ncclConfig_t *config)
{
    ncclComm_t comm;

    if (config == NULL || config->blocking != 0 || rank < 0 || rank >= size ||
        size > FAKE_RANKS)
        return comm_end(ncclInvalidArgument);
    comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return comm_end(ncclSystemError);
    comm->rank = rank;
    comm->size = size;
    comm->dev = fake_current();
    comm->mail = fake_mail_join(name, rank, size);
    if (comm->mail == NULL) {
        free(comm);
        return comm_end(ncclSystemError);
    }
    comm->next = comms;
    comms = comm;
    fake.counts.objects++;
    comm->late = fake.settings.nccl_late + 1;
    *out = comm;
    return comm_end(ncclInProgress);
}

static ncclResult_t comm_open(ncclComm_t *out, int size, ncclUniqueId id,
                              int rank, ncclConfig_t *config)
{
    if (fake_begin_plain("ncclCommInitRankConfig") != cudaSuccess)
        return comm_end(ncclUnhandledCudaError);
    fake.counts.ids = 1;
    return comm_join(out, size, id.internal, rank, config);
}

/* All ids must differ, as each is made by another rank. */
static ncclResult_t comm_open_scalable(ncclComm_t *out, int size, int rank,
                                       int count, ncclUniqueId *ids,
                                       ncclConfig_t *config)
{
    if (fake_begin_plain("ncclCommInitRankScalable") != cudaSuccess)
        return comm_end(ncclUnhandledCudaError);
    if (count < 1 || count > size)
        return comm_end(ncclInvalidArgument);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (memcmp(&ids[i], &ids[k], sizeof *ids) == 0)
                return comm_end(ncclInvalidArgument);
    fake.counts.ids = count;
    return comm_join(out, size, ids[0].internal, rank, config);
}

/* The handle of a window is stored when all ranks have registered this window.
 * Returns whether no handle is left to be stored. */
static bool window_await(ncclComm_t comm)
{
    if (comm->window != NULL && fake_mail_windows(comm->mail, comm->windows)) {
        *comm->window = comm->window_is;
        comm->window = NULL;
    }
    return comm->window == NULL;
}

static ncclResult_t comm_state(ncclComm_t comm, ncclResult_t *out)
{
    if (fake_begin("ncclCommGetAsyncError") != cudaSuccess)
        return comm_end(ncclUnhandledCudaError);
    if (comm->state == FAKE_COMM_GONE)
        forbidden("a communicator is asked for its state after its end");
    *out = ncclSuccess;
    if (comm->late > 0)
        comm->late--;
    if (fake_mail_stopped(comm->mail))
        *out = ncclRemoteError;
    else if (comm->late > 0 || !fake_mail_complete(comm->mail) ||
             !fake_mail_captures(comm->mail, comm->captures) ||
             !window_await(comm))
        *out = ncclInProgress;
    else if (++comm->polls == fake.settings.nccl_async)
        *out = ncclInternalError;
    return comm_end(ncclSuccess);
}

/* Common to both ways of ending a communicator, which nothing uses any more. */
static void comm_free(ncclComm_t comm)
{
    fake_engine_await(comm->dev);
    if (comm->registered != 0)
        forbidden("a communicator ends before the memory registered with it "
                  "is given back");
    comm->state = FAKE_COMM_GONE;
    fake_jobs_free(comm);
    fake_mail_leave(comm->mail);
    comm->mail = NULL;
    fake.counts.objects--;
}

static ncclResult_t comm_finalize(ncclComm_t comm)
{
    ncclResult_t result = comm_begin("ncclCommFinalize", comm);

    if (result != ncclSuccess)
        return comm_end(result);
    if (comm->graphs != 0)
        forbidden("a communicator is finalized before the graphs that use it "
                  "are destroyed: NCCL waits for them for ever");
    fake_run(comm->dev, NULL, NULL);
    comm->state = FAKE_COMM_FINAL;
    return comm_end(progress(comm));
}

static ncclResult_t comm_destroy(ncclComm_t comm)
{
    if (fake_begin("ncclCommDestroy") != cudaSuccess)
        return comm_end(ncclUnhandledCudaError);
    if (comm->state != FAKE_COMM_FINAL || comm->late > 0)
        forbidden("a communicator is destroyed that was not finalized");
    comm_free(comm);
    return comm_end(ncclSuccess);
}

static ncclResult_t comm_abort(ncclComm_t comm)
{
    (void)fake_begin("ncclCommAbort");
    if (comm->state == FAKE_COMM_GONE)
        forbidden("a communicator is aborted after its end");
    if (fake.settings.nccl_hangs)
        fake_hang();
    for (int i = 0; i < FAKE_BLOCKS; i++)
        comm->blocks[i] = NULL;
    comm->registered = 0;
    fake.counts.windows = fake.counts.registered = 0;
    fake_mail_stop(comm->mail);
    comm_free(comm);
    return comm_end(ncclSuccess);
}

/* ---- groups -------------------------------------------------------------- */

static ncclResult_t group_start(void)
{
    if (mine == &none && (mine = calloc(1, sizeof *mine)) == NULL) {
        mine = &none;
        return ncclSystemError;
    }
    mine->depth++;
    return ncclSuccess;
}

static ncclResult_t group_end(void)
{
    group_t *group = mine;
    ncclResult_t result = ncclSuccess;

    if (group == &none || --group->depth > 0)
        return group == &none ? ncclInvalidUsage : ncclSuccess;
    mine = &none;
    if (group->count > 0) {
        result = comm_begin("ncclGroupEnd", group->comm);
        if (result == ncclSuccess)
            result = fake_nccl_push(group->comm, group->items, group->count,
                                    group->stream);
        if (result == ncclSuccess)
            result = progress(group->comm);
        comm_end(result);
    }
    free(group);
    return result;
}

/* ---- collectives --------------------------------------------------------- */

/* Is the call valid? Its buffers must be in device memory, for all bytes that
 * the call reads and writes. */
static bool item_fits(ncclComm_t comm, const fake_item_t *item)
{
    const size_t bytes = item->count * fake_type_bytes(item->type);
    const size_t all = bytes * (size_t)comm->size;
    const fake_call_t call = item->call;
    const size_t reads = call == FAKE_RECV             ? 0
                         : call == FAKE_REDUCE_SCATTER ? all
                                                       : bytes;
    const size_t writes = call == FAKE_SEND        ? 0
                          : call == FAKE_ALLGATHER ? all
                                                   : bytes;

    return bytes > 0 && (call < FAKE_SEND || item->peer != comm->rank) &&
           item->peer >= 0 && item->peer < comm->size &&
           (call > FAKE_REDUCE_SCATTER || fake_type_reduces(item->type)) &&
           (reads == 0 || fake_memory_has(item->from, reads)) &&
           (writes == 0 || fake_memory_has(item->to, writes));
}

static ncclResult_t call(const char *name, ncclComm_t comm,
                         const fake_item_t *item, cudaStream_t stream)
{
    ncclResult_t result = comm_begin(name, comm);
    group_t *group = mine;

    if (result == ncclSuccess &&
        (!item_fits(comm, item) || stream == NULL || stream->dev != comm->dev))
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return comm_end(result);
    if (group == &none) {
        result = fake_nccl_push(comm, item, 1, stream);
        return comm_end(result == ncclSuccess ? progress(comm) : result);
    }
    if (group->count == GROUP_MOST ||
        (group->count > 0 && (group->comm != comm || group->stream != stream)))
        return comm_end(ncclInvalidUsage);
    group->comm = comm;
    group->stream = stream;
    group->items[group->count++] = *item;
    return comm_end(ncclSuccess);
}

static ncclResult_t all_reduce(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    const fake_item_t item = {FAKE_ALLREDUCE, from, to, count, type, op, 0};

    return call("ncclAllReduce", comm, &item, stream);
}

static ncclResult_t reduce(const void *from, void *to, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    const fake_item_t item = {FAKE_REDUCE, from, to, count, type, op, root};

    return call("ncclReduce", comm, &item, stream);
}

static ncclResult_t reduce_scatter(const void *from, void *to, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream)
{
    const fake_item_t item = {
        FAKE_REDUCE_SCATTER, from, to, count, type, op, 0};

    return call("ncclReduceScatter", comm, &item, stream);
}

static ncclResult_t broadcast(const void *from, void *to, size_t count,
                              ncclDataType_t type, int root, ncclComm_t comm,
                              cudaStream_t stream)
{
    const fake_item_t item = {FAKE_BROADCAST, from,    to,  count,
                              type,           ncclSum, root};

    return call("ncclBroadcast", comm, &item, stream);
}

static ncclResult_t all_gather(const void *from, void *to, size_t count,
                               ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream)
{
    const fake_item_t item = {FAKE_ALLGATHER, from,    to, count,
                              type,           ncclSum, 0};

    return call("ncclAllGather", comm, &item, stream);
}

static ncclResult_t message_send(const void *from, size_t count,
                                 ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t stream)
{
    const fake_item_t item = {FAKE_SEND, from,    NULL, count,
                              type,      ncclSum, peer};

    return call("ncclSend", comm, &item, stream);
}

static ncclResult_t message_receive(void *to, size_t count, ncclDataType_t type,
                                    int peer, ncclComm_t comm,
                                    cudaStream_t stream)
{
    const fake_item_t item = {FAKE_RECV, NULL, to, count, type, ncclSum, peer};

    return call("ncclRecv", comm, &item, stream);
}

/* ---- memory -------------------------------------------------------------- */

static ncclResult_t memory_alloc(void **out, size_t bytes)
{
    return cudaMalloc(out, bytes) == cudaSuccess ? ncclSuccess
                                                 : ncclUnhandledCudaError;
}

static ncclResult_t memory_free(void *data)
{
    for (ncclComm_t comm = comms; comm != NULL; comm = comm->next)
        for (int i = 0; comm->state != FAKE_COMM_GONE && i < FAKE_BLOCKS; i++)
            if (data != NULL && comm->blocks[i] == data)
                forbidden("memory is freed that is registered with a "
                          "communicator");
    return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

static void block_add(ncclComm_t comm, const void *data)
{
    int i = 0;

    while (i < FAKE_BLOCKS && comm->blocks[i] != NULL)
        i++;
    if (i == FAKE_BLOCKS)
        forbidden("too many blocks of memory are registered");
    comm->blocks[i] = data;
    comm->registered++;
}

static void block_remove(ncclComm_t comm, const void *data)
{
    int i = 0;

    while (i < FAKE_BLOCKS && comm->blocks[i] != data)
        i++;
    if (data == NULL || i == FAKE_BLOCKS)
        forbidden("memory is deregistered that is not registered");
    comm->blocks[i] = NULL;
    comm->registered--;
}

static ncclResult_t memory_register(const ncclComm_t comm, void *data,
                                    size_t bytes, void **handle)
{
    ncclResult_t result = comm_begin("ncclCommRegister", comm);

    if (result == ncclSuccess && !fake_memory_has(data, bytes))
        result = ncclInvalidArgument;
    if (result == ncclSuccess) {
        block_add(comm, data);
        fake.counts.registered++;
        *handle = data;
    }
    return comm_end(result);
}

static ncclResult_t memory_deregister(const ncclComm_t comm, void *handle)
{
    (void)fake_begin("ncclCommDeregister");
    if (comm->state == FAKE_COMM_GONE)
        forbidden("memory is deregistered after the communicator's end");
    block_remove(comm, handle);
    fake.counts.registered--;
    return comm_end(ncclSuccess);
}

/* All ranks call this, with equal sizes. */
static ncclResult_t window_register(ncclComm_t comm, void *data, size_t bytes,
                                    void **window, int flags)
{
    ncclResult_t result = comm_begin("ncclCommWindowRegister", comm);

    if (result == ncclSuccess &&
        (!fake_memory_has(data, bytes) || flags != NCCL_WINDOW_SYMMETRIC))
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return comm_end(result);
    if (!fake_mail_window(comm->mail, comm->windows++, bytes))
        forbidden("ranks register windows of different sizes");
    comm->window = window;
    comm->window_is = NULL;
    if (fake.settings.nccl_windows == 1) {
        block_add(comm, data);
        fake.counts.windows++;
        comm->window_is = data;
    }
    (void)progress(comm);
    return comm_end(pending());
}

static ncclResult_t window_deregister(ncclComm_t comm, void *window)
{
    ncclResult_t result = comm_begin("ncclCommWindowDeregister", comm);

    if (result == ncclSuccess) {
        block_remove(comm, window);
        fake.counts.windows--;
        result = progress(comm);
    }
    return comm_end(result);
}

/* ---- the library --------------------------------------------------------- */

static const nccl_library_t library = {
    .GetVersion = version,
    .GetErrorString = error_text,
    .GetLastError = last_error,
    .GetUniqueId = id_make,
    .CommInitRankConfig = comm_open,
    .CommInitRankScalable = comm_open_scalable,
    .CommGetAsyncError = comm_state,
    .CommFinalize = comm_finalize,
    .CommDestroy = comm_destroy,
    .CommAbort = comm_abort,
    .GroupStart = group_start,
    .GroupEnd = group_end,
    .AllReduce = all_reduce,
    .Reduce = reduce,
    .ReduceScatter = reduce_scatter,
    .Broadcast = broadcast,
    .AllGather = all_gather,
    .Send = message_send,
    .Recv = message_receive,
    .MemAlloc = memory_alloc,
    .MemFree = memory_free,
    .CommRegister = memory_register,
    .CommDeregister = memory_deregister,
    .CommWindowRegister = window_register,
    .CommWindowDeregister = window_deregister,
};

static nccl_library_t old; /* before 2.27 */

err_code_t nccl_library_get(const nccl_library_t **out, err_t *err)
{
    if (fake.settings.nccl == 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "libnccl.so.2 was not found: install NCCL on this node, "
                       "or add its folder to LD_LIBRARY_PATH");
    old = library;
    old.CommWindowRegister = NULL;
    old.CommWindowDeregister = NULL;
    *out = fake.settings.nccl_windows == 0 ? &old : &library;
    return ERR_OK;
}
