/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/intro.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "obs/spent.h"
#include "train/hosts.h"
#include "train/stage.h"
#include "train/ways.h"

#define HOSTS_NAMED 4

bool train_intro_idle(const char *per_node, int ranks, int cores, char *out,
                      size_t room)
{
    const long all = per_node == NULL ? 0 : strtol(per_node, NULL, 10);
    const long used = (long)ranks * cores;

    if (2 * used >= all)
        return false;
    snprintf(out, room,
             "%ld of the %ld cores that the job has on this node are used (%d "
             "rank%s of %d core%s): start more ranks, or give each of them "
             "more cores by --cpus-per-task of sbatch and of srun",
             used, all, ranks, ranks == 1 ? "" : "s", cores,
             cores == 1 ? "" : "s");
    return true;
}

bool train_intro_slow(const char *route, const char *ports, char *out,
                      size_t room)
{
    if (route == NULL || strncmp(route, "tcp:", 4) != 0 || ports[0] == '\0')
        return false;
    snprintf(out, room,
             "ranks send over %s to other hosts, although InfiniBand is up "
             "(%s): 'ucx_info -d' lists the transports that UCX has here; look "
             "whether UCX_TLS or UCX_NET_DEVICES leaves InfiniBand out, and "
             "whether UCX was built with verbs",
             route, ports);
    return true;
}

/* "new", or from what the run resumes. */
static void run_add(const train_state_t *run, str_buf_t *text)
{
    char when[32] = "";
    struct stat status;

    str_buf_add(text, "run: %s in %s, ", run->config->run.name, run->dir.path);
    if (run->dir.resumed == NULL) {
        str_buf_add(text, "new\n");
        return;
    }
    str_buf_add(text, "resumed from step %lld", (long long)run->progress.step);
    if (stat(run->dir.resumed, &status) == 0)
        str_buf_add(text, " of %s",
                    clock_format((double)status.st_mtime, when, sizeof when));
    str_buf_add(text, "\n");
}

static bool host_is_new(const comm_group_t *group, int rank)
{
    return train_hosts_first(group, 0, rank) == rank;
}

static int hosts_count(const comm_group_t *group)
{
    int count = 0;

    for (int r = 0; r < comm_group_size(group); r++)
        count += host_is_new(group, r);
    return count;
}

/* Add how ranks reach each other, in words. */
static void transports_add(const train_world_t *world, int hosts,
                           str_buf_t *text)
{
    const char *backend = comm_group_backend(world->group);
    const char *route = comm_group_route(world->group);
    const bool gpus = world->data != NULL && world->data != world->group &&
                      strcmp(comm_group_backend(world->data), "nccl") == 0;

    if (world->size == 1)
        str_buf_add(text, "none needed");
    else if (strcmp(backend, "ucx") != 0)
        str_buf_add(text, "%s", backend);
    else if (hosts == 1)
        str_buf_add(text, gpus ? "NCCL, and shared memory for the host"
                               : "shared memory");
    else
        str_buf_add(text, "%s%s between hosts",
                    gpus                   ? "NCCL, and for the host "
                    : hosts == world->size ? ""
                                           : "shared memory, and ",
                    route != NULL ? route : "UCX");
}

static void ranks_add(const train_state_t *run, str_buf_t *text)
{
    const comm_group_t *group = run->world.group;
    const int hosts = hosts_count(group);
    int named = 0;

    str_buf_add(text, "ranks: %d x %d thread%s on %d host%s (", run->world.size,
                run->compute.threads, run->compute.threads == 1 ? "" : "s",
                hosts, hosts == 1 ? "" : "s");
    for (int r = 0; r < run->world.size && named < HOSTS_NAMED; r++)
        if (host_is_new(group, r))
            str_buf_add(text, "%s%s", named++ == 0 ? "" : ", ",
                        comm_group_host(group, r));
    str_buf_add(text, "%s), transports: ", hosts > named ? ", ..." : "");
    transports_add(&run->world, hosts, text);
    str_buf_add(text, "\n");
}

static void model_add(const train_state_t *run, str_buf_t *text)
{
    char count[32];

    str_buf_add(
        text, "model: %s parameters, %s on %s\n",
        str_count(nn_graph_param_elems(run->graph), count, sizeof count),
        train_precision_name(run->compute.type), run->compute.device.name);
}

static void data_add(const train_state_t *run, str_buf_t *text)
{
    const train_data_t *train = &run->data.train, *valid = &run->data.valid;
    char count[32];
    int shards = hdf5io_dataset_shards(train->dataset);

    str_buf_add(text, "data: %s samples in %d file%s",
                str_count((uint64_t)hdf5io_dataset_samples(train->dataset),
                          count, sizeof count),
                shards, shards == 1 ? "" : "s");
    if (valid->dataset != NULL)
        str_buf_add(text, ", %s to evaluate",
                    str_count((uint64_t)hdf5io_dataset_samples(valid->dataset),
                              count, sizeof count));
    str_buf_add(text, "; %lld steps an epoch, %lld epoch%s\n",
                (long long)train->steps, (long long)run->config->train.epochs,
                run->config->train.epochs == 1 ? "" : "s");
    train_ways_add("train", train, text);
    train_ways_add("valid", valid, text);
    train_stage_add(run->config, train, valid, text);
}

static void time_add(train_state_t *run, str_buf_t *text)
{
    const train_deadline_t *deadline = &run->leave.deadline;
    const double end = deadline->limits.end;
    char left[32], before[32];

    if (isfinite(end))
        str_buf_add(
            text,
            "time: %s left; the run leaves about %s before the end, with "
            "a checkpoint\n",
            obs_duration_format(end - clock_now(), left, sizeof left),
            obs_duration_format(end - train_deadline_instant(deadline, true),
                                before, sizeof before));
    else if (run->leave.watch == NULL)
        str_buf_add(text, "time: no limit, as there is no Slurm job\n");
    else
        str_buf_add(text, run->leave.known
                              ? "time: the job has no limit\n"
                              : "time: Slurm has not told yet when the job "
                                "ends\n");
}

/* Warn if most of the job's cores are idle. */
static void cores_check(const train_state_t *run)
{
    const comm_group_t *group = run->world.group;
    char why[256];
    int ranks = 0;

    for (int r = 0; r < run->world.size; r++)
        ranks +=
            strcmp(comm_group_host(group, r), comm_group_host(group, 0)) == 0;
    if (dev_host_visible(run->compute.dev) &&
        train_intro_idle(getenv("SLURM_JOB_CPUS_PER_NODE"), ranks,
                         run->compute.cores, why, sizeof why))
        log_warn("train", "%s", why);
}

/* Warn if messages go over TCP although the host has InfiniBand. */
static void network_check(const train_state_t *run)
{
    char ports[256], why[640];

    comm_infiniband_ports(ports, sizeof ports);
    if (train_intro_slow(comm_group_route(run->world.group), ports, why,
                         sizeof why))
        log_warn("train", "%s", why);
}

void train_intro_print(train_state_t *run)
{
    str_buf_t text = {0};

    if (run->seen.progress == NULL)
        return;
    run_add(run, &text);
    ranks_add(run, &text);
    model_add(run, &text);
    data_add(run, &text);
    time_add(run, &text);
    obs_progress_text(run->seen.progress, text.text);
    str_buf_free(&text);
    cores_check(run);
    network_check(run);
}
