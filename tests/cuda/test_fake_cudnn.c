/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The stand-in for cuDNN, by the graphs that cddp builds: strides and types,
 * the choice of an engine, and errors for what it does not know. Whether its
 * numbers are right is tested by tests/op/test_op_cuda against another backend.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "cuda/fake_cuda.h"
#include "op/cuda/cudnn_graph.h"

#define OK(call) cr_assert_eq(call, 0, "%s", #call)

enum { C = 3, H = 6, W = 5, KERNELS = 4, SIDE = 3, XS = C * H * W };
enum { WS = KERNELS * C * SIDE * SIDE, YS = KERNELS * H * W };

/* How x and y lie: [C, H, W] or [H, W, C]. */
static cuda_tensor_t tensor(cudnnDataType_t type, int64_t n, int64_t c,
                            int64_t h, int64_t w, bool last)
{
    return (cuda_tensor_t){.type = type,
                           .ndim = 4,
                           .dims = {n, c, h, w},
                           .strides = {c * h * w, last ? 1 : h * w,
                                       last ? w * c : w, last ? c : 1}};
}

typedef struct rig {
    cuda_planner_t planner;
    cudaStream_t stream;
    cuda_plan_t *plan;
    void *data[3], *workspace;
} rig_t;

static void rig_open(rig_t *rig)
{
    *rig = (rig_t){0};
    OK(cudaStreamCreateWithFlags(&rig->stream, cudaStreamNonBlocking));
    OK(cudnnCreate(&rig->planner.handle));
    OK(cudnnSetStream(rig->planner.handle, rig->stream));
}

static void rig_close(rig_t *rig)
{
    cuda_plan_close(rig->plan);
    for (int i = 0; i < 3; i++)
        OK(cudaFree(rig->data[i]));
    OK(cudaFree(rig->workspace));
    OK(cudnnDestroy(rig->planner.handle));
    OK(cudaStreamDestroy(rig->stream));
    fake_cuda.reset(); /* ends the process if something is open */
}

static err_code_t plan(rig_t *rig, bool bf16, bool last,
                       cuda_precision_t precision, err_t *err)
{
    static const int xwy[] = {0, 1, 2};
    const cudnnDataType_t type = bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    const cuda_tensor_t tensors[] = {
        tensor(type, 1, C, H, W, last),
        tensor(type, KERNELS, C, SIDE, SIDE, last),
        tensor(CUDNN_DATA_FLOAT, 1, KERNELS, H, W, last)};
    const cuda_conv_window_t window = {.space = 2,
                                       .before = {1, 1},
                                       .after = {1, 1},
                                       .dilation = {1, 1},
                                       .stride = {1, 1}};
    cuda_graph_t *graph;
    err_code_t rc;

    OK(cuda_graph_open(&rig->planner, "a test", &graph, err));
    for (int i = 0; i < 3; i++)
        cuda_graph_tensor(graph, &tensors[i]);
    cuda_graph_conv(graph, CUDA_CONV_FORWARD, &window, xwy);
    rc = cuda_graph_plan(graph, precision, &rig->plan, err);
    cuda_graph_close(graph);
    return rc;
}

static float number(int i)
{
    return sinf((float)(7 * i));
}

/* Element [c][h][w] of a tensor of [channels] channels lies here. */
static int place(int c, int h, int w, int channels, int height, int width,
                 bool last)
{
    return last ? (h * width + w) * channels + c : (c * height + h) * width + w;
}

static void fill(rig_t *rig, int which, int count, const float *values,
                 bool bf16)
{
    static uint16_t narrow[2][WS];
    const size_t bytes = (size_t)count * (bf16 ? 2 : 4);

    if (bf16)
        half_round_bf16(narrow[which], values, count);
    OK(cudaMalloc(&rig->data[which], bytes));
    OK(cudaMemcpyAsync(rig->data[which],
                       bf16 ? (const void *)narrow[which] : values, bytes,
                       cudaMemcpyHostToDevice, rig->stream));
}

/* y of the convolution, in the order of [C, H, W]. */
static void convolve(bool bf16, bool last, cuda_precision_t precision,
                     float y[YS])
{
    float x[XS], w[WS], out[YS];
    err_t err = ERR_INIT;
    rig_t rig;

    rig_open(&rig);
    OK(plan(&rig, bf16, last, precision, &err));
    for (int c = 0; c < C; c++)
        for (int i = 0; i < H * W; i++)
            x[place(c, i / W, i % W, C, H, W, last)] = number(c * H * W + i);
    for (int k = 0; k < KERNELS; k++)
        for (int c = 0; c < C; c++)
            for (int i = 0; i < SIDE * SIDE; i++)
                w[k * C * SIDE * SIDE +
                  place(c, i / SIDE, i % SIDE, C, SIDE, SIDE, last)] =
                    number(1000 + (k * C + c) * SIDE * SIDE + i);
    fill(&rig, 0, XS, x, bf16);
    fill(&rig, 1, WS, w, bf16);
    OK(cudaMalloc(&rig.data[2], YS * sizeof(float)));
    OK(cudaMalloc(&rig.workspace, cuda_plan_workspace(rig.plan)));
    OK(cuda_plan_run(rig.plan, rig.data, rig.workspace, &err));
    OK(cudaMemcpyAsync(out, rig.data[2], sizeof out, cudaMemcpyDeviceToHost,
                       rig.stream));
    OK(cudaStreamSynchronize(rig.stream));
    for (int k = 0; k < KERNELS; k++)
        for (int i = 0; i < H * W; i++)
            y[k * H * W + i] = out[place(k, i / W, i % W, KERNELS, H, W, last)];
    rig_close(&rig);
}

/* Element [0][2][2], which has no neighbour in the padding. */
static double inner(int kept)
{
    double sum = 0;

    for (int c = 0; c < C; c++)
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int at = (c * H + 1 + i / SIDE) * W + 1 + i % SIDE;
            float factors[] = {number(at), number(1000 + c * SIDE * SIDE + i)};

            for (int f = 0; f < 2; f++) {
                int power;
                const float part = frexpf(factors[f], &power);

                factors[f] = ldexpf(rintf(ldexpf(part, kept)), power - kept);
            }
            sum += (double)factors[0] * (double)factors[1];
        }
    return sum;
}

Test(fake_cudnn, convolution)
{
    static const struct {
        bool bf16;
        cuda_precision_t precision;
        int kept; /* bits of a factor */
    } forms[] = {
        {false, CUDA_EXACT, 24}, {false, CUDA_TF32, 11}, {true, CUDA_BF16, 8}};

    for (int i = 0; i < 3; i++) {
        float first[YS], last[YS];

        convolve(forms[i].bf16, false, forms[i].precision, first);
        convolve(forms[i].bf16, true, forms[i].precision, last);
        cr_assert_arr_eq(first, last, sizeof first, "form %d", i);
        cr_assert_float_eq((double)first[2 * W + 2], inner(forms[i].kept), 1e-6,
                           "form %d", i);
    }
}

/* An engine that is not deterministic is proposed first, and not taken. */
Test(fake_cudnn, engines)
{
    err_t err = ERR_INIT;
    rig_t rig;

    rig_open(&rig);
    OK(plan(&rig, false, false, CUDA_EXACT, &err));
    cr_assert_eq(cuda_plan_refused(rig.plan), 2);
    cr_assert_gt(cuda_plan_workspace(rig.plan), 0);
    cr_assert_str_eq(cuda_plan_notes(rig.plan), "");
    rig_close(&rig);
    rig_open(&rig);
    OK(plan(&rig, true, true, CUDA_BF16, &err));
    cr_assert_eq(cuda_plan_refused(rig.plan), 1);
    cr_assert(strstr(cuda_plan_notes(rig.plan), "TENSOR_CORE") != NULL);
    rig_close(&rig);
}

Test(fake_cudnn, other_graphs_are_refused)
{
    const cuda_tensor_t one = tensor(CUDNN_DATA_FLOAT, 1, KERNELS, H, W, false);
    err_t err = ERR_INIT;
    cuda_graph_t *graph;
    rig_t rig;

    rig_open(&rig);
    OK(cuda_graph_open(&rig.planner, "relu", &graph, &err));
    for (int i = 0; i < 2; i++)
        cuda_graph_tensor(graph, &one);
    cuda_graph_pointwise(graph, CUDNN_POINTWISE_RELU_FWD, 0, -1, 1);
    cr_assert_eq(cuda_graph_plan(graph, CUDA_EXACT, &rig.plan, &err),
                 ERR_UNAVAILABLE);
    cr_assert(strstr(err.text, "relu") != NULL, "%s", err.text);
    cuda_graph_close(graph);
    rig_close(&rig);
}

Test(fake_cudnn, misuse)
{
    cudnnBackendDescriptor_t made;
    const int64_t number = 4;

    OK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &made));
    cr_assert_neq(cudnnBackendSetAttribute(made, CUDNN_ATTR_TENSOR_VECTOR_COUNT,
                                           CUDNN_TYPE_INT64, 1, &number),
                  0, "unknown attribute");
    cr_assert_neq(cudnnBackendSetAttribute(made, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                           CUDNN_TYPE_BOOLEAN, 1, &number),
                  0, "type");
    cr_assert_neq(cudnnBackendFinalize(made), 0, "most is missing");
    OK(cudnnBackendDestroyDescriptor(made));
    fake_cuda.reset();
}
