/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_peak.h"

#include "base/clock.h"
#include "base/mem.h"

#define SIDE 1024 /* rows and columns of the matrices: 4 MB each */
/* Elements of the vectors: 64 MB each, more than any cache. */
#define VECTOR ((int64_t)16 << 20)
#define SECONDS 0.4 /* duration of each of the two measurements */

/* An op that is measured, with its memory. */
typedef struct peak {
    const bench_peak_plan_t *plan;
    dev_stream_t *stream;
    op_t *op;
    float *block;
    op_args_t args;
} peak_t;

/* Set all numbers of the device's block to 1. */
static err_code_t ones_write(const peak_t *peak, size_t elems, err_t *err)
{
    const size_t bytes = elems * sizeof(float);
    void *block = NULL;
    float *ones;
    err_code_t rc = mem_alloc(bytes, "a measurement", &block, err);

    if (rc != ERR_OK)
        return rc;
    ones = block;
    for (size_t i = 0; i < elems; i++)
        ones[i] = 1.0f;
    rc = dev_copy(peak->stream, peak->block, ones, bytes, DEV_HOST_TO_DEV, err);
    if (rc == ERR_OK)
        rc = dev_stream_wait(peak->stream, err);
    mem_free(block);
    return rc;
}

static err_code_t peak_open(peak_t *peak, const op_config_t *config,
                            size_t elems, err_t *err)
{
    dev_device_t *dev = peak->plan->dev;
    const op_backend_ops_t *backend;
    void *block = NULL;
    err_code_t rc = op_backend_get(dev_name(dev), &backend, err);

    if (rc == ERR_OK)
        rc = dev_stream_open(dev, DEV_STREAM_COMPUTE, &peak->stream, err);
    if (rc == ERR_OK)
        rc = op_open(backend, dev, config, &peak->op, err);
    if (rc == ERR_OK)
        rc = dev_alloc(dev, elems * sizeof(float) + op_scratch_bytes(peak->op),
                       "a measurement", &block, err);
    peak->block = block;
    if (rc != ERR_OK)
        return rc;
    peak->args.scratch = peak->block + elems;
    peak->args.stream = peak->stream;
    return ones_write(peak, elems, err);
}

static void peak_close(peak_t *peak)
{
    op_close(peak->op);
    dev_free(peak->plan->dev, peak->block);
    dev_stream_close(peak->stream);
}

static err_code_t peak_run(peak_t *peak, double *seconds, err_t *err)
{
    const double end = clock_now() + SECONDS;
    double best = 1e30;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && (best == 1e30 || clock_now() < end)) {
        double begin = clock_now(), took;

        rc = op_forward(peak->op, &peak->args, err);
        if (rc == ERR_OK)
            rc = dev_stream_wait(peak->stream, err);
        took = clock_now() - begin;
        best = took < best ? took : best;
    }
    if (rc == ERR_OK)
        *seconds = best;
    return rc;
}

static err_code_t flops_measure(const bench_peak_plan_t *plan, double *flops_s,
                                err_t *err)
{
    const size_t square = (size_t)SIDE * SIDE;
    op_config_t config = {
        .kind = OP_LINEAR,
        .compute_type = plan->compute_type,
        .threads = plan->threads,
        .out = SIDE,
        .in = {.type = OP_FLOAT32, .ndim = 2, .dims = {SIDE, SIDE}}};
    peak_t peak = {.plan = plan};
    double seconds = 0;
    err_code_t rc = peak_open(&peak, &config, 3 * square, err);

    if (rc == ERR_OK) {
        peak.args.x = peak.block;
        peak.args.params[0] = peak.block + square;
        peak.args.y = peak.block + 2 * square;
        rc = peak_run(&peak, &seconds, err);
    }
    if (rc == ERR_OK)
        *flops_s = op_flops(peak.op) / seconds;
    peak_close(&peak);
    return rc;
}

static err_code_t bytes_measure(const bench_peak_plan_t *plan, double *bytes_s,
                                err_t *err)
{
    const op_desc_t vector = {
        .type = OP_FLOAT32, .ndim = 2, .dims = {1, VECTOR}};
    op_config_t config = {.kind = OP_ADD,
                          .threads = plan->threads,
                          .in = vector,
                          .others = 1,
                          .other = {vector}};
    peak_t peak = {.plan = plan};
    double seconds = 0;
    err_code_t rc = peak_open(&peak, &config, 3 * (size_t)VECTOR, err);

    if (rc == ERR_OK) {
        peak.args.x = peak.block;
        peak.args.other[0] = peak.block + VECTOR;
        peak.args.y = peak.block + 2 * VECTOR;
        rc = peak_run(&peak, &seconds, err);
    }
    if (rc == ERR_OK)
        *bytes_s = 3.0 * sizeof(float) * (double)VECTOR / seconds;
    peak_close(&peak);
    return rc;
}

err_code_t bench_peak_measure(const bench_peak_plan_t *plan, bench_peak_t *out,
                              err_t *err)
{
    bench_peak_t peak = {0};
    err_code_t rc = flops_measure(plan, &peak.flops_s, err);

    if (rc == ERR_OK)
        rc = bytes_measure(plan, &peak.bytes_s, err);
    if (rc == ERR_OK)
        *out = peak;
    return rc;
}
