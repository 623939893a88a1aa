/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The internals of the node stage.
 *
 * Lock rules: node.lock serializes the owner and the comm thread of one rank.
 * It protects this rank's counts and cursors of one-shot and staged
 * collectives, and [buffers]. There are no locks between ranks: each word of
 * shared memory either has one writer at a time, or is a counter of
 * node_claim.h.
 */
#ifndef CDDP_COMM_NODE_PRIV_H
#define CDDP_COMM_NODE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "comm/node/node.h"
#include "comm/node/node_backoff.h"
#include "comm/node/node_claim.h"
#include "comm/node/node_region.h"

/* ---- one-shots (node_oneshot.h) ------------------------------------------ */

#define ONESHOT_SLOTS 16
#define ONESHOT_BYTES 4096 /* maximum bytes of one rank */
/* Maximum bytes of all ranks together; each rank reads all of them. */
#define ONESHOT_BYTES_ALL 65536

typedef struct oneshot_slot {
    /* Sequence number of the contents + 1; 0: never used. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag;
    uint32_t count; /* number of elements; 0 for a barrier */
    uint16_t type;  /* comm_type_t */
    uint16_t op;    /* comm_op_t */
    char data[ONESHOT_BYTES];
} oneshot_slot_t;

typedef struct oneshot_rank { /* the part of a rank that other ranks read */
    /* How many sequence numbers the rank has consumed. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t consumed;
    oneshot_slot_t slots[ONESHOT_SLOTS];
} oneshot_rank_t;

typedef struct node_oneshot {
    oneshot_rank_t *ranks; /* [ranks of the node], in shared memory */
    /* Counts of sequence numbers: */
    atomic_uint_fast64_t started;  /* started by node_start */
    uint64_t posted;               /* written to slots of this rank */
    atomic_uint_fast64_t consumed; /* summed by this rank */
    uint64_t released;             /* consumed by all ranks, when last read */
    node_work_t *works[COMM_WORKS_MAX]; /* by sequence number */
} node_oneshot_t;

/* ---- staging (node_stage.h) ---------------------------------------------- */

#define STAGE_SLOTS 4

typedef struct stage_slot {
    /* Number of the segment in the slot + 1; 0: never used. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t flag;
    uint64_t number; /* number of the collective to which the segment belongs */
    uint64_t count;  /* number of elements of the whole buffer */
    uint16_t type;   /* comm_type_t */
    uint16_t op;     /* comm_op_t */
    /* Counters of pieces. Used only in the slots of the first rank. */
    _Alignas(MEM_ALIGN) node_counter_t claimed;
    _Alignas(MEM_ALIGN) node_counter_t done;
} stage_slot_t;

typedef struct stage_rank { /* the part of a rank that other ranks read */
    /* Number of segments that this rank has consumed. */
    _Alignas(MEM_ALIGN) atomic_uint_fast64_t consumed;
    /* The owner is inside comm, so its comm thread need not be woken. */
    _Alignas(MEM_ALIGN) atomic_bool present;
    stage_slot_t slots[STAGE_SLOTS];
    char data[]; /* [STAGE_SLOTS * segment_bytes] */
} stage_rank_t;

typedef struct stage_cursor {
    uint64_t work; /* number of works before this one */
    size_t offset; /* offset in the work, in bytes */
} stage_cursor_t;

typedef struct node_stage {
    void **table; /* [ranks of the node], allocated by node_new */
    /* [table] when all are mapped (to stage_rank_t); NULL: no staging. */
    void **maps;
    size_t bytes; /* bytes of the memory of each rank */
    size_t segment_bytes;
    node_work_t *works[COMM_WORKS_MAX]; /* in the order of their starts */
    uint64_t works_started;
    stage_cursor_t post;    /* the next segment to copy in */
    stage_cursor_t consume; /* the next segment whose result is copied out */
    /* Numbers of segments. They change under the lock and are read without
     * it. */
    atomic_uint_fast64_t started;  /* of all works that were started */
    atomic_uint_fast64_t posted;   /* copied in by this rank */
    atomic_uint_fast64_t consumed; /* copied out by this rank */
    atomic_uint_fast64_t released; /* consumed by all ranks, when last read */
    /* Number of pieces of each posted segment; 0: summed whole. */
    atomic_uint pieces[STAGE_SLOTS];
} node_stage_t;

/* ---- the node stage of a rank -------------------------------------------- */

/* Maximum number of arenas that a group ever opens in shared memory. */
#define NODE_ARENAS 16

struct node {
    node_config_t config;
    node_place_t place;     /* a copy of config.place */
    atomic_bool open;       /* set by node_open if there is a node stage */
    node_region_t *regions; /* [size], scratch of node_shm.c */
    /* node_control.h: memory of the node's first rank, as this rank maps it. */
    struct node_control *control;
    size_t control_bytes;
    size_t stride; /* bytes from one slot of node_zcopy.h to the next */
    node_backoff_t backoff; /* of the owner's waits */
    pthread_mutex_t lock;   /* see the lock rules above */
    /* With checks on: the thread that has locked [lock]; 0: none. */
    atomic_ulong holder;
    char **buffers; /* [ranks of the node]: scratch for the inputs of a sum */
    int wake_fd;    /* read end of this rank's pipe; -1: none */
    /* [ranks of the node]: write ends of their pipes; -1: none. */
    int *wake_fds;
    node_oneshot_t oneshot;
    node_stage_t stage;
    /* Counts successful waits and staged segments. */
    atomic_uint_fast64_t progress;
    uint32_t arenas_opened;            /* total number of arenas opened */
    node_arena_t *arenas[NODE_ARENAS]; /* indexed by number; NULL: closed */
    /* Indexed by number % COMM_WORKS_MAX; NULL: no work was started there
     * yet. */
    _Atomic(node_work_t *) works[COMM_WORKS_MAX];
};

static inline bool node_failed(const node_t *node)
{
    return atomic_load(node->config.failed);
}

void node_lock(node_t *node);
void node_unlock(node_t *node);
/* For checks: return whether the calling thread has locked node.lock. */
bool node_is_locked(const node_t *node);

#endif
