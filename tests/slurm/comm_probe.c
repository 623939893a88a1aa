/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * comm_probe: the program that comm.t runs under srun. It sums arena buffers
 * of several sizes, with numbers whose sum depends on the order of summation,
 * and prints for each rank "RANK HOST BYTES ALGORITHM HASH". It checks that
 * the sums are close to the exact ones; comm.t checks that the hashes agree.
 * The exit status is the err_code_t.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "boot/boot.h"
#include "comm/comm.h"

#define MOST ((size_t)12 << 20) /* bytes */

static double value(int rank, size_t i)
{
    uint64_t mix = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                   (uint64_t)rank * UINT64_C(0xbf58476d1ce4e5b9);

    mix ^= mix >> 31;
    return ((double)(mix & 0xfffff) - 524288.0) / (double)(1 + (mix >> 61));
}

static err_code_t sum_check(const float *data, size_t count, int size,
                            err_t *err)
{
    for (size_t i = 0; i < count; i++) {
        double sum = 0, span = 0;

        for (int rank = 0; rank < size; rank++) {
            sum += (double)(float)value(rank, i);
            span += fabs(value(rank, i));
        }
        if (fabs((double)data[i] - sum) > 1e-6 * span)
            return err_set(err, ERR_DATA, "element %zu of %zu is %g, not %g", i,
                           count, (double)data[i], sum);
    }
    return ERR_OK;
}

static err_code_t sum_once(comm_group_t *group, float *data, size_t bytes,
                           err_t *err)
{
    int rank = comm_group_rank(group);
    size_t count = bytes / sizeof *data;
    err_code_t code;

    for (size_t i = 0; i < count; i++)
        data[i] = (float)value(rank, i);
    code = comm_allreduce(group, data, count, COMM_FLOAT32, COMM_SUM, err);
    if (code == ERR_OK)
        code = sum_check(data, count, comm_group_size(group), err);
    if (code == ERR_OK)
        printf("%d %s %zu %s %016" PRIx64 "\n", rank,
               comm_group_host(group, rank), bytes,
               comm_allreduce_name(group, data, count, COMM_FLOAT32),
               hash_bytes(data, bytes));
    return code;
}

static err_code_t probe_run(comm_group_t *group, err_t *err)
{
    static const size_t sizes[] = {4, 3000, 100004, 3000004, MOST};
    comm_arena_t *arena;
    err_code_t code = comm_arena_open(group, MOST, &arena, err);

    if (code != ERR_OK)
        return code;
    for (size_t i = 0; code == ERR_OK && i < sizeof sizes / sizeof *sizes; i++)
        code = sum_once(group, comm_arena_data(arena), sizes[i], err);
    comm_arena_close(arena);
    return code;
}

int main(void)
{
    boot_config_t boot_config = {.timeout = 60};
    comm_config_t config = {.backend = "ucx", .timeout = 30};
    comm_oob_t oob = {.exchange = boot_exchange_call};
    comm_group_t *group = NULL;
    boot_t *boot;
    err_t err = ERR_INIT;
    err_code_t code = boot_open(&boot_config, &boot, &err);

    if (code == ERR_OK) {
        oob.context = boot;
        oob.rank = boot_rank(boot);
        oob.size = boot_size(boot);
        code = comm_group_open(&config, &oob, &group, &err);
        boot_close(boot);
    }
    if (code == ERR_OK)
        code = probe_run(group, &err);
    comm_group_close(group);
    if (code != ERR_OK)
        fprintf(stderr, "comm_probe: %s\n", err.text);
    return (int)code;
}
