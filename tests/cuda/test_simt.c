/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The emulator: kernels have the same bits under all schedules, a fault in one
 * shows, and shared memory holds NaN until it is written.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/simt_kernels.h"
#include "cuda/simt_run.h"

#define ROWS 5
#define COLUMNS 203

#define DIVIDENDS 256

static void fill(float *x, int count)
{
    for (int i = 0; i < count; i++)
        x[i] = (float)(i * 7919 % 1009) / 500 - 0.3f;
}

/* y of the kernel under [schedule]. */
static void norm(float *y, simt_fault_t fault, simt_schedule_t schedule)
{
    float x[ROWS * COLUMNS];

    fill(x, ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        y[i] = NAN;
    simt_now = schedule;
    simt_kernel_norm(x, y, ROWS, COLUMNS, fault, NULL);
}

Test(simt, right)
{
    static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], other[ROWS * COLUMNS];

    fill(x, ROWS * COLUMNS);
    norm(y, SIMT_RIGHT, SIMT_FORWARDS);
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;

        for (int c = 0; c < COLUMNS; c++)
            sum += (double)x[r * COLUMNS + c];
        for (int c = 0; c < COLUMNS; c++)
            cr_assert_float_eq(y[r * COLUMNS + c],
                               x[r * COLUMNS + c] / (float)sum, 1e-6);
    }
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        norm(other, SIMT_RIGHT, (simt_schedule_t)s);
        cr_assert_arr_eq(other, y, sizeof y, "schedule %d", s);
    }
}

/* Each warp reads the sums of the others before or after they are written: some
 * schedules give NaN, and no two orders of warps agree. */
Test(simt, missing_barrier)
{
    static float right[ROWS * COLUMNS], y[ROWS * COLUMNS];
    int wrong = 0;

    norm(right, SIMT_RIGHT, SIMT_FORWARDS);
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        norm(y, SIMT_NO_BARRIER, (simt_schedule_t)s);
        wrong += memcmp(y, right, sizeof y) != 0;
    }
    cr_assert_geq(wrong, 2);
    norm(y, SIMT_NO_BARRIER, SIMT_WARPS_FORWARDS);
    cr_assert_neq(memcmp(y, right, sizeof y), 0);
}

Test(simt, transpose)
{
    enum { R = 45, C = 70 };
    static float x[R * C], y[R * C];

    fill(x, R * C);
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        memset(y, 0xff, sizeof y);
        simt_now = (simt_schedule_t)s;
        simt_kernel_transpose(x, y, R, C, NULL);
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++)
                cr_assert_eq(y[c * R + r], x[r * C + c]);
    }
}

Test(simt, warp)
{
    float x[32], y[4][32], sum = 0, halves[2] = {0};
    int above = 0;

    for (int i = 0; i < 32; i++) {
        x[i] = (float)((i * 11) % 7) - 2;
        halves[i / 16] += x[i];
        above += x[i] > 0;
    }
    for (int s = 0; s < SIMT_SCHEDULES; s++, sum = 0) {
        simt_now = (simt_schedule_t)s;
        simt_kernel_warp(x, y[0], NULL);
        for (int i = 0; i < 32; i++) {
            sum += x[i];
            cr_assert_eq(y[0][i], sum, "schedule %d, lane %d", s, i);
            cr_assert_eq(y[1][i], halves[i / 16], "schedule %d", s);
            cr_assert_eq(y[2][i], x[i] > 0 ? 1 : 0, "schedule %d", s);
            cr_assert_eq(y[3][i], above, "schedule %d", s);
        }
    }
}

/* The second block must not see what the first one wrote. */
Test(simt, shared_memory_is_poisoned)
{
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        float y[] = {0, 0};

        simt_now = (simt_schedule_t)s;
        simt_kernel_unwritten(y, NULL);
        cr_assert(isnan(y[0]) && isnan(y[1]), "schedule %d: %g %g", s,
                  (double)y[0], (double)y[1]);
    }
}

Test(simt, atomics)
{
    enum { COUNT = 1000 };
    static uint16_t x[COUNT];
    unsigned bins[16], want[16] = {0};

    for (int i = 0; i < COUNT; i++) {
        const float value = (float)(i % 13);
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16); /* these fit into bfloat16 */
        want[i % 13]++;
    }
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        memset(bins, 0, sizeof bins);
        simt_now = (simt_schedule_t)s;
        simt_kernel_count(x, bins, COUNT, NULL);
        cr_assert_arr_eq(bins, want, sizeof want, "schedule %d", s);
    }
}

/* ---- faults that end the process ----------------------------------------- */

/* What a process with this fault prints before it ends; how it ends. */
static int last_words(simt_fault_t fault, simt_schedule_t schedule, char *text,
                      size_t bytes)
{
    int ends[2], status;
    size_t at = 0;
    ssize_t got;
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        float *y = malloc(ROWS * COLUMNS * sizeof *y);

        dup2(ends[1], STDERR_FILENO);
        norm(y, fault, schedule);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + at, bytes - 1 - at)) > 0)
        at += (size_t)got;
    text[at] = '\0';
    close(ends[0]);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void check_fault(simt_fault_t fault, const char *const words[3])
{
    for (int s = 0; s < SIMT_SCHEDULES; s++) {
        char text[4096];
        const int status =
            last_words(fault, (simt_schedule_t)s, text, sizeof text);

        cr_assert(WIFSIGNALED(status) || WEXITSTATUS(status) != 0,
                  "schedule %d went on", s);
        cr_assert(strstr(text, "kernel norm") != NULL, "%s", text);
        for (int i = 0; i < 3; i++)
            cr_assert(strstr(text, words[i]) != NULL, "schedule %d, %s: %s", s,
                      words[i], text);
    }
}

Test(simt, different_barriers)
{
    check_fault(SIMT_TWO_BARRIERS,
                (const char *const[]){"different barriers", "threads 0 to 63",
                                      "threads 64 to 127"});
}

Test(simt, divergent_shuffle)
{
    check_fault(SIMT_HALF_SHUFFLE,
                (const char *const[]){"not all at the same shuffle", "shfl_xor",
                                      "simt_kernels.cu"});
}

Test(simt, early_return)
{
    check_fault(SIMT_EARLY_RETURN,
                (const char *const[]){"threads 5 to 5 are at the kernel's end",
                                      "shfl_xor", "simt_kernels.cu"});
}

Test(simt, part_of_a_mask)
{
    check_fault(SIMT_PART_MASK,
                (const char *const[]){"0000ffff", "shfl_xor", "ffffffff"});
}

/* Numbers around multiples of [by], from 0 to the largest one. */
static void dividends(int64_t by, int64_t a[DIVIDENDS])
{
    const uint64_t most = INT64_MAX / (uint64_t)by;

    for (int i = 0; i < DIVIDENDS; i++) {
        const uint64_t times =
            i < 64 ? most >> i : most / 192 * (uint64_t)(i - 64);
        const uint64_t at = times * (uint64_t)by + (uint64_t)(i % 3);

        a[i] = (int64_t)(at > 0 && at - 1 <= INT64_MAX ? at - 1 : times);
    }
    a[0] = INT64_MAX;
}

static void check_division(int64_t by)
{
    static int64_t a[DIVIDENDS], whole[DIVIDENDS], rest[DIVIDENDS];

    dividends(by, a);
    simt_kernel_divide(a, by, whole, rest, DIVIDENDS, NULL);
    for (int i = 0; i < DIVIDENDS; i++) {
        cr_assert_eq(whole[i], a[i] / by, "%lld / %lld", (long long)a[i],
                     (long long)by);
        cr_assert_eq(rest[i], a[i] % by, "%lld %% %lld", (long long)a[i],
                     (long long)by);
    }
}

/* The kernels divide indices by a product (index.cuh). */
Test(simt, division)
{
    int64_t by = 1;

    for (int i = 1; i < 1000; i++)
        check_division(i);
    for (int bit = 10; bit < 63; bit++)
        for (int64_t k = -2; k <= 2; k++)
            check_division(((int64_t)1 << bit) + k);
    for (int i = 0; i < 3; i++)
        check_division(INT64_MAX - i);
    for (int i = 0; i < 1000; i++) {
        by = (int64_t)(((uint64_t)by * 6364136223846793005u +
                        1442695040888963407u) >>
                       1);
        check_division((by >> i % 62) + 1);
    }
}

/* Caught by the address sanitizer, which names the kernel and its file. */
Test(simt, write_behind_a_tensor)
{
#ifdef __SANITIZE_ADDRESS__
    char text[65536];

    last_words(SIMT_BEHIND, SIMT_FORWARDS, text, sizeof text);
    cr_assert(strstr(text, "heap-buffer-overflow") != NULL, "%s", text);
    cr_assert(strstr(text, "WRITE of size 4") != NULL, "%s", text);
    cr_assert(strstr(text, "simt_kernels.cu") != NULL, "%s", text);
#else
    cr_skip_test("built without the address sanitizer");
#endif
}
