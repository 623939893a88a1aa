/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cddp/model.h"

#include <string.h>

#include "api/api.h"
#include "base/mem.h"
#include "base/thread.h"
#include "conf/conf.h"
#include "nn/nn.h"

_Static_assert(OP_DIMS_MAX <= 6, "dims of cddp_param_t");

_Static_assert(NN_FIELDS_MAX == CDDP_FIELDS_MAX, "CDDP_FIELDS_MAX");

struct cddp_exec {
    const nn_graph_t *graph;
    nn_exec_t *exec;
    dev_device_t *dev;
    nn_bind_t bind;
    op_step_t step;
    bool training;
    cddp_code_t (*ready)(void *context, int index, cddp_error_t *error);
    cddp_code_t (*sum)(void *context, double *sums, size_t count,
                       cddp_error_t *error);
    void *context;
};

static const nn_graph_t *graph_of(const cddp_model_t *model)
{
    return (const nn_graph_t *)model;
}

/* ---- model --------------------------------------------------------------- */

cddp_code_t cddp_model_open(const char *name, const char *text,
                            cddp_model_t **out, cddp_error_t *error)
{
    nn_graph_t *graph = NULL;
    tree_t *tree = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = conf_parse(name, text, &tree, &err);

    if (rc == ERR_OK)
        rc = nn_graph_open(tree_get(tree, "model"), tree_get(tree, "loss"),
                           &graph, &err);
    tree_free(tree);
    if (rc == ERR_OK)
        *out = (cddp_model_t *)graph;
    return api_answer(rc, &err, error);
}

void cddp_model_close(cddp_model_t *model)
{
    nn_graph_close((nn_graph_t *)model);
}

static cddp_param_t param_of(const nn_param_t *from)
{
    cddp_param_t param = {.name = from->name,
                          .offset = from->offset,
                          .count = from->count,
                          .ndim = from->ndim};

    memcpy(param.dims, from->dims, sizeof from->dims);
    return param;
}

int cddp_model_params(const cddp_model_t *model)
{
    return nn_graph_params(graph_of(model));
}

cddp_param_t cddp_model_param(const cddp_model_t *model, int index)
{
    return param_of(nn_graph_param(graph_of(model), index));
}

size_t cddp_model_param_elems(const cddp_model_t *model)
{
    return nn_graph_param_elems(graph_of(model));
}

int cddp_model_buffers(const cddp_model_t *model)
{
    return nn_graph_buffers(graph_of(model));
}

cddp_param_t cddp_model_buffer(const cddp_model_t *model, int index)
{
    return param_of(nn_graph_buffer(graph_of(model), index));
}

size_t cddp_model_buffer_elems(const cddp_model_t *model)
{
    return nn_graph_buffer_elems(graph_of(model));
}

size_t cddp_model_moments(const cddp_model_t *model)
{
    return nn_graph_moment_elems(graph_of(model));
}

int cddp_model_inputs(const cddp_model_t *model)
{
    return nn_graph_inputs(graph_of(model));
}

const char *cddp_model_input(const cddp_model_t *model, int index)
{
    return nn_graph_input_info(graph_of(model), index).name;
}

int cddp_model_targets(const cddp_model_t *model)
{
    return nn_graph_targets(graph_of(model));
}

const char *cddp_model_target(const cddp_model_t *model, int index)
{
    return nn_graph_target_info(graph_of(model), index).name;
}

int cddp_model_losses(const cddp_model_t *model)
{
    return nn_graph_losses(graph_of(model));
}

cddp_loss_t cddp_model_loss(const cddp_model_t *model, int index)
{
    const nn_loss_info_t loss = nn_graph_loss_info(graph_of(model), index);

    return (cddp_loss_t){.name = loss.name,
                         .kind = loss.kind,
                         .target = loss.target,
                         .weight = loss.weight};
}

int cddp_model_syncs(const cddp_model_t *model)
{
    return nn_graph_syncs(graph_of(model));
}

size_t cddp_model_sync_count(const cddp_model_t *model, int index)
{
    return nn_graph_sync(graph_of(model), index).count;
}

uint64_t cddp_model_hash(const cddp_model_t *model)
{
    return nn_graph_hash(graph_of(model));
}

void cddp_model_init(const cddp_model_t *model, uint64_t seed, float *params,
                     float *buffers)
{
    nn_graph_init(graph_of(model), seed, NULL, params, buffers);
}

double cddp_model_weigh(const cddp_model_t *model, const void *target,
                        int64_t samples)
{
    return nn_loss_weigh(graph_of(model), 0, target, samples).denominator;
}

double cddp_model_weigh_loss(const cddp_model_t *model, int loss,
                             const void *target, int64_t samples)
{
    return nn_loss_weigh(graph_of(model), loss, target, samples).denominator;
}

void cddp_model_fold(const cddp_model_t *model, const double *moments,
                     int64_t samples, float *buffers)
{
    nn_graph_fold_moments(graph_of(model), moments, samples, buffers);
}

/* ---- exec ---------------------------------------------------------------- */

static err_code_t exec_ready(void *context, int index, err_t *err)
{
    const cddp_exec_t *exec = context;
    cddp_error_t error = {.culprit = -1};
    cddp_code_t code = exec->ready(exec->context, index, &error);

    return api_question(code, &error, err);
}

static err_code_t exec_sum(void *context, double *sums, size_t count,
                           err_t *err)
{
    const cddp_exec_t *exec = context;
    cddp_error_t error = {.culprit = -1};
    cddp_code_t code = exec->sum(exec->context, sums, count, &error);

    return api_question(code, &error, err);
}

static void exec_bind(cddp_exec_t *exec, const cddp_exec_config_t *config)
{
    exec->training = config->training != 0;
    exec->ready = config->ready;
    exec->sum = config->sum;
    exec->context = config->context;
    exec->bind.params = config->params;
    exec->bind.grads = config->grads;
    exec->bind.buffers = config->buffers;
    exec->bind.moments = config->moments;
    exec->bind.grad_ready = config->ready == NULL ? NULL : exec_ready;
    exec->bind.reduce_small = config->sum == NULL ? NULL : exec_sum;
    exec->bind.context = exec;
    exec->bind.step = &exec->step;
    nn_exec_bind(exec->exec, &exec->bind);
}

static err_code_t exec_check(const nn_graph_t *graph,
                             const cddp_exec_config_t *config, err_t *err)
{
    const op_backend_ops_t *backend = NULL;
    const char *lack;
    err_code_t rc;

    if (config->samples < 1 || config->params == NULL ||
        (config->training != 0 && config->grads == NULL))
        return err_set(err, ERR_CONFIG,
                       "an exec needs samples, params and, for training, "
                       "grads");
    if (config->training != 0 && config->sum == NULL &&
        nn_graph_syncs(graph) > 0)
        return err_set(err, ERR_CONFIG,
                       "the model has syncbatchnorm layers, so an exec needs "
                       "sum, which adds numbers up over the ranks");
    if (config->bf16 == 0)
        return ERR_OK;
    rc = op_backend_get(DEV_HOST, &backend, err);
    if (rc != ERR_OK)
        return rc;
    lack = op_backend_lacks(backend, NULL, OP_BFLOAT16);
    return lack == NULL ? ERR_OK
                        : err_set(err, ERR_UNAVAILABLE,
                                  "an exec with bf16 cannot be opened, as %s: "
                                  "leave bf16 0",
                                  lack);
}

static err_code_t exec_open(const nn_graph_t *graph,
                            const cddp_exec_config_t *config, cddp_exec_t *exec,
                            err_t *err)
{
    nn_exec_config_t inner = {
        .op_backend = DEV_HOST,
        .batch = config->samples,
        .training = config->training != 0,
        .recompute = config->recompute != 0,
        .compute_type = config->bf16 != 0 ? OP_BFLOAT16 : OP_FLOAT32,
        .threads = config->threads > 0 ? config->threads : thread_cores()};
    err_code_t rc = exec_check(graph, config, err);

    if (rc != ERR_OK)
        return rc;
    exec->graph = graph;
    rc = dev_open(DEV_HOST, 0, &exec->dev, err);
    inner.dev = exec->dev;
    if (rc == ERR_OK)
        rc = dev_stream_open(exec->dev, DEV_STREAM_COMPUTE, &exec->bind.stream,
                             err);
    if (rc == ERR_OK)
        rc = nn_exec_open(graph, &inner, &exec->exec, err);
    if (rc == ERR_OK)
        rc = dev_alloc(exec->dev, nn_exec_activation_bytes(exec->exec),
                       "activations", &exec->bind.activations, err);
    if (rc == ERR_OK)
        exec_bind(exec, config);
    return rc;
}

cddp_code_t cddp_exec_open(const cddp_model_t *model,
                           const cddp_exec_config_t *config, cddp_exec_t **out,
                           cddp_error_t *error)
{
    cddp_exec_t *exec = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = mem_new(cddp_exec_t, 1, "exec", &exec, &err);

    if (rc == ERR_OK)
        rc = exec_open(graph_of(model), config, exec, &err);
    if (rc == ERR_OK)
        *out = exec;
    else
        cddp_exec_close(exec);
    return api_answer(rc, &err, error);
}

void cddp_exec_close(cddp_exec_t *exec)
{
    if (exec == NULL)
        return;
    nn_exec_close(exec->exec);
    if (exec->dev != NULL)
        dev_free(exec->dev, exec->bind.activations);
    if (exec->bind.stream != NULL)
        dev_stream_close(exec->bind.stream);
    dev_close(exec->dev);
    mem_free(exec);
}

size_t cddp_exec_bytes(const cddp_exec_t *exec)
{
    return nn_exec_activation_bytes(exec->exec);
}

static nn_batch_t batch_of(const nn_graph_t *graph,
                           const cddp_samples_t *samples)
{
    nn_batch_t batch = {.inputs = {samples->input},
                        .targets = {samples->target},
                        .sample_ids = samples->ids};

    for (int k = 0; k < nn_graph_inputs(graph) && samples->inputs != NULL; k++)
        batch.inputs[k] = samples->inputs[k];
    for (int k = 0; k < nn_graph_targets(graph) && samples->targets != NULL;
         k++)
        batch.targets[k] = samples->targets[k];
    return batch;
}

double cddp_model_weigh_samples(const cddp_model_t *model, int loss,
                                const cddp_samples_t *samples, int64_t count)
{
    const nn_batch_t batch = batch_of(graph_of(model), samples);

    return nn_batch_weigh(graph_of(model), loss, &batch, count).denominator;
}

/* Check that [batch] has every input and target that the model reads. */
static err_code_t batch_check(const cddp_exec_t *exec, const nn_batch_t *batch,
                              err_t *err)
{
    for (int k = 0; k < nn_graph_inputs(exec->graph); k++)
        if (batch->inputs[k] == NULL)
            return err_set(err, ERR_CONFIG, "the samples lack the input %s",
                           nn_graph_input_info(exec->graph, k).name);
    for (int k = 0; k < nn_graph_targets(exec->graph); k++)
        if (batch->targets[k] == NULL)
            return err_set(err, ERR_CONFIG, "the samples lack the target %s",
                           nn_graph_target_info(exec->graph, k).name);
    return ERR_OK;
}

/* [scales]: one for each loss; NULL: no backward follows. */
static void step_set(cddp_exec_t *exec, const cddp_samples_t *samples,
                     const double *scales)
{
    exec->step = (op_step_t){.seed = samples->seed, .epoch = samples->epoch};
    for (int k = 0; k < nn_graph_losses(exec->graph) && scales != NULL; k++)
        exec->step.scales[k] = scales[k];
}

cddp_code_t cddp_exec_forward(cddp_exec_t *exec, const cddp_samples_t *samples,
                              double *loss_sum, int64_t *correct,
                              cddp_error_t *error)
{
    const nn_batch_t batch = batch_of(exec->graph, samples);
    nn_result_t results[NN_FIELDS_MAX];
    err_t err = ERR_INIT;
    err_code_t rc = batch_check(exec, &batch, &err);

    step_set(exec, samples, NULL);
    if (rc == ERR_OK)
        rc = nn_exec_forward(exec->exec, &batch, &err);
    if (rc == ERR_OK)
        rc = nn_exec_results(exec->exec, results, &err);
    for (int k = 0; k < nn_graph_losses(exec->graph) && rc == ERR_OK; k++) {
        loss_sum[k] = results[k].loss_sum;
        if (correct != NULL)
            correct[k] = (int64_t)results[k].correct;
    }
    return api_answer(rc, &err, error);
}

cddp_code_t cddp_exec_backward_losses(cddp_exec_t *exec,
                                      const cddp_samples_t *samples,
                                      const double *scales, int add,
                                      cddp_error_t *error)
{
    const nn_batch_t batch = batch_of(exec->graph, samples);
    err_t err = ERR_INIT;
    err_code_t rc;

    if (exec->training)
        rc = batch_check(exec, &batch, &err);
    else
        rc = err_set(&err, ERR_CONFIG,
                     "this exec is for evaluation: open one with training "
                     "set for a backward");
    step_set(exec, samples, scales);
    if (rc == ERR_OK)
        rc = nn_exec_backward(exec->exec, &batch, add != 0, &err);
    return api_answer(rc, &err, error);
}

cddp_code_t cddp_exec_backward(cddp_exec_t *exec, const cddp_samples_t *samples,
                               double scale, int add, cddp_error_t *error)
{
    if (nn_graph_losses(exec->graph) > 1)
        return cddp_error_set(error, CDDP_CONFIG,
                              "the model has %d losses, each with a scale of "
                              "its own: call cddp_exec_backward_losses",
                              nn_graph_losses(exec->graph));
    return cddp_exec_backward_losses(exec, samples, &scale, add, error);
}

cddp_code_t cddp_exec_output_loss(cddp_exec_t *exec, int loss, float *out,
                                  cddp_error_t *error)
{
    const int losses = nn_graph_losses(exec->graph);
    err_t err = ERR_INIT;
    err_code_t rc;

    if (loss < 0 || loss >= losses)
        rc = err_set(&err, ERR_CONFIG,
                     "the model has %d losses, numbered from 0; there is no "
                     "loss %d",
                     losses, loss);
    else
        rc = nn_exec_output(exec->exec, loss, out, &err);
    return api_answer(rc, &err, error);
}

cddp_code_t cddp_exec_output(cddp_exec_t *exec, float *out, cddp_error_t *error)
{
    return cddp_exec_output_loss(exec, 0, out, error);
}
