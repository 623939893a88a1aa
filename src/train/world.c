/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/world.h"

err_code_t train_world_vote(train_world_t *world, err_code_t code, err_t *err)
{
    return train_vote(&world->votes, code, &world->speaker, err);
}

void train_phase_set(train_world_t *world, const char *phase)
{
    world->phase = phase;
    if (world->group != NULL)
        comm_group_report(world->group, *world->step, phase);
    if (world->sync != NULL)
        comm_group_report(world->sync, *world->step, phase);
}

void train_storage_begin(train_world_t *world, const char *phase)
{
    train_phase_set(world, phase);
    train_patience_begin(world->patience, *world->step, phase);
}

void train_storage_end(train_world_t *world)
{
    train_patience_end(world->patience);
}
