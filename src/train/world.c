/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/world.h"

#include "comm/comm_split.h"

/* Is [err] what a device reports if it fails or can no longer be used? */
static bool device_failed(const err_t *err)
{
    return err->code == ERR_UNAVAILABLE ||
           (err->code == ERR_PEER && err->culprit < 0);
}

/* Replace the error of the device by the fault that the group knows, which is
 * its cause: a rank that is gone also breaks connections of devices. If several
 * devices fail at once, all ranks thus name the culprit that the group has seen
 * first. If the group knows no fault, this rank is the culprit. */
static err_code_t fault_name(const train_world_t *world, err_t *err)
{
    const err_t reason = *err;

    if (comm_group_check(world->group, err) != ERR_OK)
        return err->code;
    return err_set_peer(err, world->rank,
                        comm_group_host(world->group, world->rank), "%s",
                        reason.text);
}

err_code_t train_world_lost(train_world_t *world, err_t *err)
{
    if (!world->working)
        return err->code;
    if (comm_group_check(world->group, NULL) != ERR_OK)
        return device_failed(err) ? fault_name(world, err) : err->code;
    /* The reducer tells the data group of what it meets itself. */
    if (comm_group_check(world->data, NULL) != ERR_OK) {
        if (err->culprit == world->rank)
            comm_group_fail(world->group, err);
        return err->code;
    }
    comm_group_fail(world->group, err);
    comm_group_fail(world->data, err);
    return fault_name(world, err);
}

void train_world_tell(train_world_t *world, const err_t *fault)
{
    if (world->group != NULL)
        comm_group_tell(world->group, fault);
    if (world->data != NULL && world->data != world->group)
        comm_group_tell(world->data, fault);
    if (world->sync != NULL)
        comm_group_tell(world->sync, fault);
}

err_code_t train_world_vote(train_world_t *world, err_code_t code, err_t *err)
{
    if (world->working && code != ERR_OK && err != NULL && device_failed(err))
        code = fault_name(world, err);
    return train_vote(&world->votes, code, &world->speaker, err);
}

/* Each wait for the device calls this, to learn whether it must end. */
static err_code_t device_look(void *context, double waited, err_t *err)
{
    train_world_t *world = context;

    return world->data == NULL ? ERR_OK
                               : comm_group_look(world->data, waited, err);
}

err_code_t train_world_data_open(train_world_t *world,
                                 const comm_config_t *like, dev_device_t *dev,
                                 err_t *err)
{
    comm_config_t config = *like;

    err_code_t rc;

    world->data = world->group;
    if (dev_host_visible(dev))
        return ERR_OK;
    config.dev = dev;
    world->data = NULL;
    rc = comm_split_whole(world->group, &config, &world->data, err);
    if (rc == ERR_OK)
        dev_watch(dev, device_look, world);
    return rc;
}

bool train_world_graphs(const train_world_t *world)
{
    return world->size == 1 || comm_group_enqueues(world->data);
}

void train_world_data_close(train_world_t *world)
{
    if (world->data != world->group)
        comm_group_close(world->data);
    world->data = NULL;
}

void train_phase_set(train_world_t *world, const char *phase)
{
    world->phase = phase;
    if (world->group != NULL)
        comm_group_report(world->group, *world->step, phase);
    if (world->data != NULL && world->data != world->group)
        comm_group_report(world->data, *world->step, phase);
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
