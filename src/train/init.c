/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/init.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/safetensors.h"

#define SHAPE_TEXT 160

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

static err_code_t shape_check(const hdf5io_safe_t *file,
                              const nn_param_t *param, int at, err_t *err)
{
    const hdf5io_safe_tensor_t *tensor = &file->tensors[at];
    char expected[SHAPE_TEXT], found[SHAPE_TEXT];

    if (tensor->type != HDF5IO_SAFE_F32)
        return err_set(err, ERR_DATA,
                       "checkpoint.init: tensor %s of %s has the type %s: "
                       "expected F32; convert it to float32 where the file "
                       "was written",
                       tensor->name, file->path,
                       hdf5io_safe_type_name(tensor->type));
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
                   tensor->name, file->path, found, expected);
}

/* Each tensor of the model that is not skipped must be in the file. */
static err_code_t model_check(const train_config_t *config,
                              const nn_graph_t *graph,
                              const hdf5io_safe_t *file, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (int i = 0; i < tensors_of(graph) && rc == ERR_OK; i++) {
        const nn_param_t *param = tensor_of(graph, i);
        const int at = hdf5io_safe_find(file, param->name);

        if (skipped(config, param->name))
            continue;
        rc = at >= 0 ? shape_check(file, param, at, err)
                     : err_set(err, ERR_CONFIG,
                               "checkpoint.init: %s has no tensor %s, which "
                               "the model has; give it our names by cddp-ckpt "
                               "import, or let the tensor have random values "
                               "by checkpoint.init_skip",
                               file->path, param->name);
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

/* Each tensor of the file that is not skipped must be in the model. */
static err_code_t file_check(const train_config_t *config,
                             const nn_graph_t *graph, const hdf5io_safe_t *file,
                             err_t *err)
{
    for (int i = 0; i < file->count; i++) {
        const char *name = file->tensors[i].name;

        if (!skipped(config, name) && !model_has(graph, name))
            return err_set(err, ERR_CONFIG,
                           "checkpoint.init: %s has the tensor %s, which the "
                           "model has not; change the model, or name it in "
                           "checkpoint.init_skip",
                           file->path, name);
    }
    return ERR_OK;
}

/* Open the file and check it. */
static err_code_t file_open(const train_config_t *config,
                            const nn_graph_t *graph, hdf5io_safe_t *out,
                            err_t *err)
{
    err_code_t rc = hdf5io_safe_open(config->checkpoint.init, out, err);

    if (rc != ERR_OK) {
        err_prefix(err, "checkpoint.init");
        return rc;
    }
    rc = model_check(config, graph, out, err);
    if (rc == ERR_OK)
        rc = file_check(config, graph, out, err);
    if (rc != ERR_OK)
        hdf5io_safe_close(out);
    return rc;
}

err_code_t train_init_check(const train_config_t *config,
                            const nn_graph_t *graph, err_t *err)
{
    hdf5io_safe_t file = {0};
    err_code_t rc = file_open(config, graph, &file, err);

    hdf5io_safe_close(&file);
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

static err_code_t tensor_read(const hdf5io_safe_t *file,
                              const nn_param_t *param, float *out, err_t *err)
{
    const int at = hdf5io_safe_find(file, param->name);
    err_code_t rc = hdf5io_safe_read(file, at, out, err);

    for (size_t i = 0; i < param->count && rc == ERR_OK; i++)
        if (!isfinite(out[i]))
            rc = err_set(err, ERR_DATA,
                         "checkpoint.init: element %zu of tensor %s of %s is "
                         "%g: expected a finite number",
                         i, param->name, file->path, (double)out[i]);
    return rc;
}

err_code_t train_init_read(const train_config_t *config,
                           const nn_graph_t *graph, float *params,
                           float *buffers, err_t *err)
{
    hdf5io_safe_t file = {0};
    int read = 0;
    err_code_t rc = file_open(config, graph, &file, err);

    for (int i = 0; rc == ERR_OK && i < tensors_of(graph); i++) {
        const nn_param_t *param = tensor_of(graph, i);
        float *arena = i < nn_graph_params(graph) ? params : buffers;

        if (skipped(config, param->name))
            continue;
        rc = tensor_read(&file, param, arena + param->offset, err);
        read++;
    }
    if (rc == ERR_OK)
        log_info("train",
                 "initial weights: %d tensors of %s; %d have random values",
                 read, config->checkpoint.init, tensors_of(graph) - read);
    hdf5io_safe_close(&file);
    return rc;
}
