/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What the files that build a graph and that plan it share. */
#ifndef CDDP_OP_CUDA_CUDNN_GRAPH_PRIV_H
#define CDDP_OP_CUDA_CUDNN_GRAPH_PRIV_H

#include "op/cuda/cudnn_graph.h"

#define CUDA_GRAPH_MADE (CUDA_GRAPH_TENSORS + 2 * CUDA_GRAPH_OPS + 8)
#define CUDA_GRAPH_WHAT 160

struct cuda_graph {
    cuda_planner_t planner;
    char what[CUDA_GRAPH_WHAT];
    cudnnBackendDescriptor_t made[CUDA_GRAPH_MADE]; /* to destroy */
    cudnnBackendDescriptor_t tensors[CUDA_GRAPH_TENSORS], ops[CUDA_GRAPH_OPS];
    bool inner[CUDA_GRAPH_TENSORS];
    int made_count, tensor_count, op_count;
    int64_t limit;    /* bytes of a workspace; 0: no limit */
    bool unsupported; /* cuDNN cannot compute this graph */
    err_t failed;     /* the first failure */
};

/* Keep the failure of [call], if it is the first. */
void cuda_graph_check(cuda_graph_t *graph, cudnnStatus_t status,
                      const char *call);

/* The calls of cuDNN on descriptors. They do nothing after a failure, which
 * they keep. A descriptor is destroyed with the graph. */
cudnnBackendDescriptor_t cuda_graph_make(cuda_graph_t *graph,
                                         cudnnBackendDescriptorType_t type);
void cuda_graph_set(cuda_graph_t *graph, cudnnBackendDescriptor_t made,
                    cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *values);
void cuda_graph_set_one(cuda_graph_t *graph, cudnnBackendDescriptor_t made,
                        cudnnBackendAttributeName_t name,
                        cudnnBackendDescriptor_t value);
void cuda_graph_finish(cuda_graph_t *graph, cudnnBackendDescriptor_t made);

#endif
