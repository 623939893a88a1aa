/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/batch_part.h"

#include "base/check.h"

nn_batch_t train_batch_part(const nn_graph_t *graph,
                            const hdf5io_batch_t *whole, int64_t from)
{
    nn_batch_t part = {.sample_ids = whole->sample_ids + from};

    check(from >= 0 && from <= whole->count, "sample %lld of %lld",
          (long long)from, (long long)whole->count);
    for (int k = 0; k < nn_graph_inputs(graph); k++)
        part.inputs[k] = (const float *)whole->inputs[k] +
                         (size_t)(from * nn_graph_input_info(graph, k).elems);
    for (int k = 0; k < nn_graph_targets(graph); k++)
        part.targets[k] = (const char *)whole->targets[k] +
                          (size_t)from * nn_graph_target_info(graph, k).bytes;
    return part;
}
