/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The stand-in for NCCL: collectives between processes, one by one, in groups
 * and in graphs; calls that stay in progress; calls that it refuses; and that
 * an abort ends a collective that hangs.
 */
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/nccl/nccl_library.h"
#include "cuda/fake_cuda.h"
#include "lib/ranks.h"

/* So many elements need several boxes of fake_mail. */
#define COUNT 9001
#define BYTES (COUNT * sizeof(float))
/* Only a rank that hangs takes so long. */
#define SECONDS 120

#define OK(call) RANKS_CHECK((call) == 0)

typedef struct rig {
    const nccl_library_t *nccl;
    const comm_oob_t *oob;
    ncclComm_t comm;
    cudaStream_t stream;
    float *data, *more; /* [COUNT], [size * COUNT] on the device */
    float *host, *back; /* [size * COUNT], [COUNT], pinned */
} rig_t;

/* Poll until [comm] is not busy. */
static ncclResult_t settle(rig_t *rig)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress)
        if (rig->nccl->CommGetAsyncError(rig->comm, &state) != ncclSuccess)
            return ncclUnhandledCudaError;
    return state;
}

static int rig_begin(rig_t *rig, const comm_oob_t *oob)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id, all[RANKS_MAX];
    err_t err = ERR_INIT;

    config.blocking = 0;
    *rig = (rig_t){.oob = oob};
    RANKS_OK(nccl_library_get(&rig->nccl, &err), err);
    memset(&id, 0, sizeof id);
    if (oob->rank == 0)
        OK(rig->nccl->GetUniqueId(&id));
    RANKS_OK(oob->exchange(oob->context, &id, sizeof id, all, &err), err);
    RANKS_CHECK(rig->nccl->CommInitRankConfig(&rig->comm, oob->size, all[0],
                                              oob->rank,
                                              &config) == ncclInProgress);
    return 0;
}

static int rig_open(rig_t *rig, const comm_oob_t *oob)
{
    const size_t all = (size_t)oob->size * BYTES;

    if (rig_begin(rig, oob) != 0)
        return 1;
    OK(settle(rig));
    OK(cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&rig->data, BYTES));
    OK(cudaMalloc((void **)&rig->more, all));
    OK(cudaHostAlloc((void **)&rig->host, all, cudaHostAllocDefault));
    OK(cudaHostAlloc((void **)&rig->back, BYTES, cudaHostAllocDefault));
    return 0;
}

static void blocks_free(rig_t *rig)
{
    cudaStreamDestroy(rig->stream);
    cudaFree(rig->data);
    cudaFree(rig->more);
    cudaFreeHost(rig->host);
    cudaFreeHost(rig->back);
}

static int rig_close(rig_t *rig)
{
    rig->nccl->CommFinalize(rig->comm);
    OK(settle(rig));
    OK(rig->nccl->CommDestroy(rig->comm));
    blocks_free(rig);
    fake_cuda.reset();
    return 0;
}

/* Put rank + 1 + index into [data], and into each part of [more]. */
static int rig_fill(rig_t *rig)
{
    const size_t all = (size_t)rig->oob->size * COUNT;

    for (size_t i = 0; i < all; i++)
        rig->host[i] = (float)(rig->oob->rank + 1 + (int)(i % 7));
    OK(cudaMemcpyAsync(rig->data, rig->host, BYTES, cudaMemcpyHostToDevice,
                       rig->stream));
    return cudaMemcpyAsync(rig->more, rig->host, all * sizeof(float),
                           cudaMemcpyHostToDevice, rig->stream) != cudaSuccess;
}

/* Check that element index of [count] elements at [at] is [scale] * (index % 7)
 * + [base]. */
static int rig_expect(rig_t *rig, const float *at, size_t count, int base,
                      int scale)
{
    OK(cudaMemcpyAsync(rig->back, at, count * sizeof(float),
                       cudaMemcpyDeviceToHost, rig->stream));
    OK(cudaStreamSynchronize(rig->stream));
    for (size_t i = 0; i < count; i++)
        RANKS_CHECK(rig->back[i] == (float)(base + scale * (int)(i % 7)));
    return 0;
}

/* ---- collectives --------------------------------------------------------- */

static int reductions(rig_t *rig)
{
    const int size = rig->oob->size, sum = size * (size + 1) / 2;
    const nccl_library_t *nccl = rig->nccl;

    OK(rig_fill(rig));
    OK(nccl->AllReduce(rig->data, rig->data, COUNT, ncclFloat32, ncclSum,
                       rig->comm, rig->stream));
    OK(rig_expect(rig, rig->data, COUNT, sum, size));
    OK(rig_fill(rig));
    OK(nccl->Reduce(rig->data, rig->data, COUNT, ncclFloat32, ncclMax, size - 1,
                    rig->comm, rig->stream));
    if (rig->oob->rank == size - 1)
        OK(rig_expect(rig, rig->data, COUNT, size, 1));
    OK(rig_fill(rig));
    OK(nccl->ReduceScatter(rig->more, rig->data, 7, ncclFloat32, ncclSum,
                           rig->comm, rig->stream));
    return rig_expect(rig, rig->data, 7, sum, size);
}

static int copies(rig_t *rig)
{
    const nccl_library_t *nccl = rig->nccl;

    OK(rig_fill(rig));
    OK(nccl->Broadcast(rig->data, rig->data, COUNT, ncclFloat32,
                       rig->oob->size - 1, rig->comm, rig->stream));
    OK(rig_expect(rig, rig->data, COUNT, rig->oob->size, 1));
    OK(rig_fill(rig));
    OK(nccl->AllGather(rig->data, rig->more, COUNT, ncclFloat32, rig->comm,
                       rig->stream));
    for (int r = 0; r < rig->oob->size; r++)
        OK(rig_expect(rig, rig->more + (size_t)r * COUNT, COUNT, r + 1, 1));
    return 0;
}

/* In one group: send to the next rank, and receive from the previous one. */
static int ring(rig_t *rig)
{
    const int size = rig->oob->size, rank = rig->oob->rank;
    const nccl_library_t *nccl = rig->nccl;

    if (size == 1)
        return 0;
    OK(rig_fill(rig));
    OK(nccl->GroupStart());
    OK(nccl->Send(rig->data, COUNT, ncclFloat32, (rank + 1) % size, rig->comm,
                  rig->stream));
    OK(nccl->Recv(rig->more, COUNT, ncclFloat32, (rank + size - 1) % size,
                  rig->comm, rig->stream));
    OK(nccl->GroupEnd());
    return rig_expect(rig, rig->more, COUNT, (rank + size - 1) % size + 1, 1);
}

static int all_main(const comm_oob_t *oob, void *argument)
{
    fake_cuda_settings_t set = fake_cuda.get();
    rig_t rig;

    set.order = *(int *)argument;
    fake_cuda.set(&set);
    OK(rig_open(&rig, oob));
    OK(reductions(&rig));
    OK(copies(&rig));
    OK(ring(&rig));
    return rig_close(&rig);
}

Test(fake_nccl, collectives_of_processes)
{
    static const int sizes[] = {1, 2, 3, 4, 8};
    int results[RANKS_MAX];

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int order = (int)i % 2;

        cr_assert_eq(ranks_forks(sizes[i], SECONDS, all_main, &order, results),
                     0, "%d ranks", sizes[i]);
    }
}

/* ---- graphs -------------------------------------------------------------- */

static int graph_make(rig_t *rig, cudaGraphExec_t *out)
{
    cudaGraph_t graph;

    OK(cudaStreamBeginCapture(rig->stream, cudaStreamCaptureModeThreadLocal));
    OK(rig->nccl->AllReduce(rig->data, rig->data, COUNT, ncclFloat32, ncclSum,
                            rig->comm, rig->stream));
    OK(cudaStreamEndCapture(rig->stream, &graph));
    OK(cudaGraphInstantiate(out, graph, 0));
    OK(cudaGraphDestroy(graph));
    return 0;
}

static int graph_main(const comm_oob_t *oob, void *argument)
{
    cudaGraphExec_t graph;
    rig_t rig;

    OK(rig_open(&rig, oob));
    OK(graph_make(&rig, &graph));
    for (int i = 0; i < 3; i++) {
        OK(rig_fill(&rig));
        OK(cudaGraphLaunch(graph, rig.stream));
        OK(rig_expect(&rig, rig.data, COUNT, 3, 2));
    }
    if (*(bool *)argument) /* the stand-in aborts */
        rig.nccl->CommFinalize(rig.comm);
    OK(cudaGraphExecDestroy(graph));
    return rig_close(&rig);
}

Test(fake_nccl, graphs_repeat_collectives)
{
    bool early = false;
    int results[RANKS_MAX];

    cr_assert_eq(ranks_forks(2, SECONDS, graph_main, &early, results), 0);
    early = true;
    ranks_forks(2, SECONDS, graph_main, &early, results);
    cr_assert_eq(results[0], 128 + SIGABRT);
    cr_assert_eq(results[1], 128 + SIGABRT);
}

/* ---- time ---------------------------------------------------------------- */

static int late_main(const comm_oob_t *oob, void *argument)
{
    fake_cuda_settings_t set = fake_cuda.get();
    rig_t rig;

    (void)argument;
    set.nccl_late = 3;
    fake_cuda.set(&set);
    OK(rig_open(&rig, oob));
    OK(rig_fill(&rig));
    for (int i = 0; i < 2; i++) {
        ncclResult_t state = ncclSuccess;

        RANKS_CHECK(rig.nccl->AllReduce(rig.data, rig.data, COUNT, ncclFloat32,
                                        ncclSum, rig.comm,
                                        rig.stream) == ncclInProgress);
        OK(rig.nccl->CommGetAsyncError(rig.comm, &state));
        RANKS_CHECK(state == ncclInProgress);
        RANKS_CHECK(rig.nccl->AllReduce(rig.data, rig.data, COUNT, ncclFloat32,
                                        ncclSum, rig.comm,
                                        rig.stream) == ncclInvalidUsage);
        OK(settle(&rig));
    }
    OK(rig_expect(&rig, rig.data, COUNT, 6, 4));
    return rig_close(&rig);
}

Test(fake_nccl, calls_take_their_time)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_forks(2, SECONDS, late_main, NULL, results), 0);
}

/* ---- faults -------------------------------------------------------------- */

/* The first collective of rank 1 hangs. Rank 1 finds an error in the state of
 * its communicator and aborts it; rank 0 then finds that another rank has
 * stopped. */
static int hang_main(const comm_oob_t *oob, void *argument)
{
    fake_cuda_settings_t set = fake_cuda.get();
    ncclResult_t state = ncclSuccess, all[2];
    rig_t rig;

    (void)argument;
    set.nccl_stuck = oob->rank == 1;
    set.nccl_async = oob->rank == 1 ? 20 : 0;
    fake_cuda.set(&set);
    OK(rig_open(&rig, oob));
    OK(oob->exchange(oob->context, &state, sizeof state, all, NULL));
    OK(rig_fill(&rig));
    OK(rig.nccl->AllReduce(rig.data, rig.data, COUNT, ncclFloat32, ncclSum,
                           rig.comm, rig.stream));
    while (state == ncclSuccess)
        OK(rig.nccl->CommGetAsyncError(rig.comm, &state));
    RANKS_CHECK(state ==
                (oob->rank == 1 ? ncclInternalError : ncclRemoteError));
    OK(rig.nccl->CommAbort(rig.comm));
    OK(cudaStreamSynchronize(rig.stream));
    blocks_free(&rig);
    fake_cuda.reset();
    return 0;
}

/* Wait until [file] has a line, and check that it contains [words]. */
static int words_await(FILE *file, const char *words)
{
    char text[512] = "";

    while (strchr(text, '\n') == NULL) {
        ssize_t got = pread(fileno(file), text, sizeof text - 1, 0);

        text[got > 0 ? got : 0] = '\0';
        sched_yield();
    }
    RANKS_CHECK(strstr(text, words) != NULL);
    return 0;
}

/* Rank 0 sends 10 and 20 elements, but rank 1 expects 20 and 10. */
static int messages(rig_t *rig)
{
    const nccl_library_t *nccl = rig->nccl;

    OK(nccl->GroupStart());
    for (size_t i = 0; i < 2; i++)
        if (rig->oob->rank == 0)
            OK(nccl->Send(rig->data, 10 + 10 * i, ncclFloat32, 1, rig->comm,
                          rig->stream));
        else
            OK(nccl->Recv(rig->more, 20 - 10 * i, ncclFloat32, 0, rig->comm,
                          rig->stream));
    return nccl->GroupEnd() != ncclSuccess;
}

/* Rank 1 says that the messages do not fit, and hangs until it aborts. */
static int mismatch_main(const comm_oob_t *oob, void *argument)
{
    ncclResult_t state = ncclSuccess;
    FILE *said = tmpfile();
    rig_t rig;

    (void)argument;
    RANKS_CHECK(said != NULL);
    OK(rig_open(&rig, oob));
    OK(rig_fill(&rig));
    if (oob->rank == 1)
        RANKS_CHECK(dup2(fileno(said), STDERR_FILENO) == STDERR_FILENO);
    OK(messages(&rig));
    if (oob->rank == 1)
        OK(words_await(said, "rank 1 receives for call"));
    while (oob->rank == 0 && state == ncclSuccess)
        OK(rig.nccl->CommGetAsyncError(rig.comm, &state));
    OK(rig.nccl->CommAbort(rig.comm));
    OK(cudaStreamSynchronize(rig.stream));
    blocks_free(&rig);
    fake_cuda.reset();
    return 0;
}

/* Memory is freed while it is registered, alone or as a window. */
static int free_main(const comm_oob_t *oob, void *argument)
{
    const bool window = *(bool *)argument;
    void *data = NULL, *handle = NULL;
    rig_t rig;

    OK(rig_open(&rig, oob));
    OK(rig.nccl->MemAlloc(&data, BYTES));
    if (window)
        (void)rig.nccl->CommWindowRegister(rig.comm, data, BYTES, &handle,
                                           NCCL_WINDOW_SYMMETRIC);
    else
        OK(rig.nccl->CommRegister(rig.comm, data, BYTES, &handle));
    OK(settle(&rig));
    RANKS_CHECK(handle != NULL);
    rig.nccl->MemFree(data); /* the stand-in aborts */
    return 1;
}

/* A call fails; a call that does not fit is refused. */
static int refusal_main(const comm_oob_t *oob, void *argument)
{
    fake_cuda_settings_t set = fake_cuda.get();
    rig_t rig;

    (void)argument;
    OK(rig_open(&rig, oob));
    OK(rig_fill(&rig));
    RANKS_CHECK(rig.nccl->AllReduce(rig.data, rig.data, COUNT + 1, ncclFloat32,
                                    ncclSum, rig.comm,
                                    rig.stream) == ncclInvalidArgument);
    RANKS_CHECK(rig.nccl->AllReduce(rig.host, rig.host, COUNT, ncclFloat32,
                                    ncclSum, rig.comm,
                                    rig.stream) == ncclInvalidArgument);
    set.fail = 1;
    fake_cuda.set(&set);
    RANKS_CHECK(rig.nccl->AllReduce(rig.data, rig.data, COUNT, ncclFloat32,
                                    ncclSum, rig.comm,
                                    rig.stream) == ncclUnhandledCudaError);
    return rig_close(&rig);
}

/* A rank that waits alone for the others can abort. Nobody may use a
 * communicator after its end. */
static int alone_main(const comm_oob_t *oob, void *argument)
{
    ncclResult_t state;
    rig_t rig;

    (void)argument;
    if (oob->rank == 1) {
        ncclUniqueId id = {{0}}, all[2];

        return oob->exchange(oob->context, &id, sizeof id, all, NULL);
    }
    OK(rig_begin(&rig, oob));
    for (int i = 0; i < 10; i++) {
        OK(rig.nccl->CommGetAsyncError(rig.comm, &state));
        RANKS_CHECK(state == ncclInProgress);
    }
    OK(rig.nccl->CommAbort(rig.comm));
    fake_cuda.reset();
    rig.nccl->CommGetAsyncError(rig.comm, &state); /* the stand-in aborts */
    return 1;
}

Test(fake_nccl, registered_memory_must_not_be_freed)
{
    bool window = false;
    int results[RANKS_MAX];

    ranks_forks(1, SECONDS, free_main, &window, results);
    cr_assert_eq(results[0], 128 + SIGABRT);
    window = true;
    ranks_forks(2, SECONDS, free_main, &window, results);
    cr_assert_eq(results[0], 128 + SIGABRT);
    cr_assert_eq(results[1], 128 + SIGABRT);
}

Test(fake_nccl, an_abort_ends_what_hangs)
{
    int results[RANKS_MAX];

    cr_assert_eq(ranks_forks(2, SECONDS, hang_main, NULL, results), 0);
    cr_assert_eq(ranks_forks(2, SECONDS, mismatch_main, NULL, results), 0);
    cr_assert_eq(ranks_forks(1, SECONDS, refusal_main, NULL, results), 0);
    ranks_forks(2, SECONDS, alone_main, NULL, results);
    cr_assert_eq(results[0], 128 + SIGABRT);
    cr_assert_eq(results[1], 0);
}
