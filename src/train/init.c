/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/init.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "train/init_source.h"

#define SHAPE_TEXT 160
#define NAMES_SAID 8 /* of tensors with random values */

bool train_init_given(const train_config_t *config)
{
    return config->checkpoint.init[0] != '\0';
}

/* Does init_skip name the tensor? */
static bool skipped(const train_config_t *config, const char *name)
{
    const opt_texts_t *skips = &config->checkpoint.init_skip;

    for (int i = 0; i < skips->count; i++)
        if (fnmatch(skips->items[i], name, 0) == 0)
            return true;
    return false;
}

/* Parameters, then buffers. */
static int tensors_of(const nn_graph_t *graph)
{
    return nn_graph_params(graph) + nn_graph_buffers(graph);
}

static const nn_param_t *tensor_of(const nn_graph_t *graph, int index)
{
    const int params = nn_graph_params(graph);

    return index < params ? nn_graph_param(graph, index)
                          : nn_graph_buffer(graph, index - params);
}

/* ---- checking ------------------------------------------------------------ */

static err_code_t shape_check(const train_source_t *source,
                              const nn_param_t *param,
                              const train_source_tensor_t *tensor, err_t *err)
{
    char expected[SHAPE_TEXT], found[SHAPE_TEXT];

    if (strcmp(tensor->type, "F32") != 0)
        return err_set(err, ERR_DATA,
                       "checkpoint.init: tensor %s of %s has the type %s: "
                       "expected F32; convert it to float32 where the file "
                       "was written",
                       tensor->name, source->path, tensor->type);
    if (tensor->ndim == param->ndim &&
        memcmp(tensor->dims, param->dims,
               (size_t)param->ndim * sizeof *param->dims) == 0)
        return ERR_OK;
    hdf5io_shape_format(param->ndim, param->dims, expected, sizeof expected);
    hdf5io_shape_format(tensor->ndim, tensor->dims, found, sizeof found);
    return err_set(err, ERR_CONFIG,
                   "checkpoint.init: tensor %s of %s has the shape %s: "
                   "expected %s as in the model; change the model, or let the "
                   "tensor have random values by checkpoint.init_skip",
                   tensor->name, source->path, found, expected);
}

/* Each tensor of the model that is not skipped must be in the source. */
static err_code_t model_check(const train_config_t *config,
                              const nn_graph_t *graph,
                              const train_source_t *source, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < tensors_of(graph) && rc == ERR_OK; i++) {
        const nn_param_t *param = tensor_of(graph, i);
        const train_source_tensor_t *tensor =
            train_source_find(source, param->name);

        if (skipped(config, param->name))
            continue;
        rc = tensor != NULL
                 ? shape_check(source, param, tensor, err)
                 : err_set(err, ERR_CONFIG,
                           "checkpoint.init: %s has no tensor %s, which the "
                           "model has; give it our names by cddp-ckpt import, "
                           "or let the tensor have random values by "
                           "checkpoint.init_skip",
                           source->path, param->name);
    }
    return rc;
}

static bool model_has(const nn_graph_t *graph, const char *name)
{
    for (int i = 0; i < tensors_of(graph); i++)
        if (strcmp(tensor_of(graph, i)->name, name) == 0)
            return true;
    return false;
}

/* Each tensor of the source that is not skipped must be in the model. */
static err_code_t source_check(const train_config_t *config,
                               const nn_graph_t *graph,
                               const train_source_t *source, err_t *err)
{
    for (int i = 0; i < source->count; i++) {
        const char *name = source->tensors[i].name;

        if (!skipped(config, name) && !model_has(graph, name))
            return err_set(err, ERR_CONFIG,
                           "checkpoint.init: %s has the tensor %s, which the "
                           "model has not; change the model, or name it in "
                           "checkpoint.init_skip",
                           source->path, name);
    }
    return ERR_OK;
}

/* Does the pattern name a tensor of the model or of the source? */
static bool names_any(const char *pattern, const nn_graph_t *graph,
                      const train_source_t *source)
{
    for (int i = 0; i < tensors_of(graph); i++)
        if (fnmatch(pattern, tensor_of(graph, i)->name, 0) == 0)
            return true;
    for (int i = 0; i < source->count; i++)
        if (fnmatch(pattern, source->tensors[i].name, 0) == 0)
            return true;
    return false;
}

/* A pattern of init_skip that names no tensor is a mistake: the tensors that it
 * should name would be read. */
static err_code_t skips_check(const train_config_t *config,
                              const nn_graph_t *graph,
                              const train_source_t *source, err_t *err)
{
    const opt_texts_t *skips = &config->checkpoint.init_skip;

    for (int i = 0; i < skips->count; i++)
        if (!names_any(skips->items[i], graph, source))
            return err_set(err, ERR_CONFIG,
                           "checkpoint.init_skip: '%s' names no tensor of the "
                           "model, and none of %s; correct it, or leave it out",
                           skips->items[i], source->path);
    return ERR_OK;
}

/* Open what checkpoint.init names, and check it. The caller closes *out in any
 * case. */
static err_code_t source_open(const train_config_t *config,
                              const nn_graph_t *graph, train_source_t *out,
                              err_t *err)
{
    err_code_t rc = train_source_open(config->checkpoint.init, out, err);

    if (rc != ERR_OK) {
        err_prefix(err, "checkpoint.init");
        return rc;
    }
    rc = skips_check(config, graph, out, err);
    if (rc == ERR_OK)
        rc = model_check(config, graph, out, err);
    return rc == ERR_OK ? source_check(config, graph, out, err) : rc;
}

err_code_t train_init_check(const train_config_t *config,
                            const nn_graph_t *graph, err_t *err)
{
    train_source_t source;
    err_code_t rc = source_open(config, graph, &source, err);

    train_source_close(&source);
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

static err_code_t tensor_read(const train_source_t *source,
                              const nn_param_t *param, float *out, err_t *err)
{
    err_code_t rc = train_source_read(
        source, train_source_find(source, param->name), out, err);

    for (size_t i = 0; i < param->count && rc == ERR_OK; i++)
        if (!isfinite(out[i]))
            rc = err_set(err, ERR_DATA,
                         "checkpoint.init: element %zu of tensor %s of %s is "
                         "%g: expected a finite number",
                         i, param->name, source->path, (double)out[i]);
    return rc;
}

/* Say what was read, and which tensors of the model have random values. */
static void read_say(const train_config_t *config, const nn_graph_t *graph,
                     const train_source_t *source, int read)
{
    str_buf_t names = {0};
    int random = 0;

    for (int i = 0; i < tensors_of(graph); i++) {
        const char *name = tensor_of(graph, i)->name;

        if (skipped(config, name) && random++ < NAMES_SAID)
            str_buf_add(&names, "%s%s", random == 1 ? ": " : ", ", name);
    }
    if (random > NAMES_SAID)
        str_buf_add(&names, " and %d others", random - NAMES_SAID);
    log_info("train",
             "initial weights: %d tensors of %s; %d have random values%s", read,
             source->path, random, random == 0 ? "" : names.text);
    str_buf_free(&names);
}

err_code_t train_init_read(const train_config_t *config,
                           const nn_graph_t *graph, float *params,
                           float *buffers, err_t *err)
{
    train_source_t source;
    int read = 0;
    err_code_t rc = source_open(config, graph, &source, err);

    if (rc == ERR_OK && train_source_verify(&source, err) != ERR_OK)
        rc = err_prefix(err, "checkpoint.init");
    for (int i = 0; rc == ERR_OK && i < tensors_of(graph); i++) {
        const nn_param_t *param = tensor_of(graph, i);
        float *arena = i < nn_graph_params(graph) ? params : buffers;

        if (skipped(config, param->name))
            continue;
        rc = tensor_read(&source, param, arena + param->offset, err);
        read++;
    }
    if (rc == ERR_OK)
        read_say(config, graph, &source, read);
    train_source_close(&source);
    return rc;
}
