/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The graphs of attention, forward and backward. cuDNN recognises attention by
 * its pattern of operations. So their order and the types of inner tensors are
 * those of cuDNN's documentation and C++ frontend, even where that multiplies
 * by 1.
 */
#include "op/cuda/attention_plan.h"

#include <stdio.h>
#include <string.h>

#include "op/op_desc.h"

typedef struct draft {
    const cuda_attention_shape_t *shape;
    cuda_graph_t *graph;
    bool backward;
} draft_t;

cuda_attention_shape_t cuda_attention_shape_of(const op_config_t *config)
{
    const op_attention_t a = op_attention_of(config);
    cuda_attention_shape_t shape;

    memset(&shape, 0, sizeof shape);
    shape.N = a.N;
    shape.T = a.T;
    shape.S = a.S;
    shape.H = a.H;
    shape.G = a.G;
    shape.D = a.D;
    memcpy(shape.stride, a.stride, sizeof shape.stride);
    shape.causal = config->heads.causal;
    shape.training = config->training;
    return shape;
}

bool cuda_attention_shapes_equal(const cuda_attention_shape_t *a,
                                 const cuda_attention_shape_t *b)
{
    return a->N == b->N && a->T == b->T && a->S == b->S && a->H == b->H &&
           a->G == b->G && a->D == b->D &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           a->causal == b->causal && a->training == b->training;
}

/* Why there is no plan of the gradients, although there is one of the forward
 * pass; NULL: there may be one. From sm_100 on, cuDNN's gradients are
 * deterministic only with settings of an engine that its heuristics do not
 * propose. */
static const char *backward_lacks(const op_attention_t *a, int arch)
{
    const size_t version = cudnnGetVersion();

    if (arch >= 100)
        return "cuDNN proposes no deterministic gradients for this GPU";
    if (arch < 90 && a->D > 128)
        return "a head has more than 128 features";
    if (2 * a->N * a->H * a->T * a->S > CUDA_ATTENTION_WORKSPACE)
        return "its deterministic gradients would need more than 512 MiB";
    if (a->T == 1 && a->S == 1)
        return "there is one token";
    if (version < 91600 && a->S % 128 != 0)
        return "before cuDNN 9.16 the keys must be a multiple of 128";
    if (version < 91002)
        return "cuDNN before 9.10.2 has errors in its gradients";
    return NULL;
}

const char *cuda_attention_lacks(const op_config_t *config, int arch)
{
    const op_attention_t a = op_attention_of(config);

    if (config->heads.masked)
        return "it has a mask of keys";
    if (a.D % 8 != 0)
        return "the features of a head are no multiple of 8";
    return config->training ? backward_lacks(&a, arch) : NULL;
}

/* ---- tensors ------------------------------------------------------------- */

/* A tensor [N, H, T, D] of tokens that are [stride] elements apart. */
static cuda_tensor_t tokens_of(const cuda_attention_shape_t *s, int64_t heads,
                               int64_t tokens, int64_t stride)
{
    return (cuda_tensor_t){.type = CUDNN_DATA_BFLOAT16,
                           .ndim = 4,
                           .dims = {s->N, heads, tokens, s->D},
                           .strides = {tokens * stride, s->D, stride, 1}};
}

/* [tensor] with its last two dimensions exchanged. */
static cuda_tensor_t transposed(cuda_tensor_t tensor)
{
    const int64_t dim = tensor.dims[2], stride = tensor.strides[2];

    tensor.dims[2] = tensor.dims[3];
    tensor.strides[2] = tensor.strides[3];
    tensor.dims[3] = dim;
    tensor.strides[3] = stride;
    return tensor;
}

/* A contiguous tensor [N, heads, a, b]. */
static cuda_tensor_t plain_of(const draft_t *d, int64_t heads, int64_t a,
                              int64_t b, cudnnDataType_t type)
{
    return (cuda_tensor_t){.type = type,
                           .ndim = 4,
                           .dims = {d->shape->N, heads, a, b},
                           .strides = {heads * a * b, a * b, b, 1}};
}

/* matrix: add an inner tensor [N, H, T, S], such as the scores. column: add one
 * [N, H, T, 1], with one number for each query. */
static int matrix(const draft_t *d, cudnnDataType_t type)
{
    cuda_tensor_t tensor =
        plain_of(d, d->shape->H, d->shape->T, d->shape->S, type);

    tensor.inner = true;
    return cuda_graph_tensor(d->graph, &tensor);
}

static int column(const draft_t *d)
{
    cuda_tensor_t tensor =
        plain_of(d, d->shape->H, d->shape->T, 1, CUDNN_DATA_FLOAT);

    tensor.inner = true;
    return cuda_graph_tensor(d->graph, &tensor);
}

/* Add a tensor for each CUDA_ATTENTION_*, in that order. Those that this graph
 * does not use are inner tensors, so that a run needs no address for them. */
static void add_tensors(const draft_t *d)
{
    const cuda_attention_shape_t *s = d->shape;
    const cuda_tensor_t q = tokens_of(s, s->H, s->T, s->stride[0]),
                        k = tokens_of(s, s->G, s->S, s->stride[1]),
                        v = tokens_of(s, s->G, s->S, s->stride[2]),
                        y = tokens_of(s, s->H, s->T, s->H * s->D);
    const cuda_tensor_t level = plain_of(d, s->H, s->T, 1, CUDNN_DATA_FLOAT);
    const cuda_tensor_t number = {.type = CUDNN_DATA_FLOAT,
                                  .ndim = 4,
                                  .dims = {1, 1, 1, 1},
                                  .strides = {1, 1, 1, 1},
                                  .by_value = true};
    cuda_tensor_t all[CUDA_ATTENTION_TENSORS] = {q,
                                                 transposed(k),
                                                 d->backward ? transposed(v)
                                                             : v,
                                                 y,
                                                 level,
                                                 y,
                                                 q,
                                                 k,
                                                 v,
                                                 level,
                                                 number,
                                                 number,
                                                 number};

    for (int i = 0; i < CUDA_ATTENTION_TENSORS; i++) {
        const bool only_back =
            (i >= CUDA_ATTENTION_DY && i <= CUDA_ATTENTION_SUMS) ||
            i == CUDA_ATTENTION_ONE;

        if ((only_back && !d->backward) ||
            (i == CUDA_ATTENTION_LEVEL && !s->training) ||
            (i == CUDA_ATTENTION_LOWEST && !s->causal)) {
            all[i].inner = true;
            all[i].by_value = false;
        }
        cuda_graph_tensor(d->graph, &all[i]);
    }
}

/* ---- operations ---------------------------------------------------------- */

/* Add the scores q k^T / sqrt(D). */
static int scores(const draft_t *d)
{
    const int product = matrix(d, CUDNN_DATA_FLOAT);
    const int scaled = matrix(d, CUDNN_DATA_FLOAT);

    cuda_graph_matmul(d->graph, CUDA_ATTENTION_Q, CUDA_ATTENTION_K, product);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_MUL, product,
                         CUDA_ATTENTION_SCALE, scaled);
    return scaled;
}

/* If attention is causal, replace [x] by CUDA_ATTENTION_LOWEST where the key
 * comes after the query. */
static int masked(const draft_t *d, int x)
{
    int row, col, kept, out;

    if (!d->shape->causal)
        return x;
    row = matrix(d, CUDNN_DATA_INT32);
    col = matrix(d, CUDNN_DATA_INT32);
    kept = matrix(d, CUDNN_DATA_BOOLEAN);
    out = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_index(d->graph, 2, x, row);
    cuda_graph_index(d->graph, 3, x, col);
    cuda_graph_at_least(d->graph, row, col, kept);
    cuda_graph_select(d->graph, (const int[]){x, CUDA_ATTENTION_LOWEST, kept},
                      out);
    return out;
}

static void forward(const draft_t *d)
{
    const int x = masked(d, scores(d));
    const int top = column(d), moved = matrix(d, CUDNN_DATA_FLOAT);
    const int raised = matrix(d, CUDNN_DATA_FLOAT), sum = column(d);
    const int p = matrix(d, CUDNN_DATA_BFLOAT16);

    cuda_graph_reduce(d->graph, CUDNN_REDUCE_TENSOR_MAX, x, top);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_SUB, x, top, moved);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_EXP, moved, -1, raised);
    cuda_graph_reduce(d->graph, CUDNN_REDUCE_TENSOR_ADD, raised, sum);
    if (d->shape->training) {
        const int log = column(d);

        cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_LOG, sum, -1, log);
        cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_ADD, top, log,
                             CUDA_ATTENTION_LEVEL);
    }
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_DIV, raised, sum, p);
    cuda_graph_matmul(d->graph, p, CUDA_ATTENTION_V, CUDA_ATTENTION_Y);
}

/* Add CUDA_ATTENTION_SUMS: for each query, dy y summed over the features. The
 * gradient of the softmax subtracts it. */
static void add_sums(const draft_t *d)
{
    const cuda_attention_shape_t *s = d->shape;
    cuda_tensor_t product = plain_of(d, s->H, s->T, s->D, CUDNN_DATA_FLOAT);
    const int sum = column(d);
    int dy_y;

    product.inner = true;
    dy_y = cuda_graph_tensor(d->graph, &product);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_MUL, CUDA_ATTENTION_DY,
                         CUDA_ATTENTION_Y, dy_y);
    cuda_graph_reduce(d->graph, CUDNN_REDUCE_TENSOR_ADD, dy_y, sum);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_MUL, sum, CUDA_ATTENTION_ONE,
                         CUDA_ATTENTION_SUMS);
}

/* Add the gradient [to] of k or v: x^T [of], summed over the heads that share
 * keys and values. */
static void add_transposed(const draft_t *d, int x, int of, int to)
{
    const cuda_attention_shape_t *s = d->shape;
    cuda_tensor_t turned =
        transposed(plain_of(d, s->H, s->T, s->S, CUDNN_DATA_BFLOAT16));
    cuda_tensor_t heads = plain_of(d, s->H, s->S, s->D, CUDNN_DATA_BFLOAT16);
    int left, all = to;

    turned.inner = heads.inner = true;
    left = cuda_graph_tensor(d->graph, &turned);
    cuda_graph_reshape(d->graph, x, left);
    if (s->H != s->G)
        all = cuda_graph_tensor(d->graph, &heads);
    cuda_graph_matmul(d->graph, left, of, all);
    if (s->H != s->G)
        cuda_graph_reduce(d->graph, CUDNN_REDUCE_TENSOR_ADD, all, to);
}

static void backward(const draft_t *d)
{
    const cuda_attention_shape_t *s = d->shape;
    cuda_tensor_t keys = tokens_of(s, s->G, s->S, s->stride[1]);
    int moved, p, x, next;

    add_sums(d);
    x = scores(d);
    moved = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_SUB, x, CUDA_ATTENTION_LEVEL,
                         moved);
    x = masked(d, moved);
    p = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_EXP, x, -1, p);
    add_transposed(d, p, CUDA_ATTENTION_DY, CUDA_ATTENTION_DV);
    x = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_matmul(d->graph, CUDA_ATTENTION_DY, CUDA_ATTENTION_V, x);
    next = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_SUB, x, CUDA_ATTENTION_SUMS,
                         next);
    x = matrix(d, CUDNN_DATA_FLOAT);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_MUL, next, p, x);
    next = matrix(d, CUDNN_DATA_BFLOAT16);
    cuda_graph_pointwise(d->graph, CUDNN_POINTWISE_MUL, x, CUDA_ATTENTION_SCALE,
                         next);
    add_transposed(d, next, CUDA_ATTENTION_Q, CUDA_ATTENTION_DK);
    keys.inner = true;
    x = cuda_graph_tensor(d->graph, &keys);
    cuda_graph_reshape(d->graph, CUDA_ATTENTION_K, x);
    cuda_graph_matmul(d->graph, next, x, CUDA_ATTENTION_DQ);
}

/* ---- plans --------------------------------------------------------------- */

static err_code_t plan_open(const cuda_attention_shape_t *shape,
                            const cuda_planner_t *planner, bool back,
                            cuda_plan_t **out, bool *unsupported, err_t *err)
{
    draft_t draft = {.shape = shape, .backward = back};
    char what[160];
    err_code_t rc;

    snprintf(what, sizeof what,
             "attention of %lld x %lld heads of %lld, %lld to %lld tokens%s%s",
             (long long)shape->N, (long long)shape->H, (long long)shape->D,
             (long long)shape->T, (long long)shape->S,
             shape->causal ? ", causal" : "", back ? ", gradients" : "");
    rc = cuda_graph_open(planner, what, &draft.graph, err);
    if (rc != ERR_OK)
        return rc;
    add_tensors(&draft);
    if (back)
        backward(&draft);
    else
        forward(&draft);
    cuda_graph_limit(draft.graph, CUDA_ATTENTION_WORKSPACE);
    rc = cuda_graph_plan(draft.graph, CUDA_BF16, out, err);
    *unsupported = rc != ERR_OK && cuda_graph_unsupported(draft.graph);
    cuda_graph_close(draft.graph);
    return *unsupported ? ERR_OK : rc;
}

err_code_t cuda_attention_plans_open(const cuda_attention_shape_t *shape,
                                     const cuda_planner_t *planner,
                                     cuda_attention_plans_t *out,
                                     bool *unsupported, err_t *err)
{
    err_code_t rc =
        plan_open(shape, planner, false, &out->forward, unsupported, err);

    if (rc == ERR_OK && !*unsupported && shape->training)
        rc = plan_open(shape, planner, true, &out->backward, unsupported, err);
    if (*unsupported)
        cuda_attention_plans_close(out);
    return rc;
}

void cuda_attention_plans_close(cuda_attention_plans_t *plans)
{
    cuda_plan_close(plans->forward);
    cuda_plan_close(plans->backward);
    *plans = (cuda_attention_plans_t){0};
}
