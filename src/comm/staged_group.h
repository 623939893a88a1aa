/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The state of a staged group (internal to comm_staged.c and staged_thread.c).
 *
 * The owner's start puts a work into the table; the thread carries out the
 * segments of all works, in order. Each segment passes three stations: fill
 * (copies to its slot are enqueued), send (they are awaited, and the inner
 * collective is started) and drain (that is awaited, and copies to the device
 * are enqueued). A cursor per station tells which segment is next. Slots are
 * used in turn, each again when its copies to the device are done.
 *
 * The inner group has one owner, too: the thread. Only after the thread has
 * ended the owner of this group closes it.
 */
#ifndef CDDP_COMM_STAGED_GROUP_H
#define CDDP_COMM_STAGED_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/staged_segment.h"

/* Copies of one slot, the inner collectives of two, and copies of another one
 * run at a time. */
#define STAGED_SLOTS 4
/* Bytes of a slot, if the ranks are not very many. A copy of this size takes
 * several times as long as it takes to start it and to wait for it. */
#define STAGED_SLOT_BYTES ((size_t)1 << 20)

typedef struct staged_slot {
    staged_segment_t segment;
    comm_work_t *work;     /* of the inner group */
    dev_event_t *in, *out; /* the copies to the host, to the device are done */
    bool used;             /* [out] was recorded */
} staged_slot_t;

typedef struct staged_work {
    comm_work_t base;
    comm_request_t request;
    void *views[COMM_VIEWS_MAX]; /* the request's */
    size_t segments;
    dev_event_t *done; /* recorded behind the last copy to the device */
    bool busy;         /* not yet waited for; for the owner only */
    atomic_int state;  /* comm_state_t; DONE: [done] was recorded */
} staged_work_t;

/* The next segment of a station. */
typedef struct staged_cursor {
    uint64_t work; /* number of its work */
    size_t segment;
    uint64_t count; /* segments of all works before this one */
} staged_cursor_t;

typedef struct staged_group {
    comm_group_t base;
    comm_group_t *inner;
    staged_shape_t shape;
    comm_arena_t *arena; /* the slots */
    bool pinned;         /* [arena] is */
    dev_stream_t *in, *out;
    staged_slot_t slots[STAGED_SLOTS];
    staged_work_t works[COMM_WORKS_MAX];
    staged_cursor_t fill, send, drain; /* the thread's */
    pthread_t thread;
    bool running;
    atomic_bool failed;
    pthread_mutex_t lock;
    /* Signalled for the thread, and for the owner, when something happens. */
    pthread_cond_t asked, changed;
    /* Protected by the lock: */
    uint64_t started; /* number of the next work */
    bool leaving;
    err_t fault; /* set once, with [failed] */
} staged_group_t;

static inline staged_work_t *staged_work_at(staged_group_t *group,
                                            uint64_t number)
{
    return &group->works[number % COMM_WORKS_MAX];
}

/* Start the thread; stop it: collectives that are pending then fail on all
 * ranks. */
err_code_t staged_thread_start(staged_group_t *group, err_t *err);
void staged_thread_stop(staged_group_t *group);

/* Fail the group with [fault]; with that of a call of dev, [reason]. Only
 * the first fault is kept. If the inner group has failed already, its fault is
 * kept instead of this one. Any thread. */
void staged_group_fail(staged_group_t *group, const err_t *fault);
void staged_device_failed(staged_group_t *group, const err_t *reason);
/* Copy the fault to [err] (may be NULL), and return its code. */
err_code_t staged_group_fault(staged_group_t *group, err_t *err);

#endif
