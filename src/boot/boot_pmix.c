/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ranks that srun (or another launcher with a PMIx server) started.
 *
 * An exchange is Put, Commit, a fence that collects data, and a Get from every
 * rank. Facts that shape it:
 * - Without PMIX_COLLECT_DATA a fence is no barrier across nodes.
 * - PMIX_TIMEOUT bounds only the part of a fence inside a node; the part
 *   across nodes obeys SLURM_PMIX_TIMEOUT (300 s), which the launching side
 *   reads. So we start the fence and wait for it ourselves, with our own limit.
 * - A key can be published once: each exchange has its own.
 * - While PMIx is open, the death of a rank kills the whole step; so it is
 *   closed before training, unless MPI needs it.
 */
#include "config.h"

#include "boot/boot_backend.h"

#ifdef HAVE_PMIX

#include <math.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"

/* After a fence failed, absent ranks are looked for; each costs PROBE_TIMEOUT
 * (whole seconds: PMIx knows no others), so only the first few. */
#define PROBE_TIMEOUT 1
#define PROBE_ABSENT 4

typedef struct client {
    pmix_proc_t self;
    unsigned round;
    bool failed; /* a fence failed: only close is left */

    /* The fence under way; its callback comes on a thread of PMIx. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fence_done;
    pmix_status_t fence_status;
} client_t;

/* PMIx's whole seconds for our [seconds]; at least one. */
static int whole_seconds(double seconds)
{
    return seconds < 1 ? 1 : (int)ceil(seconds);
}

static err_code_t pmix_error(err_t *err, pmix_status_t status, const char *what)
{
    return err_set(err, ERR_UNAVAILABLE, "PMIx: %s failed: %s (%d)", what,
                   PMIx_Error_string(status), status);
}

/* ---- open ---------------------------------------------------------------- */

static err_code_t job_size(const client_t *client, int *out, err_t *err)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;
    pmix_status_t status;

    PMIX_LOAD_PROCID(&job, client->self.nspace, PMIX_RANK_WILDCARD);
    status = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return pmix_error(err, status, "asking for the number of ranks");
    *out = (int)value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return ERR_OK;
}

/* PMIx may answer "1" where it found no server; Slurm knows better. */
static err_code_t job_check(int size, err_t *err)
{
    const char *text = getenv("SLURM_STEP_NUM_TASKS");
    int64_t tasks;

    if (text == NULL || !str_to_int(text, &tasks) || tasks == size)
        return ERR_OK;
    return err_set(err, ERR_CONFIG,
                   "PMIx says that this step has %d tasks, Slurm says %lld: "
                   "start it as `srun --mpi=pmix cddp-train ...`",
                   size, (long long)tasks);
}

static err_code_t client_open(client_t *client, boot_t *boot, err_t *err)
{
    pmix_status_t status;
    err_code_t code;

    if (getenv("PMIX_NAMESPACE") == NULL)
        return err_set(err, ERR_CONFIG,
                       "no PMIx server started this process: start it as "
                       "`srun --mpi=pmix cddp-train ...` (`srun --mpi=list` "
                       "shows what this site has)");
    status = PMIx_Init(&client->self, NULL, 0);
    if (status != PMIX_SUCCESS)
        return pmix_error(err, status, "PMIx_Init");
    code = job_size(client, &boot->size, err);
    if (code == ERR_OK)
        code = job_check(boot->size, err);
    if (code != ERR_OK) {
        PMIx_Finalize(NULL, 0);
        return code;
    }
    boot->rank = (int)client->self.rank;
    return ERR_OK;
}

/* ---- fence --------------------------------------------------------------- */

static void fence_done(pmix_status_t status, void *context)
{
    client_t *client = context;

    pthread_mutex_lock(&client->lock);
    client->fence_done = true;
    client->fence_status = status;
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* Fence and collect what all have put; PMIX_ERR_TIMEOUT after our own limit. */
static pmix_status_t fence(client_t *client, double timeout)
{
    double deadline = clock_now() + timeout;
    int seconds = whole_seconds(timeout);
    bool collect = true;
    pmix_info_t info[2];
    pmix_status_t status;

    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    client->fence_done = false;
    status = PMIx_Fence_nb(NULL, 0, info, 2, fence_done, client);
    if (status == PMIX_OPERATION_SUCCEEDED)
        return PMIX_SUCCESS;
    if (status != PMIX_SUCCESS)
        return status;
    pthread_mutex_lock(&client->lock);
    while (!client->fence_done)
        if (!thread_cond_wait(&client->changed, &client->lock, deadline))
            break;
    status = client->fence_done ? client->fence_status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&client->lock);
    return status;
}

/* ---- exchange ------------------------------------------------------------ */

static pmix_status_t publish(const char *key, const void *mine, size_t bytes)
{
    pmix_value_t value;
    pmix_status_t status;

    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)(uintptr_t)mine; /* Put copies */
    value.data.bo.size = bytes;
    status = PMIx_Put(PMIX_GLOBAL, key, &value);
    return status == PMIX_SUCCESS ? PMIx_Commit() : status;
}

/* Get what [rank] published; the caller releases *out. */
static pmix_status_t fetch(const client_t *client, int rank, const char *key,
                           int timeout, pmix_value_t **out)
{
    pmix_proc_t peer;
    pmix_info_t info;

    PMIX_LOAD_PROCID(&peer, client->self.nspace, (pmix_rank_t)rank);
    PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &timeout, PMIX_INT);
    return PMIx_Get(&peer, key, &info, 1, out);
}

static err_code_t collect(const client_t *client, const boot_t *boot,
                          const char *key, size_t bytes, char *all, err_t *err)
{
    for (int rank = 0; rank < boot->size; rank++) {
        pmix_value_t *value = NULL;
        pmix_status_t status;
        size_t found;

        if (rank == boot->rank)
            continue;
        status = fetch(client, rank, key, whole_seconds(boot->timeout), &value);
        if (status != PMIX_SUCCESS)
            return err_set_peer(err, rank, NULL,
                                "PMIx: rank %d came to exchange %u, but its "
                                "data did not: %s (%d)",
                                rank, client->round, PMIx_Error_string(status),
                                status);
        found = value->type == PMIX_BYTE_OBJECT ? value->data.bo.size : 0;
        if (found == bytes)
            memcpy(all + (size_t)rank * bytes, value->data.bo.bytes, bytes);
        PMIX_VALUE_RELEASE(value);
        if (found != bytes)
            return err_set(err, ERR_CONFIG,
                           "start-up exchange %u: rank %d gives %zu bytes, "
                           "rank %d %zu: do all ranks run the same build and "
                           "run file?",
                           client->round, rank, found, boot->rank, bytes);
    }
    return ERR_OK;
}

/* Who has not published [key]? The fence does not tell; asking each does. */
static err_code_t name_absent(const client_t *client, const boot_t *boot,
                              const char *key, pmix_status_t why, err_t *err)
{
    bool *absent = calloc((size_t)boot->size, sizeof *absent);
    char names[256] = "";
    int count = 0, first = -1;

    for (int rank = 0; absent != NULL && rank < boot->size; rank++) {
        pmix_value_t *value = NULL;

        if (rank == boot->rank)
            continue;
        if (fetch(client, rank, key, PROBE_TIMEOUT, &value) == PMIX_SUCCESS) {
            PMIX_VALUE_RELEASE(value);
            continue;
        }
        absent[rank] = true;
        if (first < 0)
            first = rank;
        if (++count == PROBE_ABSENT)
            break;
    }
    if (absent != NULL)
        boot_rank_list(absent, boot->size, names, sizeof names);
    free(absent);
    return err_set_peer(err, first, NULL,
                        "start-up exchange %u was given up after %g s (PMIx: "
                        "%s): %s%s did not come",
                        client->round, boot->timeout, PMIx_Error_string(why),
                        count == 0 ? "some rank" : names,
                        count == PROBE_ABSENT ? " and perhaps more" : "");
}

static err_code_t pmix_exchange(boot_t *boot, const void *mine, size_t bytes,
                                void *all, err_t *err)
{
    client_t *client = boot->state;
    pmix_status_t status;
    char key[32];
    err_code_t code;

    if (client->failed)
        return err_set(err, ERR_PEER,
                       "start-up exchange after one that failed");
    snprintf(key, sizeof key, "cddp.%u", client->round);
    status = publish(key, mine, bytes);
    if (status != PMIX_SUCCESS)
        return pmix_error(err, status, "publishing start-up data");
    status = fence(client, boot->timeout);
    if (status == PMIX_SUCCESS)
        code = collect(client, boot, key, bytes, all, err);
    else
        code = name_absent(client, boot, key, status, err);
    if (code == ERR_OK)
        memcpy((char *)all + (size_t)boot->rank * bytes, mine, bytes);
    client->failed = code != ERR_OK;
    client->round++;
    return code;
}

/* ---- close --------------------------------------------------------------- */

static void client_free(client_t *client)
{
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* Leave together: a rank that finalizes and exits while another is still in a
 * collective gets the step killed. After a failure nobody may fence again. */
static void pmix_close(boot_t *boot)
{
    client_t *client = boot->state;
    pmix_status_t status;

    if (!client->failed && boot->size > 1) {
        status = fence(client, boot->timeout);
        if (status != PMIX_SUCCESS)
            log_warn("boot", "not all ranks came to close PMIx: %s",
                     PMIx_Error_string(status));
    }
    /* Ends PMIx's thread, so no callback can come after it. */
    status = PMIx_Finalize(NULL, 0);
    if (status != PMIX_SUCCESS)
        log_warn("boot", "PMIx_Finalize: %s", PMIx_Error_string(status));
    client_free(client);
}

static const boot_backend_t pmix_backend = {
    .name = "pmix",
    .exchange = pmix_exchange,
    .close = pmix_close,
};

err_code_t boot_pmix_open(const boot_config_t *config, boot_t **out, err_t *err)
{
    client_t *client = calloc(1, sizeof *client);
    boot_t *boot;
    err_code_t code;

    if (client == NULL)
        return err_set(err, ERR_MEMORY, "out of memory at start-up");
    pthread_mutex_init(&client->lock, NULL);
    thread_cond_init(&client->changed);
    code = boot_new(&pmix_backend, config, &boot, err);
    if (code != ERR_OK)
        goto no_boot;
    boot->state = client;
    code = client_open(client, boot, err);
    if (code != ERR_OK)
        goto no_client;
    *out = boot;
    return ERR_OK;

no_client:
    free(boot);
no_boot:
    client_free(client);
    return code;
}

#else

err_code_t boot_pmix_open(const boot_config_t *config, boot_t **out, err_t *err)
{
    (void)config;
    (void)out;
    return err_set(err, ERR_UNAVAILABLE,
                   "cddp was built without PMIx: configure it with PMIx "
                   "(Debian: libpmix-dev, Spack: pmix) to run under srun");
}

#endif
