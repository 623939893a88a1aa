/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* eval: what an evaluation finds, and what it works with; a part of
 * train_state_t. */
#ifndef CDDP_TRAIN_EVAL_H
#define CDDP_TRAIN_EVAL_H

#include "ddp/fold.h"
#include "train/score.h"

typedef struct train_eval {
    double loss, accuracy; /* accuracy NaN: not a classifier */
    obs_value_t values[OBS_VALUES_MAX];
    int value_count;
    bool stopped; /* asked to stop before it was through */
} train_eval_t;

/* Its memory. */
typedef struct train_eval_room {
    train_scores_t *scores[NN_FIELDS_MAX]; /* of each loss */
    size_t at[NN_FIELDS_MAX];              /* where the sums of a loss begin */
    size_t count;                          /* of the sums of a step */
    double *sums;                          /* [count] */
    double *total;                         /* [count] */
    double *leaves; /* reproducible mode: [slots, count - EVAL_FLAGS] */
    ddp_fold_t *fold;
    float *output;       /* of the largest batch, a part for each team; NULL:
                            nobody looks at it */
    size_t output_elems; /* of such a part */
    bool look;           /* does a score look at it? */
} train_eval_room_t;

/* The sums of one step. */
enum {
    EVAL_STOP,
    EVAL_FAILED,
    EVAL_FLAGS /* from here on summed along the tree in reproducible mode */
};

/* Behind them, of each loss: */
enum {
    EVAL_LOSS,
    EVAL_DENOMINATOR,
    EVAL_CORRECT,
    EVAL_COUNTED, /* elements of targets that count */
    EVAL_SCORES   /* then what train_scores_sums counts */
};

#endif
