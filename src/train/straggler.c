/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/straggler.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "obs/progress.h"
#include "slurm/step_cpu.h"
#include "train/hosts.h"
#include "train/links.h"
#include "train/record.h"
#include "train/run_priv.h"

/* Ranks and hosts that are named after one window. If more are slow, they
 * probably have a reason in common. */
#define FOUND_MAX 8

/* ---- opening and closing ------------------------------------------------- */

/* Find the host of each rank, and the first rank on each host. */
static void hosts_find(train_straggler_t *s, const train_world_t *world)
{
    s->host_count = train_hosts_number(world->group, s->hosts);
    for (int r = world->size - 1; r >= 0; r--)
        s->leads[s->hosts[r]] = r;
}

/* Open what only rank 0 has. */
static err_code_t first_open(train_state_t *run, err_t *err)
{
    train_straggler_t *s = &run->straggler;
    const int ranks = run->world.size;
    const char **names = NULL;
    err_code_t rc = obs_straggler_open(s->hosts, ranks, &s->judge, err);

    if (rc != ERR_OK || ranks > OBS_RANKS_MAX)
        return rc;
    rc = mem_new(const char *, (size_t)s->host_count, "names of hosts", &names,
                 err);
    if (rc != ERR_OK)
        return rc;
    for (int h = 0; h < s->host_count; h++)
        names[h] = comm_group_host(run->world.group, s->leads[h]);
    rc = obs_ranks_open(&(obs_ranks_places_t){.hosts = s->hosts,
                                              .ranks = ranks,
                                              .names = names},
                        &s->ranks, err);
    mem_free(names);
    return rc;
}

err_code_t train_straggler_open(train_state_t *run, err_t *err)
{
    static const char what[] = "the search for slow ranks";
    const size_t ranks = (size_t)run->world.size;
    train_straggler_t *s = &run->straggler;
    err_code_t rc;

    if (ranks == 1)
        return ERR_OK;
    rc = mem_new(int, ranks, what, &s->hosts, err);
    if (rc == ERR_OK)
        rc = mem_new(int, ranks, what, &s->leads, err);
    if (rc == ERR_OK)
        rc = mem_new(obs_load_t, ranks, what, &s->all, err);
    if (rc == ERR_OK)
        rc = mem_new(double, ranks, what, &s->sorted, err);
    if (rc == ERR_OK)
        rc = mem_new(double, ranks, what, &s->links, err);
    if (rc != ERR_OK)
        return rc;
    hosts_find(s, &run->world);
    if (run->world.rank == 0)
        rc = first_open(run, err);
    s->every = run->config->obs.every;
    s->begun = INFINITY;
    return rc;
}

void train_straggler_close(train_straggler_t *s)
{
    obs_ranks_close(s->ranks);
    obs_straggler_close(s->judge);
    mem_free(s->links);
    mem_free(s->sorted);
    mem_free(s->all);
    mem_free(s->leads);
    mem_free(s->hosts);
    *s = (train_straggler_t){0};
}

/* ---- a window ------------------------------------------------------------ */

/* What the kernel has counted so far. Ranks that are threads of one process
 * know only what their own thread waited for. */
static obs_load_t kernel_read(const train_state_t *run)
{
    const bool threads =
        strcmp(comm_group_backend(run->world.group), "threads") == 0;

    return (obs_load_t){.at = {[OBS_LOAD_THROTTLED] = slurm_cpu_throttled(""),
                               [OBS_LOAD_DELAY] = slurm_cpu_delay("", !threads),
                               [OBS_LOAD_HERTZ] = slurm_cpu_hertz("")}};
}

static void window_begin(train_state_t *run, const obs_load_t *kernel)
{
    train_straggler_t *s = &run->straggler;

    s->before = *kernel;
    s->sums = (obs_load_t){.at = {0}};
    s->steps = 0;
    s->begun = clock_now();
}

void train_straggler_begin(train_state_t *run)
{
    obs_load_t kernel;

    if (run->straggler.every <= 0)
        return;
    kernel = kernel_read(run);
    window_begin(run, &kernel);
}

/* What a step of [row] waited for besides its data. */
static double waits(const train_state_t *run, const obs_step_t *row)
{
    const train_sync_t *sync = run->replica.sync;

    return row->comm_exposed_s + run->weigh.waited +
           (sync == NULL ? 0 : sync->waited);
}

void train_straggler_step(train_state_t *run, const hdf5io_batch_t *batch,
                          const obs_step_t *row)
{
    double *sums = run->straggler.sums.at;
    const double waited = waits(run, row);
    const double mean = (double)batch->global / run->world.size;
    double compute = row->step_s - row->data_s - waited;

    /* A rank is not slow because it has more samples than others. */
    if ((double)batch->count > mean)
        compute *= mean / (double)batch->count;
    sums[OBS_LOAD_STEP] += row->step_s;
    sums[OBS_LOAD_DATA] += row->data_s;
    sums[OBS_LOAD_COMPUTE] += compute > 0 ? compute : 0;
    sums[OBS_LOAD_COMM] += waited;
    sums[OBS_LOAD_BYTES] += row->comm_bytes;
    run->straggler.steps++;
}

bool train_straggler_due(const train_straggler_t *s, double now)
{
    const double first = fmin(s->every, OBS_PROGRESS_FIRST);

    return s->every > 0 && now - s->begun >= (s->looked ? s->every : first);
}

/* ---- comparing ----------------------------------------------------------- */

/* Means over the steps of the window. */
static obs_load_t load_mean(const train_straggler_t *s,
                            const obs_load_t *kernel)
{
    static const obs_load_number_t counted[] = {OBS_LOAD_THROTTLED,
                                                OBS_LOAD_DELAY};
    const double steps = s->steps > 0 ? (double)s->steps : 1;
    obs_load_t mean = s->sums;

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const double more = kernel->at[counted[i]] - s->before.at[counted[i]];

        mean.at[counted[i]] = more > 0 ? more : 0;
    }
    for (int i = 0; i < OBS_LOAD_NUMBERS; i++)
        mean.at[i] /= steps;
    mean.at[OBS_LOAD_HERTZ] = kernel->at[OBS_LOAD_HERTZ];
    return mean;
}

/* If ranks wait for messages, measure the links between hosts and set
 * [measured]. All ranks have the same loads, so all decide the same. */
static err_code_t links_look(train_state_t *run, bool *measured, err_t *err)
{
    train_straggler_t *s = &run->straggler;

    *measured = s->host_count > 1 && s->host_count <= TRAIN_LINKS_HOSTS &&
                obs_straggler_links_matter(s->all, run->world.size, s->sorted);
    return *measured ? train_links_measure(run->world.group, s->leads,
                                           s->host_count, s->links, err)
                     : ERR_OK;
}

static void judge(train_state_t *run, bool links)
{
    const train_straggler_t *s = &run->straggler;
    const obs_window_t window = {.loads = s->all,
                                 .links = links ? s->links : NULL,
                                 .bytes = TRAIN_LINKS_BYTES};
    obs_slow_t found[FOUND_MAX];
    int count;

    if (s->judge == NULL)
        return;
    count = obs_straggler_window(s->judge, &window, found, FOUND_MAX);
    for (int i = 0; i < count; i++) {
        const char *host =
            comm_group_host(run->world.group, s->leads[found[i].host]);
        char text[512];

        obs_slow_format(&found[i], host, text, sizeof text);
        obs_progress_say(run->seen.progress, clock_now(), "%s", text);
        train_record_slow(run, &found[i], host);
    }
}

/* Keep the loads of the window that is over; record them if that is due. */
static void keep(train_state_t *run)
{
    const train_straggler_t *s = &run->straggler;

    if (s->ranks == NULL)
        return;
    obs_ranks_add(s->ranks, s->all, s->steps);
    if (obs_ranks_due(s->ranks))
        train_record_ranks(run, s->ranks);
}

err_code_t train_straggler_look(train_state_t *run, err_t *err)
{
    train_straggler_t *s = &run->straggler;
    const obs_load_t kernel = kernel_read(run);
    const obs_load_t mine = load_mean(s, &kernel);
    bool links = false;
    err_code_t rc;

    train_phase_set(&run->world, "comparing loads");
    rc = comm_allgather(run->world.group, &mine, sizeof mine, s->all, err);
    if (rc == ERR_OK)
        rc = links_look(run, &links, err);
    if (rc == ERR_OK)
        judge(run, links);
    if (rc == ERR_OK)
        keep(run);
    s->looked = true;
    window_begin(run, &kernel);
    return rc;
}

void train_straggler_end(train_state_t *run)
{
    obs_ranks_t *ranks = run->straggler.ranks;

    if (ranks != NULL && obs_ranks_windows(ranks) > 0)
        train_record_ranks(run, ranks);
}
