/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Choosing the tensors between layers that are stored as bfloat16, when matrix
 * products and convolutions are computed in bfloat16. A convolution can round
 * its result, as its reader would do anyway. batchnorm, add, activations and
 * pools then store their results and gradients as bfloat16, too, and compute in
 * float32. So half of the memory between convolutions is moved and kept. A
 * tensor stays float32 if any reader requires that: a loss, or a layer whose
 * result goes to a loss.
 */
#include "nn/exec_priv.h"

static op_bf16_use_t node_use(const nn_exec_t *exec, int i)
{
    return op_backend_bf16_use(
        exec->backend, exec->graph->layers[exec->nodes[i].own].config.kind);
}

/* The second loop goes from the last node to the first, so that the readers of
 * a node are decided before the node itself. */
void nn_exec_store(nn_exec_t *exec)
{
    if (exec->config.compute_type != OP_BFLOAT16)
        return;
    for (int i = 0; i < exec->count; i++)
        if (node_use(exec, i) == OP_BF16_KEPT ||
            node_use(exec, i) == OP_BF16_GIVEN)
            exec->nodes[i].y_stored_as = OP_BFLOAT16;
    for (int i = exec->count - 1; i >= 0; i--) {
        const nn_node_t *node = &exec->nodes[i];
        const op_bf16_use_t use = node_use(exec, i);
        const bool takes =
            use == OP_BF16_TAKEN || use == OP_BF16_GIVEN ||
            (use == OP_BF16_KEPT && node->y_stored_as == OP_BFLOAT16);

        for (int k = 0; k < node->inputs && !takes; k++)
            if (!nn_is_input(node->from[k]))
                exec->nodes[node->from[k]].y_stored_as = OP_FLOAT32;
    }
}
