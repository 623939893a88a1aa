/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How the tensors between layers lie when products are of bfloat16. A
 * convolution can write its result rounded, which its reader would do anyway;
 * batchnorm, add, activations and pools then keep what they get, forward and
 * backward, and compute in float32 inside. So between convolutions half of the
 * memory is moved and kept. A tensor stays float32 if any reader cannot take it
 * otherwise: a loss, or a layer whose results would go to one.
 */
#include "nn/exec_priv.h"

static op_store_t node_stores(const nn_exec_t *exec, int i)
{
    return op_backend_stores(
        exec->backend, exec->graph->layers[exec->nodes[i].own].config.kind);
}

/* From the last node to the first, so that readers are known. */
void nn_exec_store(nn_exec_t *exec)
{
    for (int i = 0; i < exec->count; i++)
        exec->nodes[i].bf16 =
            exec->config.bf16 && node_stores(exec, i) >= OP_STORE_KEEPS;
    for (int i = exec->count - 1; i >= 0; i--) {
        const nn_node_t *node = &exec->nodes[i];
        const op_store_t stores = node_stores(exec, i);
        const bool takes =
            stores == OP_STORE_READS || stores == OP_STORE_GIVES || node->bf16;

        for (int k = 0; k < node->inputs && !takes; k++)
            if (!nn_is_input(node->from[k]))
                exec->nodes[node->from[k]].bf16 = false;
    }
}
