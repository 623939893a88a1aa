/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The two halves of the stand-in for NCCL. fake_nccl.c has the calls, and
 * refuses what NCCL would refuse. fake_nccl_run.c executes the collectives on
 * streams, and uses fake_mail.h for this.
 */
#ifndef CDDP_TESTS_CUDA_FAKE_NCCL_H
#define CDDP_TESTS_CUDA_FAKE_NCCL_H

#include <nccl.h>

#include "fake_cudart.h"
#include "fake_mail.h"

#define FAKE_RANKS 64
#define FAKE_BLOCKS 64

typedef enum fake_call {
    FAKE_ALLREDUCE,
    FAKE_REDUCE,
    FAKE_REDUCE_SCATTER,
    FAKE_BROADCAST,
    FAKE_ALLGATHER,
    FAKE_SEND,
    FAKE_RECV
} fake_call_t;

/* One call. [count]: elements, as NCCL counts them for this call. */
typedef struct fake_item {
    fake_call_t call;
    const char *from;
    char *to;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /* or root of the call */
} fake_item_t;

/* The calls of one group, which a stream executes together. */
typedef struct fake_job {
    struct fake_job *next;
    bool kept; /* a graph has the job, and may run it again */
    int count;
    fake_item_t items[];
} fake_job_t;

typedef enum fake_comm_state {
    FAKE_COMM_OPEN,
    FAKE_COMM_FINAL, /* ncclCommFinalize was called */
    FAKE_COMM_GONE   /* destroyed or aborted */
} fake_comm_state_t;

struct ncclComm {
    struct ncclComm *next; /* in the list of all that were made */
    fake_comm_state_t state;
    int rank, size;
    fake_device_t *dev;
    fake_mail_t *mail;
    int64_t late;  /* polls until the last call is no longer in progress */
    int64_t polls; /* of the state of an open communicator */
    int64_t registered, graphs;
    const void *blocks[FAKE_BLOCKS]; /* registered; NULL: free */
    uint32_t windows;                /* registered so far */
    uint32_t captures; /* captured calls so far, with the setting nccl_meets */
    void **window, *window_is; /* where to store the last handle; the handle */
    uint64_t number;           /* of the next collective to be executed */
    /* Number of messages so far, by rank. */
    uint64_t sent[FAKE_RANKS], received[FAKE_RANKS];
    fake_job_t *jobs;
};

size_t fake_type_bytes(ncclDataType_t type);
/* Does this stand-in reduce elements of this type? */
bool fake_type_reduces(ncclDataType_t type);

/* Enqueue the [count] calls of a group. */
ncclResult_t fake_nccl_push(ncclComm_t comm, const fake_item_t *items,
                            int count, cudaStream_t stream);
void fake_jobs_free(ncclComm_t comm);

#endif
