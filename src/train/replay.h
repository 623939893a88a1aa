/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * replay: steps as graphs of the device. The operations of a step are the same
 * each time: what changes is read from step_io's block and from the batch. So
 * after two plain steps a step is captured, and later ones launch the graph:
 * one call instead of hundreds. Each slot of the feed has two graphs: one for
 * the last step of an epoch, and one for all other steps. So ranks that sum
 * gradients in the graph capture and launch it in the same steps, however many
 * samples each of them has. Thread rule: one thread.
 */
#ifndef CDDP_TRAIN_REPLAY_H
#define CDDP_TRAIN_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "dev/dev.h"

/* Two slots of the feed, each with a graph for the last step and one for
 * others. */
#define TRAIN_REPLAYS_MAX 4

typedef struct train_replay_graph {
    bool last;
    int slot;
    int64_t samples;    /* of this rank, in the captured step */
    int64_t plain;      /* steps made without the graph so far */
    dev_graph_t *graph; /* NULL: not captured yet */
} train_replay_graph_t;

typedef struct train_replay {
    bool off; /* steps cannot be captured */
    train_replay_graph_t graphs[TRAIN_REPLAYS_MAX];
    int count;
} train_replay_t;

/* Find the graph for a step; [last]: it is the last step of its epoch. The
 * graph may not be captured yet. NULL: the step is made without a graph. */
train_replay_graph_t *train_replay_find(train_replay_t *replay, bool last,
                                        int slot);

/* Is it time to capture a step instead of making it plainly? To be called once
 * for each step without a graph. */
bool train_replay_due(train_replay_graph_t *graph);

/* Steps cannot be captured, because of [why]: log this once. */
void train_replay_stop(train_replay_t *replay, const char *why, bool logs);

/* The launches must be done. */
void train_replay_close(train_replay_t *replay);

#endif
