/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The numbers of a batch that a forward would refuse, in the order in which the
 * forward would meet them. */
#include "nn/nn_priv.h"
#include "op/op_loss.h"
#include "op/op_tokens.h"

static err_code_t tokens_check(const nn_layer_t *layer, const nn_batch_t *batch,
                               int64_t samples, err_t *err)
{
    op_config_t config = layer->config;

    if (!layer->kind->tokens)
        return ERR_OK;
    config.in.dims[0] = samples;
    return op_check_tokens(&config, batch->inputs[nn_input_of(layer->from[0])],
                           err);
}

static err_code_t loss_check(const nn_layer_t *loss, const nn_batch_t *batch,
                             int64_t samples, err_t *err)
{
    op_config_t config = loss->config;
    err_code_t rc = ERR_OK;

    config.in.dims[0] = samples;
    if (loss->sample_weight > 0)
        rc = op_check_weights(&config, batch->targets[loss->sample_weight - 1],
                              err);
    if (rc == ERR_OK && config.kind == OP_CROSS_ENTROPY)
        rc = op_check_target(&config, batch->targets[loss->target], err);
    return rc;
}

err_code_t nn_batch_check(const nn_graph_t *graph, const nn_batch_t *batch,
                          int64_t samples, err_t *err)
{
    for (int i = 0; i < graph->layer_count + graph->loss_count; i++) {
        const nn_layer_t *layer = &graph->layers[i];
        const err_code_t rc = i < graph->layer_count
                                  ? tokens_check(layer, batch, samples, err)
                                  : loss_check(layer, batch, samples, err);

        if (rc == ERR_OK)
            continue;
        err_prefix(err, "layer %s", layer->name);
        return rc;
    }
    return ERR_OK;
}
