/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode perf: forward and backward of each op on cpu, compared with the
 * machine's limits, which the same threads measure in the same run: a product
 * of large matrices (GFLOP/s) and a sum of large vectors (GB/s).
 *
 *     perf_op [THREADS] [PART OF A CASE'S NAME] [bf16]
 *
 * Times are the best of many repetitions. GB/s counts every tensor of the call
 * once: inputs, parameters, outputs, and in backward their gradients. The
 * limit of a time is max(operations / peak, bytes / bandwidth), and the column
 * "of it" is limit / time; it exceeds 100 % for tensors that stay in a cache.
 * This is not a test: it asserts nothing about time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cmd/bench_peak.h"
#include "op/op_ops.h"
#include "op_rig.h"

#define TURNS 50

static double best_of(op_rig_t *rig, void (*call)(op_rig_t *rig))
{
    double best = 1e30;

    for (int i = 0; i < TURNS; i++) {
        double begin = clock_now(), took;

        call(rig);
        took = clock_now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

/* Bytes of all inputs. */
static double bytes_in(const op_rig_t *rig)
{
    double bytes = (double)rig->op->config.in.bytes;

    for (int k = 0; k < rig->config.others; k++)
        bytes += (double)rig->op->config.other[k].bytes;
    return bytes;
}

static double bytes_params(const op_rig_t *rig)
{
    double bytes = 0;

    for (int i = 0; i < rig->param_count; i++)
        bytes += (double)rig->params[i].bytes;
    return bytes;
}

/* For each product of forward, backward has two. */
static double backward_flops(const op_rig_t *rig)
{
    switch (rig->config.kind) {
    case OP_LINEAR:
    case OP_CONV2D:
    case OP_CONV_TRANSPOSE:
        return (rig->config.need_dx ? 2 : 1) * op_flops(rig->op);
    case OP_LSTM:
    case OP_GRU:
        return 2 * op_flops(rig->op);
    case OP_ATTENTION: /* recomputes p; then dp, dq, dk, dv */
        return 2.5 * op_flops(rig->op);
    default:
        return op_flops(rig->op);
    }
}

static void print_part(double seconds, double flops, double bytes,
                       const bench_peak_t *peak)
{
    double by_flops = flops / peak->flops_s, by_bytes = bytes / peak->bytes_s;
    double limit = by_flops > by_bytes ? by_flops : by_bytes;

    printf(" %9.1f %7.1f %7.1f %4.0f %%", seconds * 1e6, flops / seconds / 1e9,
           bytes / seconds / 1e9, 100 * limit / seconds);
}

static void print_case(const op_case_t *row, int threads, bool bf16,
                       const bench_peak_t *peak)
{
    double forward, backward, in, out, params;
    op_case_t test = *row;
    op_rig_t rig;

    test.config.compute_type = bf16 ? OP_BFLOAT16 : OP_FLOAT32;
    op_rig_open(&rig, &test, "cpu", OP_FLOAT32, threads);
    in = bytes_in(&rig);
    params = bytes_params(&rig);
    out = (double)op_out(rig.op)->bytes;
    /* An embedding reads only the rows of its tokens. */
    forward =
        rig.config.kind == OP_EMBEDDING ? in + 2 * out : in + params + out;
    backward = out + in + 2 * params + (rig.config.need_dx ? in : 0);
    if (rig.config.kind == OP_EMBEDDING)
        /* write zeros, then add the gradients */
        backward = params + 2 * out + in;
    if (!op_reads_x(rig.op))
        backward -= in;
    printf("%-33s", test.name);
    print_part(best_of(&rig, op_rig_forward), op_flops(rig.op), forward, peak);
    print_part(best_of(&rig, op_rig_backward), backward_flops(&rig), backward,
               peak);
    printf("\n");
    op_rig_close(&rig);
}

static err_code_t peak_measure(int threads, bool bf16, bench_peak_t *out,
                               err_t *err)
{
    bench_peak_plan_t plan = {.threads = threads,
                              .compute_type = bf16 ? OP_BFLOAT16 : OP_FLOAT32};
    err_code_t rc = dev_open(DEV_HOST, 0, &plan.dev, err);

    if (rc == ERR_OK)
        rc = bench_peak_measure(&plan, out, err);
    dev_close(plan.dev);
    return rc;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *part = argc > 2 ? argv[2] : "";
    const bool bf16 = argc > 3 && strcmp(argv[3], "bf16") == 0;
    bench_peak_t peak;
    err_t err = ERR_INIT;

    if (threads < 1 || argc > (bf16 ? 4 : 3)) {
        fprintf(stderr, "perf_op [THREADS] [PART OF A CASE'S NAME] [bf16]\n");
        return 64;
    }
    if (peak_measure(threads, bf16, &peak, &err) != ERR_OK) {
        fprintf(stderr, "perf_op: %s\n", err.text);
        return 69;
    }
    printf("%d threads; at most %.0f GFLOP/s, %.1f GB/s\n\n", threads,
           peak.flops_s / 1e9, peak.bytes_s / 1e9);
    printf("%-33s %9s %7s %7s %6s %9s %7s %7s %6s\n", "case", "fwd us",
           "GFLOP/s", "GB/s", "of it", "bwd us", "GFLOP/s", "GB/s", "of it");
    for (int i = 0; i < op_perf_case_count; i++)
        if (strstr(op_perf_cases[i].name, part) != NULL &&
            (!bf16 || op_rig_rounds(op_perf_cases[i].config.kind)))
            print_case(&op_perf_cases[i], threads, bf16, &peak);
    return 0;
}
