/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/group.h"

#include "api/api.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/numeric.h"
#include "boot/boot.h"
#include "comm/comm_data.h"
#include "comm/comm_split.h"

/* Seconds that ranks may take to find each other; Slurm itself can need a while
 * to start thousands of tasks. */
#define BOOT_TIMEOUT 120.0
#define GROUP_TIMEOUT 60.0
#define LOCAL_MAX 4096

/* ---- running ------------------------------------------------------------- */

/* Input and result of one rank. */
typedef struct api_rank {
    const cddp_run_config_t *config;
    cddp_rank_t body;
    void *context;
    cddp_code_t code;
    cddp_error_t error;
} api_rank_t;

/* Open the group, then close [boot]: as long as PMIx is open, the death of a
 * rank would end the whole Slurm step. */
static err_code_t group_open(const cddp_run_config_t *config, boot_t *boot,
                             comm_group_t **out, err_t *err)
{
    comm_oob_t oob = {.context = boot,
                      .rank = boot_rank(boot),
                      .size = boot_size(boot),
                      .exchange = boot_exchange_call};
    const comm_config_t comm = {
        .backend = comm_control_backend(config->backend, oob.size,
                                        config->local > 0 ? "threads" : "ucx"),
        .timeout = config->timeout > 0 ? config->timeout : GROUP_TIMEOUT};
    locale_t before;
    err_code_t rc;

    log_rank_set(oob.rank);
    before = numeric_begin(); /* UCX and PMIx parse numbers, too */
    rc = comm_group_open(&comm, &oob, out, err);
    boot_close(boot);
    numeric_end(before);
    return rc;
}

/* This rank ends with an error: tell the ranks whose GPUs may wait for this one
 * in a sum of NCCL, which leaving the group does not end. A fault of another
 * rank, which this one may know from a sub-group, keeps its culprit. */
static void error_tell(const cddp_group_t *group, const api_rank_t *rank)
{
    err_t err = ERR_INIT;

    if (group->data == NULL || !comm_group_enqueues(group->data))
        return;
    if (api_question(rank->code, &rank->error, &err) == ERR_PEER)
        comm_group_tell(group->data, &err);
    else
        comm_group_fail(group->data, &err);
}

static void rank_run(api_rank_t *rank, boot_t *boot)
{
    cddp_group_t group = {.root = &group, .reduces = &group};
    err_t err = ERR_INIT;
    err_code_t rc = group_open(rank->config, boot, &group.inner, &err);
    const locale_t before = numeric_begin();

    if (rc == ERR_OK)
        rc = api_device_open(&group, rank->config, &err);
    numeric_end(before);
    if (rc == ERR_OK)
        rank->code = rank->body(&group, rank->context, &rank->error);
    else
        rank->code = api_answer(rc, &err, &rank->error);
    if (rank->code != CDDP_OK && rank->error.text[0] == '\0')
        cddp_error_set(&rank->error, rank->code, "rank %d: %s",
                       group.inner == NULL ? 0 : comm_group_rank(group.inner),
                       cddp_code_text(rank->code));
    if (rank->code != CDDP_OK)
        error_tell(&group, rank);
    api_data_close(&group);
    comm_group_close(group.inner);
    api_device_close(&group);
}

static void local_main(boot_t *boot, int rank, void *ranks)
{
    rank_run((api_rank_t *)ranks + rank, boot);
}

/* The rank whose error is returned: a rank that failed by itself is preferred
 * to ranks that report the failure of a peer (CDDP_PEER). */
static const api_rank_t *rank_choose(const api_rank_t *ranks, int count)
{
    const api_rank_t *chosen = &ranks[0];

    for (int r = 1; r < count; r++)
        if (ranks[r].code != CDDP_OK &&
            (chosen->code == CDDP_OK ||
             (chosen->code == CDDP_PEER && ranks[r].code != CDDP_PEER)))
            chosen = &ranks[r];
    return chosen;
}

static cddp_code_t tell(const api_rank_t *rank, cddp_error_t *error)
{
    if (rank->code != CDDP_OK && error != NULL)
        *error = rank->error;
    return rank->code;
}

static cddp_code_t run_local(const api_rank_t *model, cddp_error_t *error)
{
    const boot_config_t boot = {.timeout = BOOT_TIMEOUT};
    const int count = model->config->local;
    api_rank_t *ranks = NULL;
    cddp_code_t answer;
    err_t err = ERR_INIT;
    err_code_t rc = mem_new(api_rank_t, (size_t)count, "ranks", &ranks, &err);

    if (rc != ERR_OK)
        return api_answer(rc, &err, error);
    for (int r = 0; r < count; r++)
        ranks[r] = *model;
    rc = boot_threads_run(count, &boot, local_main, ranks, &err);
    answer = rc == ERR_OK ? tell(rank_choose(ranks, count), error)
                          : api_answer(rc, &err, error);
    mem_free(ranks);
    return answer;
}

static cddp_code_t run_step(api_rank_t *rank, cddp_error_t *error)
{
    const boot_config_t config = {.timeout = BOOT_TIMEOUT};
    boot_t *boot = NULL;
    err_t err = ERR_INIT;
    const locale_t before = numeric_begin();
    err_code_t rc = boot_open(&config, &boot, &err);

    numeric_end(before);
    if (rc != ERR_OK)
        return api_answer(rc, &err, error);
    rank_run(rank, boot);
    return tell(rank, error);
}

cddp_code_t cddp_run(const cddp_run_config_t *config, cddp_rank_t rank,
                     void *context, cddp_error_t *error)
{
    const cddp_run_config_t defaults = {0};
    api_rank_t model = {.config = config != NULL ? config : &defaults,
                        .body = rank,
                        .context = context,
                        .error = {.culprit = -1}};

    if (model.config->local < 0 || model.config->local > LOCAL_MAX)
        return cddp_error_set(error, CDDP_CONFIG,
                              "local is %d, but 0 to %d ranks are possible",
                              model.config->local, LOCAL_MAX);
    return model.config->local > 0 ? run_local(&model, error)
                                   : run_step(&model, error);
}

/* ---- the group ----------------------------------------------------------- */

int cddp_group_ranks(const cddp_group_t *group, cddp_split_t how, int *ranks)
{
    return comm_split_ranks(
        api_group(group),
        how == CDDP_SPLIT_NODE ? COMM_SPLIT_NODE : COMM_SPLIT_ACROSS, ranks);
}

/* Open the sub-group of [parent] with these [ranks] in [group]. */
static err_code_t sub_open(cddp_group_t *parent, const int *ranks, int count,
                           cddp_group_t *group, err_t *err)
{
    err_code_t rc =
        comm_split_open(parent->inner, ranks, count, &group->inner, err);

    group->dev = parent->dev;
    group->index = parent->index;
    group->stream = parent->stream;
    group->root = parent->root;
    return rc == ERR_OK && count > 0 ? api_data_split(group, parent, err) : rc;
}

cddp_code_t cddp_group_split(cddp_group_t *group, const int *ranks, int count,
                             cddp_group_t **out, cddp_error_t *error)
{
    cddp_group_t *made = NULL;
    err_t err = ERR_INIT;
    const locale_t before = numeric_begin();
    err_code_t rc = mem_new(cddp_group_t, 1, "a sub-group", &made, &err);

    if (rc == ERR_OK)
        rc = sub_open(group, ranks, count, made, &err);
    numeric_end(before);
    if (rc != ERR_OK || count == 0) {
        cddp_group_close(made);
        made = NULL;
    }
    if (rc == ERR_OK)
        *out = made;
    return api_answer(rc, &err, error);
}

/* A sub-group uses the device of its parent. */
void cddp_group_close(cddp_group_t *group)
{
    if (group == NULL)
        return;
    if (group->root != NULL && group->root->reduces == group)
        group->root->reduces = group->root;
    api_data_close(group);
    comm_group_close(group->inner);
    mem_free(group);
}

int cddp_group_rank(const cddp_group_t *group)
{
    return comm_group_rank(api_group(group));
}

int cddp_group_size(const cddp_group_t *group)
{
    return comm_group_size(api_group(group));
}

const char *cddp_group_backend(const cddp_group_t *group)
{
    return comm_group_backend(group->data);
}

const char *cddp_group_host(const cddp_group_t *group, int rank)
{
    return comm_group_host(api_group(group), rank);
}

void cddp_group_report(cddp_group_t *group, int64_t step, const char *phase)
{
    comm_group_report(group->inner, step, phase);
    if (group->data != group->inner)
        comm_group_report(group->data, step, phase);
}

cddp_code_t cddp_group_check(cddp_group_t *group, cddp_error_t *error)
{
    err_t err = ERR_INIT;
    err_code_t rc = comm_group_check(group->inner, &err);

    if (rc == ERR_OK)
        rc = comm_group_check(group->data, &err);
    return api_answer(rc, &err, error);
}
