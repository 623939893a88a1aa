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

/* Seconds to look for the absent ranks after a fence failed. Who has come
 * answers in milliseconds. */
#define PROBE_TIMEOUT 2.0

typedef struct client client_t;

/* One rank's answer in a gathering. */
typedef struct answer {
    client_t *client;
    bool done;
    bool wanted; /* false: too late, [target] is no longer ours */
    pmix_status_t status;
    size_t found; /* bytes that the rank gave */
    size_t bytes; /* expected */
    char *target;
} answer_t;

/* Get from all ranks at once. Its callbacks come on a thread of PMIx, perhaps
 * after we gave up: then it is kept until PMIx is finalized. */
typedef struct gathering {
    struct gathering *next;
    pmix_info_t limit;  /* PMIx reads it later, too */
    answer_t answers[]; /* by rank; our own is done */
} gathering_t;

struct client {
    pmix_proc_t self;
    unsigned round;
    bool failed; /* an exchange failed: only close is left */
    gathering_t *kept;

    /* For what callbacks write: the fence and the answers. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fence_done;
    pmix_status_t fence_status;
    pmix_info_t fence_info[2]; /* PMIx may read it until then */
};

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
    pmix_info_t *info = client->fence_info;
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

static void got_answer(pmix_status_t status, pmix_value_t *value, void *context)
{
    answer_t *answer = context;
    client_t *client = answer->client;

    pthread_mutex_lock(&client->lock);
    answer->done = true;
    answer->status = status;
    if (status == PMIX_SUCCESS && value->type == PMIX_BYTE_OBJECT)
        answer->found = value->data.bo.size;
    if (status == PMIX_SUCCESS && answer->wanted && answer->bytes > 0 &&
        answer->found == answer->bytes)
        memcpy(answer->target, value->data.bo.bytes, answer->bytes);
    pthread_cond_signal(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* Ask [rank] for [key]; what fails at once is an answer, too. */
static void ask(const client_t *client, int rank, const char *key,
                const pmix_info_t *limit, answer_t *answer)
{
    pmix_status_t status;
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, client->self.nspace, (pmix_rank_t)rank);
    status = PMIx_Get_nb(&peer, key, limit, 1, got_answer, answer);
    if (status != PMIX_SUCCESS)
        got_answer(status, NULL, answer);
}

static bool all_answered(const gathering_t *gathering, int size)
{
    for (int rank = 0; rank < size; rank++)
        if (!gathering->answers[rank].done)
            return false;
    return true;
}

/*
 * Get what all ranks published under [key], at most for [timeout] seconds:
 * PMIX_TIMEOUT alone does not bound a Get from a rank of the same node. The
 * gathering lives until the client is closed; NULL: out of memory.
 */
static gathering_t *gather(client_t *client, const boot_t *boot,
                           const char *key, size_t bytes, char *all,
                           double timeout)
{
    double deadline = clock_now() + timeout;
    int seconds = whole_seconds(timeout);
    gathering_t *gathering =
        calloc(1, sizeof *gathering +
                      (size_t)boot->size * sizeof gathering->answers[0]);

    if (gathering == NULL)
        return NULL;
    gathering->next = client->kept;
    client->kept = gathering;
    PMIX_INFO_LOAD(&gathering->limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
    for (int rank = 0; rank < boot->size; rank++) {
        answer_t *answer = &gathering->answers[rank];

        answer->client = client;
        answer->wanted = true;
        answer->bytes = bytes;
        answer->found = bytes;
        answer->target = all + (size_t)rank * bytes;
        answer->done = rank == boot->rank;
        if (rank != boot->rank) {
            answer->found = 0;
            ask(client, rank, key, &gathering->limit, answer);
        }
    }
    pthread_mutex_lock(&client->lock);
    while (!all_answered(gathering, boot->size))
        if (!thread_cond_wait(&client->changed, &client->lock, deadline))
            break;
    for (int rank = 0; rank < boot->size; rank++)
        gathering->answers[rank].wanted = false;
    pthread_mutex_unlock(&client->lock);
    return gathering;
}

/* Name the ranks that did not answer: [why] nobody could. */
static err_code_t name_absent(const client_t *client, const boot_t *boot,
                              const gathering_t *gathering, const char *why,
                              err_t *err)
{
    bool *absent = calloc((size_t)boot->size, sizeof *absent);
    int count = 0, first = -1;
    char names[256] = "";

    for (int rank = boot->size - 1; absent != NULL && rank >= 0; rank--) {
        const answer_t *answer = &gathering->answers[rank];

        absent[rank] = !answer->done || answer->status != PMIX_SUCCESS;
        if (absent[rank])
            first = rank;
    }
    if (absent != NULL)
        count = boot_rank_list(absent, boot->size, names, sizeof names);
    free(absent);
    return err_set_peer(err, first, NULL,
                        "start-up exchange %u was given up after %g s (PMIx: "
                        "%s): %s did not come",
                        client->round, boot->timeout, why,
                        count == 0 ? "some rank" : names);
}

/* Did every rank give [bytes] bytes? */
static err_code_t judge(const client_t *client, const boot_t *boot,
                        const gathering_t *gathering, size_t bytes, err_t *err)
{
    for (int rank = 0; rank < boot->size; rank++) {
        const answer_t *answer = &gathering->answers[rank];

        if (!answer->done || answer->status != PMIX_SUCCESS)
            return name_absent(client, boot, gathering,
                               PMIx_Error_string(answer->done
                                                     ? answer->status
                                                     : PMIX_ERR_TIMEOUT),
                               err);
        if (answer->found != bytes)
            return err_set(err, ERR_CONFIG,
                           "start-up exchange %u: rank %d gives %zu bytes, "
                           "rank %d %zu: do all ranks run the same build and "
                           "run file?",
                           client->round, rank, answer->found, boot->rank,
                           bytes);
    }
    return ERR_OK;
}

/* After [fenced], the fence's status: fetch all data, or name who is absent
 * (the fence does not tell, but asking each rank does). */
static err_code_t collect(client_t *client, const boot_t *boot, const char *key,
                          size_t bytes, char *all, pmix_status_t fenced,
                          err_t *err)
{
    bool probe = fenced != PMIX_SUCCESS;
    gathering_t *gathering = gather(client, boot, key, bytes, all,
                                    probe ? PROBE_TIMEOUT : boot->timeout);
    err_code_t code;

    if (gathering == NULL)
        return err_set(err, ERR_MEMORY, "out of memory at start-up");
    if (probe)
        return name_absent(client, boot, gathering, PMIx_Error_string(fenced),
                           err);
    code = judge(client, boot, gathering, bytes, err);
    /* Nothing is under way, so it need not be kept. */
    if (code == ERR_OK) {
        client->kept = gathering->next;
        free(gathering);
    }
    return code;
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
    code = collect(client, boot, key, bytes, all, status, err);
    if (code == ERR_OK && bytes > 0)
        memcpy((char *)all + (size_t)boot->rank * bytes, mine, bytes);
    client->failed = code != ERR_OK;
    client->round++;
    return code;
}

/* ---- close --------------------------------------------------------------- */

static void client_free(client_t *client)
{
    while (client->kept != NULL) {
        gathering_t *next = client->kept->next;

        free(client->kept);
        client->kept = next;
    }
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
