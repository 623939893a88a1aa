/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A graph of operations on tensors, and the plan that cuDNN makes of it, by the
 * backend API (the C interface below cuDNN's C++ frontend). A graph is built by
 * calls that return nothing; the first failure is kept and returned by
 * cuda_graph_plan. A plan depends on the graph and on the kind of device alone:
 * it is the first engine configuration of cuDNN's heuristics (mode A, then
 * fallback) which is deterministic, precise enough, and can be finalised.
 * Nothing is timed.
 *
 * Thread rule: a planner, and its graphs and plans, are used by one thread at a
 * time.
 *
 * What of cuDNN is used (cudnn_backend.h), for those who replace it:
 *   cudnnBackendCreateDescriptor, DestroyDescriptor, SetAttribute,
 *   GetAttribute, Finalize, Execute; cudnnGetErrorString,
 *   cudnnGetLastErrorString; cudnnCreate, cudnnDestroy, cudnnSetStream
 *   (cuda_dnn_*).
 *   TENSOR: UNIQUE_ID, DATA_TYPE (FLOAT, BFLOAT16; inner ones also INT32,
 *     BOOLEAN), DIMENSIONS, STRIDES, BYTE_ALIGNMENT, IS_VIRTUAL, IS_BY_VALUE
 *   CONVOLUTION: SPATIAL_DIMS (2, 3), COMP_TYPE (FLOAT), CONV_MODE
 *     (CROSS_CORRELATION), PRE_PADDINGS, POST_PADDINGS, DILATIONS,
 *     FILTER_STRIDES
 *   OPERATION_CONVOLUTION_FORWARD, _BACKWARD_DATA, _BACKWARD_FILTER: ALPHA
 *     (float 1), BETA (float 0), CONV_DESC, W or DW, X or DX, Y or DY
 *   POINTWISE: MODE, MATH_PREC, AXIS (GEN_INDEX); OPERATION_POINTWISE:
 *     PW_DESCRIPTOR, XDESC, BDESC, TDESC, YDESC
 *   MATMUL: COMP_TYPE; OPERATION_MATMUL: ADESC, BDESC, CDESC, DESC
 *   REDUCTION: OPERATOR, COMP_TYPE; OPERATION_REDUCTION: XDESC, YDESC, DESC
 *   OPERATION_RESHAPE: XDESC, YDESC
 *   OPERATIONGRAPH: OPS, HANDLE (with a device)
 *   DEVICEPROP: JSON_REPRESENTATION (without a device)
 *   ENGINEHEUR: OPERATION_GRAPH, MODE (A, FALLBACK), DEVICEPROP (without a
 *     device), RESULTS (get)
 *   ENGINECFG: ENGINE (get); ENGINE: NUMERICAL_NOTE, GLOBAL_INDEX (get)
 *   EXECUTION_PLAN: ENGINE_CONFIG, HANDLE (with a device) or DEVICEPROP,
 *     WORKSPACE_SIZE (get)
 *   VARIANT_PACK: UNIQUE_IDS, DATA_POINTERS, WORKSPACE
 */
#ifndef CDDP_OP_CUDA_CUDNN_GRAPH_H
#define CDDP_OP_CUDA_CUDNN_GRAPH_H

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* For which device plans are made: for the device of [handle], or, without a
 * device, for the one that [properties] (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
 * describes. */
typedef struct cuda_planner {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} cuda_planner_t;

/* A planner for the device that [json] describes; such plans cannot run. */
err_code_t cuda_planner_open(const char *json, cuda_planner_t *out, err_t *err);
void cuda_planner_close(cuda_planner_t *planner);

#define CUDA_GRAPH_DIMS 5
#define CUDA_GRAPH_TENSORS 40 /* maxima of a graph */
#define CUDA_GRAPH_OPS 28

typedef struct cuda_tensor {
    cudnnDataType_t type;
    int ndim; /* 3 to CUDA_GRAPH_DIMS */
    int64_t dims[CUDA_GRAPH_DIMS], strides[CUDA_GRAPH_DIMS]; /* in elements */
    bool inner;    /* between two operations, never in memory */
    bool by_value; /* a number in host memory, read when the plan is run */
} cuda_tensor_t;

typedef enum cuda_conv_kind {
    CUDA_CONV_FORWARD, /* y of x and w */
    CUDA_CONV_DATA,    /* x of w and y: the gradient of x */
    CUDA_CONV_FILTER   /* w of x and y: the gradient of w */
} cuda_conv_kind_t;

typedef struct cuda_conv_window {
    int space; /* 2 or 3 spatial dimensions */
    int64_t before[3], after[3], dilation[3], stride[3];
} cuda_conv_window_t;

/* How precise the products must be. */
typedef enum cuda_precision {
    CUDA_EXACT, /* float32 factors are not rounded */
    CUDA_TF32,  /* they may be rounded to tf32 */
    CUDA_BF16   /* they are bfloat16 already */
} cuda_precision_t;

typedef struct cuda_graph cuda_graph_t;
typedef struct cuda_plan cuda_plan_t;

/* [what] names the graph in messages, such as "conv [8, 3, 32, 32]". It is
 * copied. */
err_code_t cuda_graph_open(const cuda_planner_t *planner, const char *what,
                           cuda_graph_t **out, err_t *err);
void cuda_graph_close(cuda_graph_t *graph); /* NULL allowed */

/* Add a tensor. Returns its number: 0, 1, ... in the order of the calls. */
int cuda_graph_tensor(cuda_graph_t *graph, const cuda_tensor_t *tensor);

/* Add an operation on tensors with these numbers. */
void cuda_graph_conv(cuda_graph_t *graph, cuda_conv_kind_t kind,
                     const cuda_conv_window_t *window, const int xwy[3]);
/* y = mode(x, b); [b] -1: the mode has one argument. */
void cuda_graph_pointwise(cuda_graph_t *graph, cudnnPointwiseMode_t mode, int x,
                          int b, int y);
/* y = t ? x : b, element by element */
void cuda_graph_select(cuda_graph_t *graph, const int xbt[3], int y);
/* y = the index of each element along dimension [axis], from 0; y has the shape
 * of x. */
void cuda_graph_index(cuda_graph_t *graph, int axis, int x, int y);
/* y = 1 where a >= b, otherwise 0; y is BOOLEAN. */
void cuda_graph_at_least(cuda_graph_t *graph, int a, int b, int y);
/* y = x with the dimensions and strides of y: a transposed view. */
void cuda_graph_reshape(cuda_graph_t *graph, int x, int y);
void cuda_graph_matmul(cuda_graph_t *graph, int a, int b, int c);
/* y has size 1 in the dimensions of x that are reduced. */
void cuda_graph_reduce(cuda_graph_t *graph, cudnnReduceTensorOp_t mode, int x,
                       int y);

/* Refuse plans that need more than [workspace] bytes. Without this call a plan
 * that needs more than 1 GiB is used only if there is no other. */
void cuda_graph_limit(cuda_graph_t *graph, int64_t workspace);

/* Make the plan. ERR_UNAVAILABLE if no engine qualifies, or a call before this
 * one failed. The plan does not need the graph afterwards. */
err_code_t cuda_graph_plan(cuda_graph_t *graph, cuda_precision_t precision,
                           cuda_plan_t **out, err_t *err);
/* Did cuda_graph_plan fail because cuDNN has no such engine (in this version,
 * for this device and this shape)? False: a call failed that should not. */
bool cuda_graph_unsupported(const cuda_graph_t *graph);
void cuda_plan_close(cuda_plan_t *plan); /* NULL allowed */

size_t cuda_plan_workspace(const cuda_plan_t *plan); /* in bytes */
/* For reports: cuDNN's number of the engine, how many configurations were
 * refused before it, and its numerical notes as words. */
int64_t cuda_plan_engine(const cuda_plan_t *plan);
int cuda_plan_refused(const cuda_plan_t *plan);
const char *cuda_plan_notes(const cuda_plan_t *plan);

/* Enqueue the plan on the stream of the planner's handle (cudnnSetStream).
 * [data]: the address of each tensor, by number; NULL for inner ones. Allocates
 * host memory if these addresses differ from those of the last two runs. */
err_code_t cuda_plan_run(cuda_plan_t *plan, void *const *data, void *workspace,
                         err_t *err);

/* The error of [call] of cuDNN on [what]; ERR_OK if [status] is success. */
err_code_t cuda_dnn_check(cudnnStatus_t status, const char *call,
                          const char *what, err_t *err);

#endif
