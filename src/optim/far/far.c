/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The place "far": the arithmetic of the place "cpu" on the test device
 * (dev/dev_far.h). A call only enqueues, so the work is done when the host
 * waits. For test programs only.
 */
#include "base/mem.h"
#include "dev/dev_far.h"
#include "optim/place_ops.h"

typedef struct far_place {
    optim_place_t base;
    optim_place_t *cpu;
} far_place_t;

static err_code_t far_open(dev_device_t *dev, size_t elems, optim_place_t **out,
                           err_t *err)
{
    far_place_t *far = NULL;
    err_code_t rc = mem_new(far_place_t, 1, "the optimizer", &far, err);

    if (rc != ERR_OK)
        return rc;
    rc = optim_cpu_place.open(dev, elems, &far->cpu, err);
    if (rc == ERR_OK)
        *out = &far->base;
    else
        mem_free(far);
    return rc;
}

static void far_close(optim_place_t *place)
{
    optim_cpu_place.close(((far_place_t *)place)->cpu);
    mem_free(place);
}

static void far_team(optim_place_t *place, int threads)
{
    optim_cpu_place.team(((far_place_t *)place)->cpu, threads);
}

static optim_place_t *cpu_of(optim_place_t *place)
{
    return ((far_place_t *)place)->cpu;
}

/* ---- norms --------------------------------------------------------------- */

/* A call of norm, norm_part, norm_whole, norm_flag or scale. */
typedef struct far_numbers {
    optim_place_t *cpu;
    const float *grads;
    float *data;
    view_range_t range;
    double *blocks;
    const double *sums;
    size_t count;
    double *norm;
    float factor;
} far_numbers_t;

static err_code_t run_norm(void *arg, err_t *err)
{
    const far_numbers_t *call = arg;

    return optim_cpu_place.norm(call->cpu, call->grads, call->count, call->norm,
                                NULL, err);
}

static err_code_t run_norm_part(void *arg, err_t *err)
{
    const far_numbers_t *call = arg;

    return optim_cpu_place.norm_part(call->cpu, call->grads, call->range,
                                     call->blocks, NULL, err);
}

static err_code_t run_norm_whole(void *arg, err_t *err)
{
    const far_numbers_t *call = arg;

    return optim_cpu_place.norm_whole(call->cpu, call->sums, call->count,
                                      call->norm, NULL, err);
}

static err_code_t run_norm_flag(void *arg, err_t *err)
{
    const far_numbers_t *call = arg;

    return optim_cpu_place.norm_flag(call->cpu, call->sums, call->norm, NULL,
                                     err);
}

static err_code_t run_scale(void *arg, err_t *err)
{
    const far_numbers_t *call = arg;

    return optim_cpu_place.scale(call->cpu, call->data, call->count,
                                 call->factor, NULL, err);
}

static err_code_t far_norm(optim_place_t *place, const float *grads,
                           size_t elems, double *norm, dev_stream_t *stream,
                           err_t *err)
{
    const far_numbers_t call = {
        .cpu = cpu_of(place), .grads = grads, .count = elems, .norm = norm};

    return dev_far_enqueue(stream, run_norm, &call, sizeof call, err);
}

static err_code_t far_norm_part(optim_place_t *place, const float *grads,
                                view_range_t range, double *blocks,
                                dev_stream_t *stream, err_t *err)
{
    const far_numbers_t call = {
        .cpu = cpu_of(place), .grads = grads, .range = range, .blocks = blocks};

    return dev_far_enqueue(stream, run_norm_part, &call, sizeof call, err);
}

static err_code_t far_norm_whole(optim_place_t *place, const double *blocks,
                                 size_t count, double *norm,
                                 dev_stream_t *stream, err_t *err)
{
    const far_numbers_t call = {
        .cpu = cpu_of(place), .sums = blocks, .count = count, .norm = norm};

    return dev_far_enqueue(stream, run_norm_whole, &call, sizeof call, err);
}

static err_code_t far_norm_flag(optim_place_t *place, const double *norm,
                                double *flag, dev_stream_t *stream, err_t *err)
{
    const far_numbers_t call = {
        .cpu = cpu_of(place), .sums = norm, .norm = flag};

    return dev_far_enqueue(stream, run_norm_flag, &call, sizeof call, err);
}

static err_code_t far_scale(optim_place_t *place, float *data, size_t elems,
                            float factor, dev_stream_t *stream, err_t *err)
{
    const far_numbers_t call = {
        .cpu = cpu_of(place), .data = data, .count = elems, .factor = factor};

    return dev_far_enqueue(stream, run_scale, &call, sizeof call, err);
}

/* ---- updates ------------------------------------------------------------- */

typedef struct far_judge {
    optim_place_t *cpu;
    optim_question_t question;
    optim_verdict_t *verdict;
} far_judge_t;

static err_code_t run_judge(void *arg, err_t *err)
{
    const far_judge_t *call = arg;

    return optim_cpu_place.judge(call->cpu, &call->question, call->verdict,
                                 NULL, err);
}

static err_code_t far_judge(optim_place_t *place,
                            const optim_question_t *question,
                            optim_verdict_t *verdict, dev_stream_t *stream,
                            err_t *err)
{
    const far_judge_t call = {cpu_of(place), *question, verdict};

    return dev_far_enqueue(stream, run_judge, &call, sizeof call, err);
}

typedef struct far_update {
    optim_place_t *cpu;
    optim_pass_t pass;
    int part;
} far_update_t;

static err_code_t run_measure(void *arg, err_t *err)
{
    const far_update_t *call = arg;

    return optim_cpu_place.measure(call->cpu, &call->pass, NULL, err);
}

static err_code_t run_update(void *arg, err_t *err)
{
    const far_update_t *call = arg;

    return optim_cpu_place.update(call->cpu, &call->pass, call->part, NULL,
                                  err);
}

static err_code_t far_measure(optim_place_t *place, const optim_pass_t *pass,
                              dev_stream_t *stream, err_t *err)
{
    const far_update_t call = {.cpu = cpu_of(place), .pass = *pass};

    return dev_far_enqueue(stream, run_measure, &call, sizeof call, err);
}

static err_code_t far_update(optim_place_t *place, const optim_pass_t *pass,
                             int part, dev_stream_t *stream, err_t *err)
{
    const far_update_t call = {
        .cpu = cpu_of(place), .pass = *pass, .part = part};

    return dev_far_enqueue(stream, run_update, &call, sizeof call, err);
}

static const optim_place_ops_t optim_far_place = {
    .name = "far",
    .open = far_open,
    .close = far_close,
    .team = far_team,
    .norm = far_norm,
    .norm_part = far_norm_part,
    .norm_whole = far_norm_whole,
    .norm_flag = far_norm_flag,
    .scale = far_scale,
    .judge = far_judge,
    .measure = far_measure,
    .update = far_update,
};

/* In a program that links this file, this list replaces the one in registry.c.
 */
const optim_place_ops_t *const optim_registry[] = {
    &optim_cpu_place,
    &optim_far_place,
    NULL,
};
