/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Running statistics and hashes on the emulated device "cuda": as on the host,
 * in whatever order the threads of a kernel run. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/emu.h"
#include "op/op_hash.h"
#include "op/op_ops.h"
#include "op_rig_dev.h"

#define SCHEDULES 5 /* SIMT_SCHEDULES, whose header needs CUDA's */

enum { CHANNELS = 300, WORDS = 5000 };

/* The memory of a call, which is copied to the device as a whole. */
typedef struct memory {
    op_step_t step;
    int32_t sound;
    double sums[2 * CHANNELS];
    float mean[CHANNELS], var[CHANNELS];
    uint64_t hash;
    uint32_t words[WORDS];
} memory_t;

static void memory_fill(memory_t *memory)
{
    memset(memory, 0, sizeof *memory);
    memory->step.samples = 6;
    memory->sound = 1;
    for (int c = 0; c < CHANNELS; c++) {
        memory->mean[c] = (float)c;
        memory->var[c] = 1;
        memory->sums[c] = 12.0 * c;
        memory->sums[CHANNELS + c] = 25.0 * c * c + 7;
    }
    for (uint32_t i = 0; i < WORDS; i++)
        memory->words[i] = i * 2654435761U;
}

/* Fold the statistics and hash the words, where [backend] has [memory]. */
static void calls(const op_backend_ops_t *backend, void *memory,
                  dev_stream_t *stream, const void *context)
{
    memory_t *at = memory;
    const op_fold_t fold = {.channels = CHANNELS,
                            .space = 2,
                            .momentum = 0.25,
                            .lone = 2,
                            .sums = at->sums,
                            .step = &at->step,
                            .sound = &at->sound,
                            .mean = at->mean,
                            .var = at->var};
    err_t err = ERR_INIT;

    (void)context;
    cr_assert_eq(op_fold(backend, &fold, stream, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(op_hash(backend, &at->hash, at->words, WORDS, stream, &err),
                 ERR_OK, "%s", err.text);
}

/* [gpu] gets what [host] becomes there. */
static void check(memory_t *host, memory_t *gpu, bool folded)
{
    *gpu = *host;
    op_rig_cuda_call(gpu, sizeof *gpu, calls, NULL);
    calls(&op_cpu_backend, host, NULL, NULL);
    cr_expect_eq(gpu->hash, host->hash);
    for (int c = 0; c < CHANNELS; c++) {
        cr_assert_float_eq(gpu->mean[c], host->mean[c],
                           1e-6 * (1 + (double)host->mean[c]), "mean %d", c);
        cr_assert_float_eq(gpu->var[c], host->var[c],
                           1e-6 * (1 + (double)host->var[c]), "variance %d", c);
    }
    cr_expect_eq(gpu->var[7] != 1, folded);
}

Test(op_step_cuda, as_on_the_host)
{
    const fake_cuda_t *fake = emu_open();
    memory_t *host = malloc(sizeof *host), *gpu = malloc(sizeof *gpu);

    cr_assert(host != NULL && gpu != NULL);
    for (int schedule = 0; schedule < SCHEDULES; schedule++) {
        emu_set(fake, schedule, schedule);
        memory_fill(host);
        check(host, gpu, true);
    }
    free(gpu);
    free(host);
}

Test(op_step_cuda, no_fold_of_a_step_that_does_not_count)
{
    memory_t *host = malloc(sizeof *host), *gpu = malloc(sizeof *gpu);

    cr_assert(host != NULL && gpu != NULL);
    emu_open();
    for (int cause = 0; cause < 3; cause++) {
        memory_fill(host);
        host->sound = cause != 0;
        host->step.samples = cause == 1 ? 0 : 6;
        host->step.lone = cause == 2 ? 2 : 0;
        check(host, gpu, false);
    }
    free(gpu);
    free(host);
}
