/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Gradients as 16-bit floats on the emulated device "cuda": the bits are those
 * of base/half.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "cuda/emu.h"
#include "op/op_half.h"

enum { COUNT = 3001 };

/* The memory of a call, which is copied to the device as a whole. All arrays
 * begin at multiples of 16 bytes, so the kernels can use packs. */
typedef struct memory {
    float grads[COUNT + 7], residual[COUNT + 7];
    uint16_t sent[COUNT + 7];
} memory_t;

/* Floats of all magnitudes, and numbers that round in a special way: ties, the
 * limits of the formats, subnormal numbers, infinities and a NaN. */
static void memory_fill(memory_t *memory)
{
    static const float special[] = {
        0,          -0.0f,       1 + 0x1p-11f, 1 + 0x3p-11f, 1 + 0x1p-8f,
        65504,      65519,       65520,        -65536,       0x1p-24f,
        0x1p-25f,   0x3p-25f,    0x1p-14f,     0x1.ffcp-15f, 0x1p-140f,
        0x1.fep127, -0x1.fep127, INFINITY,     -INFINITY,    NAN};

    memset(memory, 0, sizeof *memory);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t bits = i * 2654435761U % 0x7f000000U;

        memcpy(&memory->grads[i], &bits, sizeof bits);
        memory->grads[i] *= i % 2 == 0 ? 1 : -1;
        memory->residual[i] = memory->grads[i] * (float)(i % 7) * 0x1p-10f;
    }
    memcpy(memory->grads + COUNT / 2, special, sizeof special);
    memset(memory->residual + COUNT / 2, 0, sizeof special);
}

/* The elements from [first] on of the memory at [at]. */
static op_half_t half_at(memory_t *at, bool bf16, bool feedback, size_t first)
{
    return (op_half_t){.bf16 = bf16,
                       .count = COUNT - first,
                       .grads = at->grads + first,
                       .sent = at->sent + first,
                       .residual = feedback ? at->residual + first : NULL,
                       .largest = bf16 ? 0x1p126f : 32000};
}

/* Round, then widen, on the host. */
static void on_host(const op_half_t *half)
{
    for (size_t i = 0; i < half->count; i++) {
        const float kept = half->residual != NULL ? half->residual[i] : 0;
        const float exact =
            half->residual != NULL ? half->grads[i] + kept : half->grads[i];
        float finite = exact, wide;

        if (isfinite(exact))
            finite = fminf(fmaxf(exact, -half->largest), half->largest);
        if (half->bf16)
            half_round_bf16(&half->sent[i], &finite, 1);
        else
            half_round_fp16(&half->sent[i], &finite, 1);
        if (half->bf16)
            half_widen_bf16(&wide, &half->sent[i], 1);
        else
            half_widen_fp16(&wide, &half->sent[i], 1);
        if (half->residual != NULL)
            half->residual[i] = exact - wide;
        half->grads[i] = wide;
    }
}

/* Round, then widen, a copy of [memory] on the emulated GPU. [out] gets the
 * result. */
static void on_gpu(const memory_t *memory, bool bf16, bool feedback,
                   size_t first, memory_t *out)
{
    const op_backend_ops_t *backend;
    dev_device_t *dev;
    dev_stream_t *stream;
    op_half_t half;
    void *block;
    err_t err = ERR_INIT;

    cr_assert_eq(op_backend_get("cuda", &backend, &err), ERR_OK, "%s",
                 err.text);
    cr_assert(op_half_offered(backend));
    cr_assert_eq(dev_open("cuda", 0, &dev, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(dev_stream_open(dev, DEV_STREAM_COMPUTE, &stream, &err),
                 ERR_OK);
    cr_assert_eq(dev_alloc(dev, sizeof *memory, "a test", &block, &err),
                 ERR_OK);
    cr_assert_eq(
        dev_copy(stream, block, memory, sizeof *memory, DEV_HOST_TO_DEV, &err),
        ERR_OK);
    half = half_at(block, bf16, feedback, first);
    cr_assert_eq(op_half_round(backend, &half, stream, &err), ERR_OK);
    cr_assert_eq(op_half_widen(backend, &half, stream, &err), ERR_OK);
    cr_assert_eq(
        dev_copy(stream, out, block, sizeof *out, DEV_DEV_TO_HOST, &err),
        ERR_OK);
    cr_assert_eq(dev_stream_wait(stream, &err), ERR_OK, "%s", err.text);
    dev_free(dev, block);
    dev_stream_close(stream);
    dev_close(dev);
}

/* NaNs need not have the same payload. */
static void floats_expect(const float *gpu, const float *host, const char *what)
{
    for (int i = 0; i < COUNT; i++)
        cr_assert((isnan(gpu[i]) && isnan(host[i])) ||
                      memcmp(&gpu[i], &host[i], sizeof *gpu) == 0,
                  "%s %d: %a, on the host %a", what, i, (double)gpu[i],
                  (double)host[i]);
}

Test(op_half_cuda, bits_are_those_of_the_host)
{
    memory_t *host = malloc(sizeof *host), *gpu = malloc(sizeof *gpu);

    emu_open();
    cr_assert(host != NULL && gpu != NULL);
    for (int k = 0; k < 8; k++) {
        const size_t first = k / 4 * 3; /* not aligned: no packs */
        op_half_t half;

        memory_fill(host);
        on_gpu(host, k % 2, k / 2 % 2, first, gpu);
        half = half_at(host, k % 2, k / 2 % 2, first);
        on_host(&half);
        floats_expect(gpu->grads, host->grads, "gradient");
        floats_expect(gpu->residual, host->residual, "residual");
    }
    free(gpu);
    free(host);
}
