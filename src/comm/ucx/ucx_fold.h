/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What recursive doubling and halving share. They need a power of two of
 * members. The members beyond the largest power are folded: of the first 2 *
 * rest members, each even one sends its data to the next odd one, and receives
 * the result in the end. The others get the numbers 0 .. power-1.
 */
#ifndef CDDP_COMM_UCX_FOLD_H
#define CDDP_COMM_UCX_FOLD_H

#include "comm/ucx/ucx_task.h"

typedef struct ucx_fold {
    int power, rest; /* size = power + rest; power is a power of two */
    int number;      /* number of this member; -1: it is folded */
} ucx_fold_t;

/* Values of task->state. Doubling has no HALVED and GATHERED. */
enum {
    FOLD_BEGIN,
    FOLD_TAKEN, /* the data of a folded member has come */
    FOLD_MET,
    FOLD_HALVED,
    FOLD_GATHERED,
    FOLD_AWAIT, /* this member is folded and has sent its data */
    FOLD_FINISHED
};

/* How this member takes part. Pure. */
ucx_fold_t ucx_fold_of(const ucx_task_t *task);
/* The member that has [number]. Pure. */
int ucx_fold_member(const ucx_fold_t *fold, int number);
/* Post the first round: folded members send their data. False: this member has
 * no part in it. */
bool ucx_fold_begin(ucx_task_t *task, const ucx_fold_t *fold);
/* Combine [count] elements from element [begin] on with those in the scratch.
 * [theirs_first]: those in the scratch are the left operand. */
void ucx_fold_combine(ucx_task_t *task, size_t begin, size_t count,
                      bool theirs_first);
/* Post the last round: send the result to the folded member, if this member has
 * one. False: it has none. */
bool ucx_fold_finish(ucx_task_t *task, const ucx_fold_t *fold);
/* Post the last round of a folded member, which receives the result. */
void ucx_fold_await(ucx_task_t *task);

#endif
