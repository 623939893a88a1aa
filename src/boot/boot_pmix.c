/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The backend for ranks that srun (or another launcher with a PMIx server)
 * started.
 *
 * An exchange is a put, a fence that collects data, and a get from every rank
 * (boot_wire.h). Each exchange has its own key, since a key can be published
 * only once. While PMIx is open, the death of a rank ends the whole step. So
 * PMIx is closed before training, unless MPI needs it.
 */
#include "boot/boot_backend.h"

#include <math.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "boot/boot_wire.h"

/* Seconds to wait for answers when looking for the missing ranks after a failed
 * fence. Ranks that did arrive answer within milliseconds. */
#define PROBE_TIMEOUT 2.0

/* Least number of seconds for PMIx_Init. It takes milliseconds, but it loads
 * libraries, and the machine may be busy. */
#define OPEN_TIMEOUT 60.0

typedef struct client {
    boot_wire_t *wire;
    unsigned round;
    double began; /* clock instant at which this exchange began */
    bool failed;  /* an exchange failed, so only close is allowed */
} client_t;

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

    PMIX_LOAD_PROCID(&job, client->wire->self.nspace, PMIX_RANK_WILDCARD);
    status = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return pmix_error(err, status, "asking for the number of ranks");
    *out = (int)value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return ERR_OK;
}

/* PMIx may report size 1 if it found no server, so compare with Slurm. */
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
    err_code_t rc;

    if (getenv("PMIX_NAMESPACE") == NULL)
        return err_set(err, ERR_CONFIG,
                       "no PMIx server started this process: start it as "
                       "`srun --mpi=pmix cddp-train ...` (`srun --mpi=list` "
                       "shows what this site has)");
    rc = boot_wire_open(client->wire, fmax(boot->timeout, OPEN_TIMEOUT), err);
    if (rc != ERR_OK)
        return rc;
    rc = job_size(client, &boot->size, err);
    if (rc == ERR_OK)
        rc = job_check(boot->size, err);
    if (rc != ERR_OK) {
        PMIx_Finalize(NULL, 0);
        return rc;
    }
    boot->rank = (int)client->wire->self.rank;
    client->wire->rank = boot->rank;
    client->wire->size = boot->size;
    return ERR_OK;
}

/* ---- exchange ------------------------------------------------------------ */

/* An exchange was given up because of [status]. PMIx may do this before
 * boot->timeout. */
typedef struct lapse {
    pmix_status_t status;
    double seconds; /* since the exchange began */
} lapse_t;

static lapse_t lapse_of(const client_t *client, pmix_status_t status)
{
    return (lapse_t){status, clock_now() - client->began};
}

/* Fill [err] with the ranks that did not answer. */
static err_code_t name_absent(const client_t *client, const boot_t *boot,
                              const boot_gather_t *gathering, lapse_t lapse,
                              err_t *err)
{
    bool *absent = NULL;
    int count = 0, first = -1;
    char names[256] = "";

    /* Without memory the sentence names no rank. */
    (void)mem_new(bool, (size_t)boot->size, "start-up", &absent, NULL);
    for (int rank = boot->size - 1; absent != NULL && rank >= 0; rank--) {
        absent[rank] = gathering->answers[rank].verdict != PMIX_SUCCESS;
        if (absent[rank])
            first = rank;
    }
    if (absent != NULL)
        count = boot_rank_list(absent, boot->size, names, sizeof names);
    mem_free(absent);
    return err_set_peer(err, first, NULL,
                        "start-up exchange %u was given up after %.0f s "
                        "(PMIx: %s): %s did not come",
                        client->round, lapse.seconds,
                        PMIx_Error_string(lapse.status),
                        count == 0 ? "some rank" : names);
}

/* Check that every rank gave [bytes] bytes. */
static err_code_t judge(const client_t *client, const boot_t *boot,
                        const boot_gather_t *gathering, size_t bytes,
                        err_t *err)
{
    for (int rank = 0; rank < boot->size; rank++) {
        const boot_answer_t *answer = &gathering->answers[rank];

        if (answer->verdict != PMIX_SUCCESS)
            return name_absent(client, boot, gathering,
                               lapse_of(client, answer->verdict), err);
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

/* One exchange: each rank publishes [bytes] bytes under [key]; [all] receives
 * those of all ranks. */
typedef struct exchange {
    const char *key;
    size_t bytes;
    char *all;
} exchange_t;

/* After a fence that ended with status [fenced]: get the data of all ranks or,
 * if the fence failed, name the missing ranks. The fence does not tell which
 * ranks are missing, so each rank is asked. */
static err_code_t collect(client_t *client, const boot_t *boot,
                          const exchange_t *exchange, pmix_status_t fenced,
                          err_t *err)
{
    const bool probe = fenced != PMIX_SUCCESS;
    const lapse_t lapse = lapse_of(client, fenced);
    boot_gather_t *gathering =
        boot_wire_gather(client->wire, exchange->key, exchange->bytes,
                         exchange->all, probe ? PROBE_TIMEOUT : boot->timeout);
    err_code_t rc;

    if (gathering == NULL)
        return err_set(err, ERR_MEMORY, "out of memory at start-up");
    if (probe)
        return name_absent(client, boot, gathering, lapse, err);
    rc = judge(client, boot, gathering, exchange->bytes, err);
    /* All answers have arrived, so no callback will use [gathering] any more.
     */
    if (rc == ERR_OK)
        boot_wire_drop(client->wire, gathering);
    return rc;
}

static err_code_t pmix_exchange(boot_t *boot, const void *mine, size_t bytes,
                                void *all, err_t *err)
{
    client_t *client = boot->state;
    pmix_status_t status;
    char key[32];
    err_code_t rc;

    if (client->failed)
        return err_set(err, ERR_PEER,
                       "start-up exchange after one that failed");
    snprintf(key, sizeof key, "cddp.%u", client->round);
    client->began = clock_now();
    status = boot_wire_put(key, mine, bytes);
    if (status != PMIX_SUCCESS)
        return pmix_error(err, status, "publishing start-up data");
    status = boot_wire_fence(client->wire, boot->timeout);
    rc = collect(client, boot, &(exchange_t){key, bytes, all}, status, err);
    if (rc == ERR_OK && bytes > 0)
        memcpy((char *)all + (size_t)boot->rank * bytes, mine, bytes);
    client->failed = rc != ERR_OK;
    client->round++;
    return rc;
}

/* ---- close --------------------------------------------------------------- */

/* NULL allowed. */
static void client_free(client_t *client)
{
    if (client != NULL)
        boot_wire_free(client->wire);
    mem_free(client);
}

/* All ranks leave together: if a rank finalizes and exits while another is
 * still in a collective, the step ends. After a failure no fence is allowed. */
static void pmix_close(boot_t *boot)
{
    client_t *client = boot->state;
    pmix_status_t status;

    if (!client->failed && boot->size > 1) {
        status = boot_wire_fence(client->wire, boot->timeout);
        if (status != PMIX_SUCCESS)
            log_warn("boot", "not all ranks came to close PMIx: %s",
                     PMIx_Error_string(status));
    }
    /* PMIx_Finalize ends PMIx's thread, so no callback runs afterwards. */
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
    client_t *client = NULL;
    boot_t *boot = NULL;
    err_code_t rc = mem_new(client_t, 1, "start-up", &client, err);

    if (rc == ERR_OK)
        rc = boot_wire_new(&client->wire, err);
    if (rc == ERR_OK)
        rc = boot_new(&pmix_backend, config, &boot, err);
    if (rc == ERR_OK)
        rc = client_open(client, boot, err);
    if (rc == ERR_OK) {
        boot->state = client;
        *out = boot;
    } else {
        mem_free(boot);
        client_free(client);
    }
    return rc;
}
