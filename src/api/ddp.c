/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/ddp.h"

#include <string.h>

#include "api/api.h"
#include "api/hook.h"
#include "base/hash.h"
#include "base/mem.h"
#include "comm/comm_vote.h"
#include "conf/conf.h"
#include "ddp/ddp.h"

struct cddp_ddp {
    ddp_t *inner;
    cddp_group_t *group;
    /* On a GPU: the stream after whose work a step begins. The program's own
     * streams have finished by then. */
    dev_stream_t *stream;
    bool begun; /* a step was begun, and not waited for */
    api_hooks_t hooks;
};

static ddp_t *inner_of(cddp_ddp_t *ddp)
{
    return ddp->inner;
}

/* Read the options of the run file's `ddp` section. Free [out] with opt_free,
 * and after it [tree], to which it refers. */
static err_code_t options_read(const char *text, tree_t **tree,
                               ddp_config_t *out, err_t *err)
{
    err_code_t rc = ERR_OK;

    *out = (ddp_config_t){0};
    if (text != NULL)
        rc = conf_parse("ddp", text, tree, err);
    if (rc == ERR_OK)
        rc = opt_fill(ddp_options, *tree, "", out, err);
    if (rc == ERR_OK && out->local_sgd.period > 0) {
        opt_free(ddp_options, out);
        rc = err_set(err, ERR_CONFIG,
                     "local_sgd is for a run of cddp-train; a loop of one's "
                     "own averages with cddp_allreduce");
    }
    return rc;
}

/* Check the views and convert them to ddp's type; freed with mem_free. */
static err_code_t views_make(const cddp_ddp_config_t *config, ddp_view_t **out,
                             err_t *err)
{
    ddp_view_t *views = NULL;
    size_t end = 0;
    err_code_t rc;

    if (config->view_count < 1)
        return err_set(err, ERR_CONFIG, "there is no view to reduce");
    rc = mem_new(ddp_view_t, (size_t)config->view_count, "views", &views, err);
    for (int i = 0; i < config->view_count && rc == ERR_OK; i++) {
        const cddp_view_t *view = &config->views[i];
        int64_t rows = config->rows != NULL ? config->rows[i] : 0;

        if (view->offset < end || view->count > config->elems ||
            view->offset > config->elems - view->count)
            rc = err_set(err, ERR_CONFIG,
                         "view %d (%s) has elements %zu to %zu, but the one "
                         "before it ends at %zu and the arena at %zu",
                         i, view->name, view->offset,
                         view->offset + view->count, end, config->elems);
        else if (rows < 0 || (rows > 0 && view->count % (size_t)rows != 0))
            rc = err_set(err, ERR_CONFIG,
                         "view %d (%s) of %zu elements cannot have %lld rows",
                         i, view->name, view->count, (long long)rows);
        end = view->offset + view->count;
        views[i] = (ddp_view_t){.name = view->name,
                                .offset = view->offset,
                                .count = view->count,
                                .ndim = rows > 0 ? 2 : 1,
                                .rows = (size_t)rows};
    }
    if (rc == ERR_OK)
        *out = views;
    else
        mem_free(views);
    return rc;
}

/* What a rank needs to open its reducer. */
typedef struct parts {
    ddp_config_t options;
    bool read; /* [options] were read */
    tree_t *tree;
    ddp_view_t *views;
} parts_t;

/* Read and check what the program gave. On failure *out may be NULL. Local. */
static err_code_t parts_make(const cddp_group_t *group,
                             const cddp_ddp_config_t *config, parts_t *parts,
                             cddp_ddp_t **out, err_t *err)
{
    err_code_t rc = mem_new(cddp_ddp_t, 1, "reducer", out, err);

    if (rc != ERR_OK)
        return rc;
    rc = options_read(config->options, &parts->tree, &parts->options, err);
    parts->read = rc == ERR_OK;
    if (rc == ERR_OK)
        rc = api_hooks_open(config->hooks, group->dev, &(*out)->hooks, err);
    parts->options.hooks = (*out)->hooks.list;
    return rc == ERR_OK ? views_make(config, &parts->views, err) : rc;
}

static void parts_free(parts_t *parts)
{
    mem_free(parts->views);
    if (parts->read)
        opt_free(ddp_options, &parts->options);
    tree_free(parts->tree);
}

static err_code_t ddp_make(cddp_group_t *group, const cddp_ddp_config_t *config,
                           cddp_ddp_t **out, err_t *err)
{
    parts_t parts = {.read = false};
    err_t mine = ERR_INIT;
    ddp_layout_t layout = {.view_count = config->view_count,
                           .grad_elems = config->elems,
                           .tail_doubles = config->sums};
    err_code_t rc;

    (void)parts_make(group, config, &parts, out, &mine);
    rc = comm_vote(group->inner, &mine, err);
    layout.views = parts.views;
    if (rc == ERR_OK && *out != NULL) {
        (*out)->group = group;
        (*out)->stream = group->stream;
        rc = ddp_open(&parts.options, group->inner, group->data, &layout,
                      &(*out)->inner, err);
    }
    parts_free(&parts);
    return rc;
}

cddp_code_t cddp_ddp_open(cddp_group_t *group, const cddp_ddp_config_t *config,
                          cddp_ddp_t **out, cddp_error_t *error)
{
    cddp_ddp_t *ddp = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = ddp_make(group, config, &ddp, &err);

    if (rc == ERR_OK)
        *out = ddp;
    else
        cddp_ddp_close(ddp);
    return api_answer(rc, &err, error);
}

/* This rank leaves in the middle of a step. In a sub-group, tell the ranks
 * whose GPUs wait for it in a sum of NCCL; cddp_run tells those of its own
 * group, and knows the reason. */
static void leave_tell(const cddp_ddp_t *ddp)
{
    comm_group_t *data = ddp->group->data;
    err_t err = ERR_INIT;

    if (ddp->group == ddp->group->root || !comm_group_enqueues(data))
        return;
    err_set(&err, ERR_PEER, "it closed its reducer in the middle of a step");
    comm_group_fail(data, &err);
}

void cddp_ddp_close(cddp_ddp_t *ddp)
{
    if (ddp == NULL)
        return;
    /* A program that has met an error leaves in the middle of a step. */
    if (ddp->begun) {
        leave_tell(ddp);
        (void)ddp_step_wait(ddp->inner, NULL);
    }
    if (ddp->stream != NULL)
        (void)dev_stream_wait(ddp->stream, NULL);
    ddp_close(ddp->inner);
    api_hooks_close(&ddp->hooks);
    mem_free(ddp);
}

cddp_code_t cddp_ddp_step_set(cddp_ddp_t *ddp, int64_t step,
                              cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_step_set(inner_of(ddp), step, &err), &err, error);
}

float *cddp_ddp_grads(cddp_ddp_t *ddp)
{
    return ddp_grads(inner_of(ddp));
}

double *cddp_ddp_sums(cddp_ddp_t *ddp)
{
    return ddp_tail(inner_of(ddp));
}

cddp_code_t cddp_ddp_broadcast(cddp_ddp_t *ddp, void *data, size_t bytes,
                               cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_broadcast(inner_of(ddp), data, bytes, &err), &err,
                      error);
}

cddp_code_t cddp_ddp_check(cddp_ddp_t *ddp, const void *data, size_t bytes,
                           cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(
        ddp_replica_check(inner_of(ddp), hash_bytes(data, bytes), &err), &err,
        error);
}

void cddp_ddp_begin(cddp_ddp_t *ddp)
{
    ddp->group->root->reduces = ddp->group;
    ddp_step_begin(inner_of(ddp), ddp->stream);
    ddp->begun = true;
}

cddp_code_t cddp_ddp_ready(cddp_ddp_t *ddp, int view, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_grad_ready(inner_of(ddp), view, &err), &err, error);
}

cddp_code_t cddp_ddp_skip(cddp_ddp_t *ddp, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    return api_answer(ddp_step_skip(inner_of(ddp), &err), &err, error);
}

cddp_code_t cddp_ddp_wait(cddp_ddp_t *ddp, cddp_error_t *error)
{
    err_t err = ERR_INIT;

    ddp->begun = false;
    return api_answer(ddp_step_wait(inner_of(ddp), &err), &err, error);
}
