/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Mode perf: microseconds (the best of many turns) of forward and backward on
 * cpu, and the rate of the forward. perf_op [THREADS] [PART OF A CASE'S NAME].
 * Not a test: it asserts nothing about time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "op_rig.h"

#define TURNS 50

static double best_us(op_rig_t *rig, void (*call)(op_rig_t *rig))
{
    double best = 1e30;

    for (int i = 0; i < TURNS; i++) {
        double begin = clock_now(), us;

        call(rig);
        us = (clock_now() - begin) * 1e6;
        best = us < best ? us : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *part = argc > 2 ? argv[2] : "";

    printf("%-32s %12s %12s %10s\n", "case", "forward us", "backward us",
           "GFLOP/s");
    for (int i = 0; i < op_perf_case_count; i++) {
        const op_case_t *test = &op_perf_cases[i];
        double forward, backward;
        op_rig_t rig;

        if (strstr(test->name, part) == NULL)
            continue;
        op_rig_open(&rig, test, "cpu", OP_FLOAT32, threads);
        forward = best_us(&rig, op_rig_forward);
        backward = best_us(&rig, op_rig_backward);
        printf("%-32s %12.1f %12.1f %10.1f\n", test->name, forward, backward,
               op_flops(rig.op) / forward / 1e3);
        op_rig_close(&rig);
    }
    return 0;
}
