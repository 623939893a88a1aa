/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Collectives on streams. Sums are added in the order of the ranks. */
#include <stdlib.h>
#include <string.h>

#include "comm/reduce.h"
#include "fake_nccl.h"

/* ---- types --------------------------------------------------------------- */

static const struct {
    size_t bytes;
    int reduces; /* the comm_type_t plus 1; 0: none */
} types[ncclNumTypes] = {
    [ncclInt8] = {1, 0},
    [ncclUint8] = {1, 0},
    [ncclInt32] = {4, COMM_INT32 + 1},
    [ncclInt64] = {8, COMM_INT64 + 1},
    [ncclFloat16] = {2, COMM_FLOAT16 + 1},
    [ncclFloat32] = {4, COMM_FLOAT32 + 1},
    [ncclFloat64] = {8, COMM_FLOAT64 + 1},
    [ncclBfloat16] = {2, COMM_BFLOAT16 + 1},
};

size_t fake_type_bytes(ncclDataType_t type)
{
    return type >= 0 && type < ncclNumTypes ? types[type].bytes : 0;
}

bool fake_type_reduces(ncclDataType_t type)
{
    return fake_type_bytes(type) > 0 && types[type].reduces > 0;
}

static size_t item_bytes(const fake_item_t *item)
{
    return item->count * fake_type_bytes(item->type);
}

/* ---- one collective ------------------------------------------------------ */

/* All ranks of a collective must have the same digest. */
static uint64_t item_digest(const fake_item_t *item, uint64_t number)
{
    const uint64_t words[] = {(uint64_t)item->call, item->count,
                              (uint64_t)item->type, (uint64_t)item->op,
                              (uint64_t)item->peer, number};
    uint64_t digest = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        digest = (digest ^ words[i]) * UINT64_C(1099511628211);
    return digest;
}

/* Send to each other rank [bytes] from [from] + rank * [step], and receive what
 * it sends at [to] + rank * [bytes]. If [from] is NULL, nothing is sent; if
 * [to] is NULL, nothing is received. */
static bool all_exchange(ncclComm_t comm, uint64_t digest, const char *from,
                         size_t step, char *to, size_t bytes)
{
    fake_part_t *parts = calloc(2 * (size_t)comm->size, sizeof *parts);
    int count = 0;
    bool ends;

    if (parts == NULL)
        abort();
    for (int r = 0; r < comm->size; r++) {
        if (r != comm->rank && from != NULL)
            parts[count++] = (fake_part_t){
                r, true, (char *)(uintptr_t)from + (size_t)r * step, bytes, 0};
        if (r != comm->rank && to != NULL)
            parts[count++] =
                (fake_part_t){r, false, to + (size_t)r * bytes, bytes, 0};
    }
    ends = fake_mail_exchange(comm->mail, digest, parts, count);
    free(parts);
    return ends;
}

static void ranks_fold(ncclComm_t comm, const fake_item_t *item,
                       const char *parts, size_t bytes)
{
    const comm_type_t type = (comm_type_t)(types[item->type].reduces - 1);
    const comm_op_t op = item->op == ncclSum   ? COMM_SUM
                         : item->op == ncclMax ? COMM_MAX
                                               : COMM_MIN;

    memcpy(item->to, parts, bytes);
    for (int r = 1; r < comm->size; r++)
        comm_reduce(item->to, item->to, parts + (size_t)r * bytes, item->count,
                    type, op);
}

/* [step]: as for all_exchange. [takes]: this rank gets the result. */
static bool reduce_run(ncclComm_t comm, const fake_item_t *item,
                       uint64_t digest, size_t step, bool takes)
{
    const size_t bytes = item_bytes(item), mine = (size_t)comm->rank;
    char *all = malloc((size_t)comm->size * bytes);
    bool ends;

    if (all == NULL)
        abort();
    memcpy(all + mine * bytes, item->from + mine * step, bytes);
    ends = all_exchange(comm, digest, item->from, step, all, bytes);
    if (ends && takes)
        ranks_fold(comm, item, all, bytes);
    free(all);
    return ends;
}

static bool broadcast_run(ncclComm_t comm, const fake_item_t *item,
                          uint64_t digest)
{
    fake_part_t part = {item->peer, false, item->to, item_bytes(item), 0};

    if (comm->rank != item->peer)
        return fake_mail_exchange(comm->mail, digest, &part, 1);
    memmove(item->to, item->from, item_bytes(item));
    return all_exchange(comm, digest, item->from, 0, NULL, item_bytes(item));
}

static bool gather_run(ncclComm_t comm, const fake_item_t *item,
                       uint64_t digest)
{
    const size_t bytes = item_bytes(item);

    memmove(item->to + (size_t)comm->rank * bytes, item->from, bytes);
    return all_exchange(comm, digest, item->from, 0, item->to, bytes);
}

/* Sends and receives are executed later (pairs_run). They are not counted here,
 * as ranks have different numbers of them. */
static bool item_run(ncclComm_t comm, const fake_item_t *item)
{
    uint64_t digest;

    if (item->call == FAKE_SEND || item->call == FAKE_RECV)
        return true;
    digest = item_digest(item, comm->number++);
    switch (item->call) {
    case FAKE_ALLREDUCE:
        return reduce_run(comm, item, digest, 0, true);
    case FAKE_REDUCE:
        return reduce_run(comm, item, digest, 0, comm->rank == item->peer);
    case FAKE_REDUCE_SCATTER:
        return reduce_run(comm, item, digest, item_bytes(item), true);
    case FAKE_BROADCAST:
        return broadcast_run(comm, item, digest);
    case FAKE_ALLGATHER:
        return gather_run(comm, item, digest);
    case FAKE_SEND:
    case FAKE_RECV:
        break;
    }
    return true;
}

/* ---- a group of calls ---------------------------------------------------- */

/* Sender and receiver of a message must have the same tag. Else NCCL would
 * hang, or give the receiver another message. */
static uint64_t pair_tag(const fake_item_t *item, uint64_t number)
{
    const fake_item_t message = {
        .call = FAKE_SEND, .count = item->count, .type = item->type};

    return item_digest(&message, number);
}

/* The message of [item], which is a send or a receive. */
static fake_part_t pair_part(ncclComm_t comm, const fake_item_t *item)
{
    const bool send = item->call == FAKE_SEND;
    uint64_t *count = send ? comm->sent : comm->received;

    return (fake_part_t){item->peer, send,
                         send ? (char *)(uintptr_t)item->from : item->to,
                         item_bytes(item), pair_tag(item, count[item->peer]++)};
}

/* All sends and receives of a group move at the same time, as in NCCL. */
static bool pairs_run(ncclComm_t comm, const fake_job_t *job)
{
    fake_part_t *parts = calloc((size_t)job->count, sizeof *parts);
    int count = 0;
    bool ends;

    if (parts == NULL)
        abort();
    for (int i = 0; i < job->count; i++) {
        const fake_item_t *item = &job->items[i];

        if (item->call == FAKE_SEND || item->call == FAKE_RECV)
            parts[count++] = pair_part(comm, item);
    }
    ends = count == 0 || fake_mail_exchange(comm->mail, 1, parts, count);
    free(parts);
    return ends;
}

static void job_drop(ncclComm_t comm, fake_job_t *job)
{
    fake_job_t **at = &comm->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    free(job);
}

void fake_jobs_free(ncclComm_t comm)
{
    while (comm->jobs != NULL)
        job_drop(comm, comm->jobs);
}

typedef struct enqueued {
    ncclComm_t comm;
    fake_job_t *job;
} enqueued_t;

/* After an abort the stream goes on, and the result has any bytes. */
static cudaError_t job_run(const void *args)
{
    const enqueued_t at = *(const enqueued_t *)args;
    bool ends = at.comm->state != FAKE_COMM_GONE;
    bool hangs;

    if (!ends)
        return cudaSuccess;
    fake.counts.collectives += at.job->count;
    hangs = fake.settings.nccl_stuck > 0 && --fake.settings.nccl_stuck == 0;
    fake_unlock();
    if (hangs)
        fake_mail_hang(at.comm->mail);
    ends = !hangs;
    for (int i = 0; ends && i < at.job->count; i++)
        ends = item_run(at.comm, &at.job->items[i]);
    if (ends)
        pairs_run(at.comm, at.job);
    fake_lock();
    if (!at.job->kept)
        job_drop(at.comm, at.job);
    return cudaSuccess;
}

ncclResult_t fake_nccl_push(ncclComm_t comm, const fake_item_t *items,
                            int count, cudaStream_t stream)
{
    const bool kept = stream->capture != NULL;
    fake_job_t *job =
        malloc(sizeof *job + (size_t)count * sizeof job->items[0]);
    const enqueued_t args = {comm, job};

    if (job == NULL)
        return ncclSystemError;
    job->kept = kept;
    job->count = count;
    memcpy(job->items, items, (size_t)count * sizeof *items);
    job->next = comm->jobs;
    comm->jobs = job;
    if (kept && fake_capture_hold(stream->capture, &comm->graphs) != 0)
        return ncclSystemError;
    if (fake_push(stream, job_run, &args, sizeof args) != cudaSuccess)
        return ncclUnhandledCudaError;
    if (kept && fake.settings.nccl_meets) {
        comm->captures++;
        fake_mail_capture(comm->mail);
    }
    if (!kept)
        fake_engine_start(stream->dev, true);
    return ncclSuccess;
}
