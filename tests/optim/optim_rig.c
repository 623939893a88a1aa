/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "optim/optim_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/tree.h"

static struct {
    dev_device_t *dev;
    dev_stream_t *stream;
} host;

static void host_open(void)
{
    err_t err = ERR_INIT;

    if (host.dev != NULL)
        return;
    cr_assert_eq(dev_open("cpu", 0, &host.dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(
        dev_stream_open(host.dev, DEV_STREAM_COMPUTE, &host.stream, &err),
        ERR_OK, "%s", err.text);
}

dev_device_t *optim_rig_dev(void)
{
    host_open();
    return host.dev;
}

dev_stream_t *optim_rig_stream(void)
{
    host_open();
    return host.stream;
}

#define EXPECT_OK(call)                                          \
    do {                                                         \
        err_t err = ERR_INIT;                                    \
                                                                 \
        cr_assert_eq((call), ERR_OK, "%s: %s", #call, err.text); \
    } while (0)

void optim_rig_start(optim_t *optim, const float *params)
{
    EXPECT_OK(optim_start(optim, params, host.stream, &err));
}

void optim_rig_mask(const optim_t *optim, float *grads)
{
    EXPECT_OK(optim_mask(optim, grads, host.stream, &err));
}

void optim_rig_store(const optim_t *optim, float *params)
{
    EXPECT_OK(optim_average_store(optim, params, host.stream, &err));
}

void optim_rig_step(optim_t *optim, float *params, const float *grads,
                    double lr, int64_t number)
{
    optim_in_t *in = malloc(optim_in_bytes(optim));
    /* Without clipping, gradients are only read. */
    const optim_args_t args = {
        .params = params, .grads = (float *)(uintptr_t)grads, .in = in};

    optim_in_fill(optim, lr, number, in);
    EXPECT_OK(optim_step(optim, &args, host.stream, &err));
    free(in);
}

double optim_rig_norm(const float *grads, size_t elems, int threads)
{
    optim_place_t *place = NULL;
    double norm;

    EXPECT_OK(optim_place_open(optim_rig_dev(), elems, &place, &err));
    optim_place_team(place, threads);
    EXPECT_OK(optim_norm(place, grads, elems, &norm, host.stream, &err));
    optim_place_close(place);
    return norm;
}

optim_verdict_t optim_rig_verdict(double norm, double limit)
{
    const optim_case_t about = {.counts = 1};
    const double failed = 0;
    const optim_question_t question = {
        .about = &about, .failed = &failed, .limit = limit};
    optim_verdict_t verdict = {.norm = norm};
    optim_place_t *place = NULL;

    EXPECT_OK(optim_place_open(optim_rig_dev(), 1, &place, &err));
    EXPECT_OK(optim_judge(place, &question, &verdict, host.stream, &err));
    optim_place_close(place);
    return verdict;
}

/* The host's place clips gradients in place, so a step of any optimizer will
 * do. */
double optim_rig_clip(float *grads, size_t elems, double limit, double most,
                      int threads)
{
    const optim_view_t view = {.name = "w", .count = elems, .ndim = 1};
    const optim_layout_t layout = {.dev = optim_rig_dev(),
                                   .views = &view,
                                   .view_count = 1,
                                   .elems = elems};
    const double norm = optim_rig_norm(grads, elems, threads);
    const optim_verdict_t verdict = optim_rig_verdict(norm, limit);
    const tree_place_t place = {.file = ""};
    tree_t *sgd = tree_new(TREE_SCALAR, "sgd", place);
    float *params = calloc(elems + 1, sizeof *params);
    optim_t *optim = NULL;
    optim_in_t *in;

    EXPECT_OK(optim_open(sgd, NULL, &layout, &optim, &err));
    optim_clip_value(optim, most);
    optim_place_team(optim_place(optim), threads);
    in = malloc(optim_in_bytes(optim));
    optim_in_fill(optim, 0.5, 1, in);
    EXPECT_OK(optim_step(
        optim,
        &(optim_args_t){
            .params = params, .grads = grads, .in = in, .verdict = &verdict},
        host.stream, &err));
    for (size_t i = 0; i < elems && verdict.updates; i++)
        cr_assert(params[i] == -0.5f * grads[i], "element %zu", i);
    free(in);
    optim_close(optim);
    free(params);
    tree_free(sgd);
    return norm;
}
