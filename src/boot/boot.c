/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Code for all backends: selects the backend by the environment, dispatches
 * calls, and compares a hash across ranks.
 *
 * The selection uses only environment variables and calls no library: if PMIx
 * is initialized without a server, it claims to be rank 0 of 1, so each of N
 * ranks would train alone.
 */
#include "boot/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "boot/boot_backend.h"
#include "boot/spawn_wire.h"

/* The integer in the environment variable [name]; [fallback] if it is unset or
 * no integer. */
static int64_t lookup_int(const char *(*lookup)(const char *name),
                          const char *name, int64_t fallback)
{
    const char *text = lookup(name);
    int64_t value;

    return text != NULL && str_to_int(text, &value) ? value : fallback;
}

err_code_t boot_choose(const char *(*lookup)(const char *name),
                       boot_kind_t *out, err_t *err)
{
    int64_t step_tasks = lookup_int(lookup, "SLURM_STEP_NUM_TASKS", 1);
    int64_t job_tasks = lookup_int(lookup, "SLURM_NTASKS", 1);

    /* This comes first: a rank of boot_spawn_run inherits the variables of its
     * parent, which may be a task of a Slurm step. */
    if (lookup(SPAWN_VARIABLE) != NULL) {
        *out = BOOT_KIND_SPAWN;
        return ERR_OK;
    }
    /* Every PMIx server sets this variable for the processes that it starts. */
    if (lookup("PMIX_NAMESPACE") != NULL) {
        *out = BOOT_KIND_PMIX;
        return ERR_OK;
    }
    if (step_tasks > 1)
        return err_set(err, ERR_CONFIG,
                       "this step has %lld tasks, but srun gave them no PMIx, "
                       "so they cannot find each other: start it as `srun "
                       "--mpi=pmix cddp-train ...` (`srun --mpi=list` shows "
                       "what this site has)",
                       (long long)step_tasks);
    if (job_tasks > 1 && lookup("SLURM_STEP_ID") == NULL)
        log_warn("boot",
                 "this job has %lld tasks, but one process runs, outside of "
                 "any step: use `srun --mpi=pmix` to run all of them",
                 (long long)job_tasks);
    *out = BOOT_KIND_SOLO;
    return ERR_OK;
}

static const char *lookup_env(const char *name)
{
    return getenv(name);
}

err_code_t boot_open(const boot_config_t *config, boot_t **out, err_t *err)
{
    boot_kind_t kind;
    err_code_t rc = boot_choose(lookup_env, &kind, err);

    if (rc != ERR_OK)
        return rc;
    if (kind == BOOT_KIND_SPAWN)
        return boot_spawn_open(config, out, err);
    return kind == BOOT_KIND_PMIX ? boot_pmix_open(config, out, err)
                                  : boot_solo_open(out, err);
}

int boot_rank(const boot_t *boot)
{
    return boot->rank;
}

int boot_size(const boot_t *boot)
{
    return boot->size;
}

const char *boot_name(const boot_t *boot)
{
    return boot->backend->name;
}

err_code_t boot_exchange(boot_t *boot, const void *mine, size_t bytes,
                         void *all, err_t *err)
{
    check(boot->rank >= 0 && boot->rank < boot->size, "rank %d of %d",
          boot->rank, boot->size);
    if (boot->size == 1) {
        if (bytes > 0)
            memcpy(all, mine, bytes);
        return ERR_OK;
    }
    return boot->backend->exchange(boot, mine, bytes, all, err);
}

err_code_t boot_exchange_call(void *boot, const void *mine, size_t bytes,
                              void *all, err_t *err)
{
    return boot_exchange(boot, mine, bytes, all, err);
}

/* What each rank contributes to boot_agree. */
typedef struct agree_entry {
    uint64_t hash;
    char host[ERR_HOST_MAX];
} agree_entry_t;

/* The lowest rank that has the most common hash. */
static int agree_majority(const agree_entry_t *all, int size)
{
    int best = 0, best_count = 0;

    for (int i = 0; i < size; i++) {
        int count = 0;

        for (int k = 0; k < size; k++)
            count += all[k].hash == all[i].hash;
        if (count > best_count) {
            best = i;
            best_count = count;
        }
    }
    return best;
}

/* Compare all entries with the most common hash. */
static err_code_t agree_judge(const agree_entry_t *all, int size,
                              const char *what, err_t *err)
{
    char names[256];
    bool *odd = NULL;
    int majority = agree_majority(all, size), first = -1, count;
    err_code_t rc = mem_new(bool, (size_t)size, "a comparison", &odd, err);

    if (rc != ERR_OK)
        return rc;
    for (int rank = size - 1; rank >= 0; rank--) {
        odd[rank] = all[rank].hash != all[majority].hash;
        if (odd[rank])
            first = rank;
    }
    count = boot_rank_list(odd, size, names, sizeof names);
    mem_free(odd);
    if (count == 0)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "the %s of %s (first on host %s) differs from that of the "
                   "other %d ranks: all ranks must start with the same run "
                   "file, options and build",
                   what, names, all[first].host, size - count);
}

err_code_t boot_agree(boot_t *boot, const char *what, uint64_t hash, err_t *err)
{
    agree_entry_t mine = {.hash = hash};
    agree_entry_t *all = NULL;
    err_code_t rc;

    if (gethostname(mine.host, sizeof mine.host - 1) != 0)
        snprintf(mine.host, sizeof mine.host, "?");
    rc = mem_new(agree_entry_t, (size_t)boot->size, "start-up exchange", &all,
                 err);
    if (rc != ERR_OK)
        return rc;
    rc = boot_exchange(boot, &mine, sizeof mine, all, err);
    if (rc == ERR_OK)
        rc = agree_judge(all, boot->size, what, err);
    mem_free(all);
    return rc;
}

void boot_close(boot_t *boot)
{
    if (boot == NULL)
        return;
    if (boot->backend->close != NULL)
        boot->backend->close(boot);
    mem_free(boot);
}
