/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/replay.h"

#include "base/log.h"

#define PLAIN 2 /* steps before one is captured */

train_replay_graph_t *train_replay_find(train_replay_t *replay, bool last,
                                        int slot)
{
    train_replay_graph_t *graph = replay->graphs;

    if (replay->off)
        return NULL;
    while (graph < replay->graphs + replay->count &&
           (graph->last != last || graph->slot != slot))
        graph++;
    if (graph < replay->graphs + replay->count)
        return graph;
    if (replay->count == TRAIN_REPLAYS_MAX)
        return NULL;
    replay->count++;
    *graph = (train_replay_graph_t){.last = last, .slot = slot};
    return graph;
}

bool train_replay_due(train_replay_graph_t *graph)
{
    return ++graph->plain > PLAIN;
}

void train_replay_stop(train_replay_t *replay, const char *why, bool logs)
{
    if (!replay->off && logs)
        log_info("train",
                 "the operations of a step are launched one by one: %s", why);
    replay->off = true;
}

void train_replay_close(train_replay_t *replay)
{
    for (int i = 0; i < replay->count; i++)
        dev_graph_close(replay->graphs[i].graph);
    *replay = (train_replay_t){0};
}
