/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The ranks of a run find each other: agreement, group, devices. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "comm/comm_data.h"
#include "train/hello.h"
#include "train/near.h"
#include "train/run_priv.h"

/* ---- the group of the run ----------------------------------------------- */

/* The group of a run; [usual] is the backend that "auto" means. NCCL is for the
 * memory of GPUs only. */
static comm_config_t comm_of(const train_world_t *world,
                             const train_config_t *run, const char *usual)
{
    const char *asked = ddp_backend_name(&run->ddp);

    return (comm_config_t){.backend =
                               comm_control_backend(asked, world->size, usual),
                           .timeout = run->fault.timeout,
                           .table_path = run->ddp.comm_table};
}

/* Open the run's group. [usual]: see comm_of. */
static err_code_t group_open(train_world_t *world, const train_config_t *run,
                             const char *usual, err_t *err)
{
    const comm_config_t config = comm_of(world, run, usual);
    comm_oob_t oob = {.context = world->boot,
                      .rank = world->rank,
                      .size = world->size,
                      .exchange = boot_exchange_call};
    err_code_t rc = comm_group_open(&config, &oob, &world->group, err);

    if (rc != ERR_OK)
        return rc;
    world->votes = train_votes_of_group(world->group);
    return world->size == 1 ? ERR_OK
                            : train_patience_open(world->group, config.timeout,
                                                  run->fault.io_timeout,
                                                  &world->patience, err);
}

/* Return whether waiting OpenMP threads sleep. The OpenMP library reads this
 * variable once, before main(). */
static bool waits_passively(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");

    return policy != NULL && strcasecmp(policy, "passive") == 0;
}

/* Number of threads of this rank: [asked] (train.threads), or by default
 * [fair], the cores of its affinity mask divided by the ranks that share the
 * mask. More threads than cores would wait for each other: a warning is logged
 * if [logs]. */
static int threads_choose(int asked, int fair, const train_hello_t *hello,
                          bool logs)
{
    if (asked > fair && logs)
        log_warn("train",
                 "train.threads is %d, but this rank has %d core%s to "
                 "itself (%d for %d rank%s): expect it to be slower%s",
                 asked, fair, fair == 1 ? "" : "s", hello->cores,
                 hello->sharers, hello->sharers == 1 ? "" : "s",
                 waits_passively() ? ""
                                   : ", the more so as OpenMP's threads spin "
                                     "while they wait: set "
                                     "OMP_WAIT_POLICY=passive");
    return asked > 0 ? asked : fair;
}

static uint64_t versions_hash(const char *versions)
{
    return versions == NULL ? 0 : hash_bytes(versions, strlen(versions));
}

/* A hash of the bytes of model.plugin: a node with another file would compute
 * another model. 0: there is no plugin, or it cannot be read; then loading it
 * will fail and say why. */
static uint64_t plugin_hash(const train_config_t *config)
{
    const tree_t *node = tree_get(config->model, "plugin");
    const char *path = node == NULL ? NULL : tree_text(node);
    uint64_t hash = 0;
    char *bytes = NULL;
    size_t count;

    if (path != NULL && file_read(path, &bytes, &count, NULL) == ERR_OK)
        hash = hash_bytes(bytes, count);
    free(bytes);
    return hash;
}

/* Refuse MPI-IO with --local: its ranks are threads, or processes that MPI does
 * not know of. */
static err_code_t mpi_check(const train_config_t *config, const boot_t *boot,
                            err_t *err)
{
    if ((strcmp(boot_name(boot), "threads") != 0 &&
         strcmp(boot_name(boot), "spawn") != 0) ||
        (config->data.io != TRAIN_IO_MPI &&
         config->checkpoint.io != TRAIN_IO_MPI))
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "%s.io: mpi needs ranks that MPI knows of, which those of "
                   "--local are not: start them by srun --mpi=pmix, or set "
                   "%s.io to independent",
                   config->data.io == TRAIN_IO_MPI ? "data" : "checkpoint",
                   config->data.io == TRAIN_IO_MPI ? "data" : "checkpoint");
}

static err_code_t meet(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    train_hello_t hello;
    err_code_t rc;

    run->world.phase = "bootstrap";
    rc = mpi_check(config, run->world.boot, err);
    if (rc != ERR_OK)
        return rc;
    rc = train_hello(run->world.boot, train_config_hash(config),
                     run->env->build_hash, &hello, err);
    if (rc == ERR_OK && tree_get(config->model, "plugin") != NULL)
        rc = boot_agree(run->world.boot, "model.plugin", plugin_hash(config),
                        err);
    if (rc == ERR_OK && config->train.reproducible)
        rc = boot_agree(run->world.boot, "CPU model or library versions",
                        versions_hash(run->env->versions), err);
    if (rc != ERR_OK)
        return rc;
    if (config->train.batch < run->world.size)
        return err_set(err, ERR_CONFIG,
                       "train.batch is %lld, smaller than the %d ranks: some "
                       "would never have a sample; raise it or start fewer "
                       "ranks",
                       (long long)config->train.batch, run->world.size);
    run->compute.local = hello.local;
    run->compute.cores =
        hello.cores > hello.sharers ? hello.cores / hello.sharers : 1;
    run->compute.threads =
        threads_choose((int)config->train.threads, run->compute.cores, &hello,
                       run->world.rank == 0);
    return group_open(&run->world, config, run->env->backend, err);
}

/* Leave PMIx before training: if a rank loses it, Slurm kills the step. MPI
 * keeps it open until the end. */
static err_code_t leave_boot(train_state_t *run, err_t *err)
{
    const train_config_t *config = run->config;
    const bool mpi = config->data.io == TRAIN_IO_MPI ||
                     config->checkpoint.io == TRAIN_IO_MPI;

    if (!mpi || !h5mpi_wants_boot()) {
        boot_close(run->world.boot);
        run->world.boot = NULL;
    }
    if (!mpi)
        return ERR_OK;
    return h5mpi_open(run->world.rank, run->world.size, &run->world.mpi, err);
}

/* ---- devices ------------------------------------------------------------- */

/* Open the device on which this rank computes. Collective. */
static err_code_t device_open(train_state_t *run, err_t *err)
{
    err_code_t rc;

    train_phase_set(&run->world, "opening devices");
    rc = train_device_open(run->config, run->world.group, run->compute.local,
                           &run->compute.device, err);
    run->compute.dev = run->compute.device.dev;
    return train_world_vote(&run->world, rc, err);
}

/* Note the device where results are attributed to machine and libraries. */
static err_code_t device_note(train_state_t *run, err_t *err)
{
    const train_device_t *device = &run->compute.device;
    const char *versions = run->env->versions;
    err_code_t rc =
        train_device_check(run->config, run->world.group, device, err);

    if (rc != ERR_OK || dev_host_visible(device->dev))
        return rc;
    if (versions != NULL)
        run->compute.versions = str_printf("%s, %s", versions, device->name);
    train_near_bind(device, run->world.rank == 0);
    if (run->world.rank == 0)
        log_info("train", "computes on %s", device->name);
    return ERR_OK;
}

/* Set config->backend to the backend whose collectives work on the memory of
 * the devices. */
static err_code_t data_backend_choose(const train_state_t *run,
                                      comm_config_t *config, err_t *err)
{
    const char *asked = ddp_backend_name(&run->config->ddp);

    if (strcmp(asked, COMM_NCCL) == 0 &&
        strcmp(dev_name(run->compute.dev), "cuda") != 0)
        return err_set(err, ERR_CONFIG,
                       "ddp.backend is nccl, which works on GPUs, and this run "
                       "computes on %s: set ddp.backend to auto, or "
                       "train.device to cuda",
                       run->compute.device.name);
    config->backend =
        comm_data_backend(asked, config->backend, run->compute.dev);
    return ERR_OK;
}

/* Open the group whose collectives work on the devices. Collective. */
static err_code_t data_group_open(train_state_t *run, err_t *err)
{
    train_world_t *world = &run->world;
    comm_config_t config = comm_of(world, run->config, run->env->backend);
    err_code_t rc = data_backend_choose(run, &config, err);

    if (run->config->train.share_gpu)
        comm_sharing_allow(world->rank);
    if (run->config->train.reproducible)
        config.tree_scratch = COMM_TREE_SCRATCH;
    if (rc == ERR_OK)
        rc = train_world_data_open(world, &config, run->compute.dev, err);
    if (rc == ERR_UNAVAILABLE && strcmp(config.backend, COMM_NCCL) == 0)
        err_suffix(err, "ddp.backend: ucx needs no NCCL, but is slower");
    if (rc == ERR_OK && world->data != world->group)
        train_patience_also(world->patience, world->data);
    return train_world_vote(world, rc, err);
}

/* leave_boot, and a vote on its outcome. Collective. */
static err_code_t boot_end(train_state_t *run, err_t *err)
{
    err_code_t rc = leave_boot(run, err);

    return train_world_vote(&run->world, rc, err);
}

err_code_t train_join(train_state_t *run, err_t *err)
{
    err_code_t rc = meet(run, err);

    if (rc == ERR_OK)
        rc = boot_end(run, err);
    if (rc == ERR_OK)
        rc = device_open(run, err);
    if (rc == ERR_OK)
        rc = device_note(run, err);
    return rc == ERR_OK ? data_group_open(run, err) : rc;
}
