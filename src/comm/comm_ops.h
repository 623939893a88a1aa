/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The interface of comm's backends (internal to src/comm). The structs of a
 * backend have comm_group_t and comm_work_t as their first members.
 * comm_request.c checks the arguments, so a backend gets only valid requests
 * that move at least one byte (except barriers).
 */
#ifndef CDDP_COMM_COMM_OPS_H
#define CDDP_COMM_COMM_OPS_H

#include <stdint.h>
#include <sys/types.h>

#include "comm/comm.h"
#include "comm/comm_fold.h"
#include "comm/comm_table.h"
#include "comm/reduce.h"

/* Maximum number of collectives that a rank has started and not yet waited
 * for. */
#define COMM_WORKS_MAX 256

typedef enum comm_kind {
    COMM_ALLREDUCE,
    COMM_TREE,
    COMM_BROADCAST,
    COMM_ALLGATHER,
    COMM_REDUCE_SCATTER,
    COMM_GATHER_RANGES,
    COMM_BARRIER
} comm_kind_t;

const char *comm_kind_name(comm_kind_t kind); /* "all-reduce" */

/* One collective as this rank requested it. */
typedef struct comm_request {
    comm_kind_t kind;
    void *data; /* for allgather: the destination [all] */
    /* Elements; for broadcast and allgather: bytes (of one rank). */
    size_t count;
    comm_type_t type;
    comm_op_t op;
    int root;           /* for broadcast */
    const void *mine;   /* for allgather */
    const size_t *cuts; /* [size + 1], between the ranges of ranks */
    void *const *views;
    /* For tree: leaves of this rank; leaves of all ranks. */
    int64_t first, held, leaves;
    const int64_t *ranges; /* NULL: not given */
    dev_event_t *after;    /* the operation begins behind it; NULL: at once */
} comm_request_t;

/* Describe [request] for people: "an all-reduce of 10 float32, sum". */
void comm_request_print(const comm_request_t *request, char *text, size_t room);
/* Copy [request] to *out, and its array of pointers to [views], which has
 * COMM_VIEWS_MAX elements. */
static inline void comm_request_copy(const comm_request_t *request,
                                     void **views, comm_request_t *out)
{
    *out = *request;
    if (request->kind != COMM_TREE)
        return;
    out->views = views;
    for (int i =
             comm_tree_views(request->first, request->held, request->leaves);
         i > 0; i--)
        views[i - 1] = request->views[i - 1];
}

/* Bytes of a request that counts elements. */
static inline size_t comm_request_bytes(const comm_request_t *request)
{
    return request->count * comm_type_bytes(request->type);
}

struct comm_plan; /* comm_plan.h */
typedef struct comm_ops comm_ops_t;

/* The first message between ranks, whatever the backend. */
typedef struct comm_hello {
    char backend[16];
    char device[16]; /* name of the device's backend; "cpu": none */
    char host[ERR_HOST_MAX];
    int64_t pid;
    uint64_t table; /* hash of the rank's table of algorithms */
    int64_t name;   /* name of the rank in faults; differs between ranks */
    /* True if the rank's environment chooses the backend's network. */
    int64_t own_net;
    int64_t refusal; /* err_code_t with which the rank refuses to join, and */
    char why[256];
} comm_hello_t;

struct comm_group {
    const comm_ops_t *ops;
    int rank, size;
    double timeout;
    /* The collective that is being started will be waited for at once. */
    bool waits;
    dev_event_t *after;        /* see comm_group_after; NULL: none */
    dev_device_t *dev;         /* see comm_group_dev */
    comm_hello_t *hellos;      /* [size]; comm_group_close frees it */
    const comm_table_t *table; /* freed by comm_group_close, too */
};

struct comm_work {
    comm_group_t *group;
};

struct comm_arena {
    comm_group_t *group;
    void *data;
};

/* Progress of the device of a rank: how many collectives of a group have begun
 * on it, and how many have ended. */
typedef struct comm_marks {
    uint64_t begun, ended;
} comm_marks_t;

struct comm_ops {
    const char *name;
    /* Works on memory that the host cannot access, if config.dev has such. Else
     * comm_staged.c copies data from and to it. */
    bool device;
    bool enqueues; /* see comm_group_enqueues */
    /* (optional) The value for hello.own_net. */
    bool (*own_net)(void);
    /* (optional) ERR_OK if this rank can join the group. If one rank cannot,
     * the open fails on all ranks with its error. */
    err_code_t (*ready)(const comm_config_t *config, err_t *err);

    /* Join the ranks of [oob]. The [hellos] of all ranks have been compared and
     * outlive the group. Must fill every field of comm_group_t. */
    err_code_t (*open)(const comm_config_t *config, const comm_oob_t *oob,
                       comm_hello_t *hellos, comm_group_t **out, err_t *err);
    void (*close)(comm_group_t *group);

    void (*report)(comm_group_t *group, int64_t step, const char *phase);
    err_code_t (*check)(comm_group_t *group, err_t *err);

    /* (optional) See comm_group_route. Default: NULL. */
    const char *(*route)(const comm_group_t *group);
    /* (optional) See comm_group_look. By default check is called, and a wait
     * longer than twice the timeout is an error. */
    err_code_t (*look)(comm_group_t *group, double waited, err_t *err);

    /* Start a collective, like comm_allreduce_start and its siblings. [request]
     * is valid during the call only. */
    comm_state_t (*start)(comm_group_t *group, const comm_request_t *request,
                          comm_work_t **work, err_t *err);
    comm_state_t (*poll)(comm_work_t *work);
    err_code_t (*wait)(comm_work_t *work, err_t *err);
    /* (optional) See comm_work_wait_on. Default: wait. */
    err_code_t (*wait_on)(comm_work_t *work, dev_stream_t *stream, err_t *err);
    /* (optional for self) End all works of all ranks with [fault]. Any
     * thread. */
    void (*fail)(comm_group_t *group, const err_t *fault);
    /* (optional) From now on send *marks to the other ranks in the beats, and
     * fail if a collective does not end on a device. Another group writes
     * *marks, at any time. NULL: stop; the old marks are not read after this
     * call. Any thread. */
    void (*marks)(comm_group_t *group, const volatile comm_marks_t *marks);

    /* (optional) The plan of such a sum, see comm_plan.h. Default: none. */
    void (*allreduce_plan)(const comm_group_t *group, const void *data,
                           size_t count, comm_type_t type,
                           struct comm_plan *out);

    /* (optional) See comm_arena_open; default: plain memory of the device. */
    err_code_t (*arena_open)(comm_group_t *group, size_t bytes,
                             comm_arena_t **out, err_t *err);
    void (*arena_close)(comm_arena_t *arena);
};

extern const comm_ops_t comm_self_ops;
extern const comm_ops_t comm_threads_ops;
extern const comm_ops_t comm_ucx_ops;
/* In the CUDA plugin. */
extern const comm_ops_t comm_nccl_ops;
/* The version of NCCL; see cddp_cuda_t. */
err_code_t comm_nccl_version(int *out, err_t *err);

/* Find the backend [name] for [size] ranks ("auto" chooses). ERR_CONFIG: the
 * name is unknown; the error lists the known ones. ERR_UNAVAILABLE: the plugin
 * of this backend cannot be loaded. */
err_code_t comm_registry_find(const char *name, int size,
                              const comm_ops_t **out, err_t *err);

/* The name of [rank] in faults (messages and err_t.culprit), and the rank with
 * a given name; -1: none. */
int comm_rank_name(const comm_group_t *group, int rank);
int comm_rank_find(const comm_group_t *group, int name);
/* Set *fault: this rank left the group before its collectives were done; this
 * rank cannot go on because of [reason]. */
void comm_fault_left(const comm_group_t *group, err_t *fault);
void comm_fault_own(const comm_group_t *group, const err_t *reason,
                    err_t *fault);

#endif
