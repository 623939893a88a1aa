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
#include "op_rig_dev.h"

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

/* The format of a test, and the first element that it uses. */
typedef struct kind {
    bool bf16, feedback;
    size_t first;
} kind_t;

/* The elements that the test uses, of the memory at [at]. */
static op_half_t half_at(memory_t *at, const kind_t *kind)
{
    const size_t first = kind->first;

    return (op_half_t){.bf16 = kind->bf16,
                       .count = COUNT - first,
                       .grads = at->grads + first,
                       .sent = at->sent + first,
                       .residual = kind->feedback ? at->residual + first : NULL,
                       .largest = kind->bf16 ? 0x1p126f : 32000};
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

/* Round, then widen, on the emulated GPU. */
static void on_gpu(const op_backend_ops_t *backend, void *at,
                   dev_stream_t *stream, const void *kind)
{
    const op_half_t half = half_at(at, kind);
    err_t err = ERR_INIT;

    cr_assert(op_half_offered(backend));
    cr_assert_eq(op_half_round(backend, &half, stream, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(op_half_widen(backend, &half, stream, &err), ERR_OK, "%s",
                 err.text);
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
        /* Packs cannot begin at the address of element 3. */
        const kind_t kind = {
            .bf16 = k % 2 != 0, .feedback = k / 2 % 2 != 0, .first = k / 4 * 3};
        const op_half_t half = half_at(host, &kind);

        memory_fill(host);
        *gpu = *host;
        op_rig_cuda_call(gpu, sizeof *gpu, on_gpu, &kind);
        on_host(&half);
        floats_expect(gpu->grads, host->grads, "gradient");
        floats_expect(gpu->residual, host->residual, "residual");
    }
    free(gpu);
    free(host);
}
