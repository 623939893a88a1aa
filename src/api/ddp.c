/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/ddp.h"

#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "ddp/ddp.h"

static ddp_t *inner_of(cddp_ddp_t *ddp)
{
    return (ddp_t *)ddp;
}

/* Options of the run file's `ddp` section; [out] is freed with opt_free. */
static err_code_t options_read(const char *text, ddp_config_t *out, err_t *err)
{
    tree_t *tree = NULL;
    err_code_t code = ERR_OK;

    *out = (ddp_config_t){0};
    if (text != NULL)
        code = conf_parse("ddp", text, &tree, err);
    if (code == ERR_OK)
        code = opt_fill(ddp_options, tree, "", out, err);
    tree_free(tree);
    return code;
}

/* Views as ddp knows them; freed with mem_free. */
static err_code_t views_make(const cddp_ddp_config_t *config, ddp_view_t **out,
                             err_t *err)
{
    ddp_view_t *views = NULL;
    size_t end = 0;
    err_code_t code;

    if (config->view_count < 1)
        return err_set(err, ERR_CONFIG, "there is no view to reduce");
    code = mem_alloc((size_t)config->view_count * sizeof *views, "views",
                     (void **)&views, err);
    for (int i = 0; i < config->view_count && code == ERR_OK; i++) {
        const cddp_view_t *view = &config->views[i];

        if (view->offset < end || view->count > config->elems ||
            view->offset > config->elems - view->count)
            code = err_set(err, ERR_CONFIG,
                           "view %d (%s) has elements %zu to %zu, but the one "
                           "before it ends at %zu and the arena at %zu",
                           i, view->name, view->offset,
                           view->offset + view->count, end, config->elems);
        end = view->offset + view->count;
        views[i] = (ddp_view_t){.name = view->name,
                                .offset = view->offset,
                                .count = view->count,
                                .ndim = 1};
    }
    if (code == ERR_OK)
        *out = views;
    else
        mem_free(views);
    return code;
}

static err_code_t ddp_make(comm_group_t *group, const cddp_ddp_config_t *config,
                           ddp_t **out, err_t *err)
{
    ddp_config_t options;
    ddp_view_t *views = NULL;
    ddp_layout_t layout = {.view_count = config->view_count,
                           .grad_elems = config->elems,
                           .tail_doubles = config->sums};
    err_code_t code = options_read(config->options, &options, err);

    if (code != ERR_OK)
        return code;
    code = views_make(config, &views, err);
    layout.views = views;
    if (code == ERR_OK)
        code = ddp_open(&options, group, &layout, out, err);
    mem_free(views);
    opt_free(ddp_options, &options);
    return code;
}

cddp_code_t cddp_ddp_open(cddp_group_t *group, const cddp_ddp_config_t *config,
                          cddp_ddp_t **out, cddp_error_t *error)
{
    ddp_t *ddp = NULL;
    err_t err = ERR_INIT;
    err_code_t code = ddp_make(api_group(group), config, &ddp, &err);

    if (code == ERR_OK)
        *out = (cddp_ddp_t *)ddp;
    return api_answer(code, &err, error);
}

void cddp_ddp_close(cddp_ddp_t *ddp)
{
    ddp_close(inner_of(ddp));
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

    return api_answer(ddp_replica_check(inner_of(ddp), data, bytes, &err), &err,
                      error);
}

void cddp_ddp_begin(cddp_ddp_t *ddp)
{
    ddp_step_begin(inner_of(ddp));
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

    return api_answer(ddp_step_wait(inner_of(ddp), &err), &err, error);
}
