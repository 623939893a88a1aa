/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/dataset_stage.h"
#include "train/limits.h"

#define STAGE_TMPFS 0x01021994
/* Files of a tmpfs count as memory of the job. Copies may take
 * 1 / STAGE_MEMORY_PART of this memory. */
#define STAGE_MEMORY_PART 4

/* The shards of both splits, those of valid after those of train. */
typedef struct stage_plan {
    stage_file_t *files; /* [count] */
    int count, train;    /* shards of both splits, and of the split train */
    int wanted;          /* shards to copy */
    uint64_t bytes;      /* of the shards to copy */
    const char *dir;
    uint64_t most; /* bytes that copies may take */
} stage_plan_t;

static const char *dir_of(const train_config_t *config)
{
    const char *user = getenv("TMPDIR");

    if (config->data.stage_dir[0] != '\0')
        return config->data.stage_dir;
    return user != NULL && user[0] != '\0' ? user : "/dev/shm";
}

static uint64_t most_of(const char *dir)
{
    struct statfs system;

    if (statfs(dir, &system) != 0 ||
        (uint32_t)system.f_type != (uint32_t)STAGE_TMPFS)
        return UINT64_MAX;
    return train_limits_node("").bytes / STAGE_MEMORY_PART;
}

/* [plan] is to be freed by plan_free. */
static err_code_t plan_make(const train_config_t *config,
                            const train_data_t *train,
                            const train_data_t *valid, stage_plan_t *plan,
                            err_t *err)
{
    const int own = hdf5io_dataset_shards(train->dataset);
    const int other =
        valid->dataset == NULL ? 0 : hdf5io_dataset_shards(valid->dataset);
    err_code_t rc;

    *plan = (stage_plan_t){.dir = dir_of(config)};
    plan->count = own + other;
    plan->train = own;
    plan->most = most_of(plan->dir);
    rc = mem_new(stage_file_t, (size_t)plan->count, "staging", &plan->files,
                 err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_dataset_stage_files(train->dataset, plan->files);
    if (other > 0)
        hdf5io_dataset_stage_files(valid->dataset, plan->files + own);
    for (int i = 0; i < plan->count; i++) {
        plan->wanted += plan->files[i].wanted;
        plan->bytes += plan->files[i].wanted ? plan->files[i].bytes : 0;
    }
    return ERR_OK;
}

static void plan_free(stage_plan_t *plan)
{
    mem_free(plan->files);
}

err_code_t train_stage_agree(const train_config_t *config, comm_group_t *group,
                             train_stage_t *stage, err_t *err)
{
    if (config->data.io != TRAIN_IO_STAGE)
        return ERR_OK;
    /* A number that no other job has. Early at boot the kernel has no random
     * numbers yet. */
    if (comm_group_rank(group) == 0 &&
        getrandom(&stage->key, sizeof stage->key, GRND_NONBLOCK) < 0)
        stage->key = (uint64_t)getpid();
    return comm_broadcast(group, &stage->key, sizeof stage->key, 0, err);
}

/* Open the stage, and let the splits read its copies. */
static err_code_t stage_begin(const stage_plan_t *plan,
                              const comm_group_t *group,
                              const train_data_t *train,
                              const train_data_t *valid, train_stage_t *stage,
                              err_t *err)
{
    const int64_t rank = comm_group_rank(group), size = comm_group_size(group);
    /* Nodes begin at different files, so that they do not all read the same
     * file at the same time. */
    const stage_config_t config = {.dir = plan->dir,
                                   .key = stage->key,
                                   .files = plan->files,
                                   .count = plan->count,
                                   .first = (int)(plan->count * rank / size),
                                   .most = plan->most};
    err_code_t rc;

    if (plan->wanted == 0)
        return err_set(err, ERR_DATA,
                       "all shards refer to other files, or are empty");
    rc = hdf5io_stage_open(&config, &stage->stage, err);
    if (rc != ERR_OK)
        return rc;
    hdf5io_dataset_stage(train->dataset, stage->stage, 0);
    if (valid->dataset != NULL)
        hdf5io_dataset_stage(valid->dataset, stage->stage, plan->train);
    hdf5io_stage_start(stage->stage);
    return ERR_OK;
}

void train_stage_open(const train_config_t *config, const comm_group_t *group,
                      int local, const train_data_t *train,
                      const train_data_t *valid, train_stage_t *stage)
{
    stage_plan_t plan;
    err_t err = ERR_INIT;
    err_code_t rc;

    if (config->data.io != TRAIN_IO_STAGE)
        return;
    rc = plan_make(config, train, valid, &plan, &err);
    if (rc == ERR_OK)
        rc = stage_begin(&plan, group, train, valid, stage, &err);
    plan_free(&plan);
    if (rc != ERR_OK && local == 0)
        log_warn("train",
                 "data.io: stage: nothing is copied to this node, and all "
                 "shards are read from their own place: %s",
                 err.text);
}

void train_stage_close(train_stage_t *stage)
{
    hdf5io_stage_close(stage->stage);
    stage->stage = NULL;
}

void train_stage_add(const train_config_t *config, const train_data_t *train,
                     const train_data_t *valid, str_buf_t *text)
{
    char bytes[32], there[32];
    stage_plan_t plan;
    uint64_t room;

    if (config->data.io != TRAIN_IO_STAGE ||
        plan_make(config, train, valid, &plan, NULL) != ERR_OK)
        return;
    room = hdf5io_stage_room(plan.dir);
    room = room < plan.most ? room : plan.most;
    str_buf_add(text,
                "  stage: %d of %d shards (%s) are copied to %s on each node, "
                "from the first epoch on",
                plan.wanted, plan.count,
                str_bytes(plan.bytes, bytes, sizeof bytes), plan.dir);
    if (plan.bytes > room)
        str_buf_add(text, "; on this node the directory has room for %s",
                    str_bytes(room, there, sizeof there));
    if (plan.wanted < plan.count)
        str_buf_add(text, "; the other shards refer to other files, or are "
                          "empty");
    str_buf_add(text, "\n");
    plan_free(&plan);
}
