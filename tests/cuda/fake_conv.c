/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "fake_conv.h"

#include <stddef.h>

size_t fake_tensor_bytes(const fake_tensor_t *tensor)
{
    int64_t last = 0;

    for (int i = 0; i < 2 + FAKE_SPACE; i++)
        last += (tensor->dims[i] - 1) * tensor->strides[i];
    return (size_t)(last + 1) * (tensor->numbers.bf16 ? 2 : 4);
}

bool fake_conv_fits(const fake_conv_t *conv)
{
    const int64_t *x = conv->tensors[FAKE_X].dims;
    const int64_t *w = conv->tensors[FAKE_W].dims;
    const int64_t *y = conv->tensors[FAKE_Y].dims;
    int64_t groups;

    if (x[0] != y[0] || w[0] != y[1] || w[1] < 1 || x[1] % w[1] != 0)
        return false;
    groups = x[1] / w[1];
    if (w[0] % groups != 0)
        return false;
    for (int i = 0; i < FAKE_SPACE; i++) {
        const int64_t reach = (w[2 + i] - 1) * conv->dilation[i] + 1;
        const int64_t room =
            x[2 + i] + conv->before[i] + conv->after[i] - reach;

        if (conv->stride[i] < 1 || conv->dilation[i] < 1 || room < 0 ||
            room / conv->stride[i] + 1 != y[2 + i])
            return false;
    }
    return true;
}

/* ---- loops --------------------------------------------------------------- */

/* An element by its number and channel or filter, and its place. */
static int64_t at(const fake_tensor_t *tensor, int64_t n, int64_t c,
                  const int64_t place[FAKE_SPACE])
{
    int64_t index = n * tensor->strides[0] + c * tensor->strides[1];

    for (int i = 0; i < FAKE_SPACE; i++)
        index += place[i] * tensor->strides[2 + i];
    return index;
}

static double value(const fake_tensor_t *tensor, int64_t index)
{
    return (double)fake_load(&tensor->numbers, index);
}

/* The next place below [dims]; false behind the last one. */
static bool next(int64_t place[FAKE_SPACE], const int64_t dims[FAKE_SPACE])
{
    for (int i = FAKE_SPACE - 1; i >= 0; i--) {
        if (++place[i] < dims[i])
            return true;
        place[i] = 0;
    }
    return false;
}

/* Where output [out] reads with weight [tap]; false: in the padding. */
static bool place_in(const fake_conv_t *conv, const int64_t out[FAKE_SPACE],
                     const int64_t tap[FAKE_SPACE], int64_t in[FAKE_SPACE])
{
    const int64_t *dims = conv->tensors[FAKE_X].dims + 2;

    for (int i = 0; i < FAKE_SPACE; i++) {
        in[i] = out[i] * conv->stride[i] + tap[i] * conv->dilation[i] -
                conv->before[i];
        if (in[i] < 0 || in[i] >= dims[i])
            return false;
    }
    return true;
}

/* Which output reads [in] with weight [tap]; false: none. */
static bool place_out(const fake_conv_t *conv, const int64_t in[FAKE_SPACE],
                      const int64_t tap[FAKE_SPACE], int64_t out[FAKE_SPACE])
{
    const int64_t *dims = conv->tensors[FAKE_Y].dims + 2;

    for (int i = 0; i < FAKE_SPACE; i++) {
        const int64_t moved =
            in[i] + conv->before[i] - tap[i] * conv->dilation[i];

        out[i] = moved / conv->stride[i];
        if (moved < 0 || moved % conv->stride[i] != 0 || out[i] >= dims[i])
            return false;
    }
    return true;
}

static double forward_one(const fake_conv_t *conv, int64_t n, int64_t k,
                          const int64_t out[FAKE_SPACE])
{
    const fake_tensor_t *x = &conv->tensors[FAKE_X];
    const fake_tensor_t *w = &conv->tensors[FAKE_W];
    const int64_t inner = w->dims[1], groups = x->dims[1] / inner;
    const int64_t first = k / (w->dims[0] / groups) * inner;
    int64_t tap[FAKE_SPACE] = {0}, in[FAKE_SPACE];
    double sum = 0;

    do {
        int64_t from, by;

        if (!place_in(conv, out, tap, in))
            continue;
        from = at(x, n, first, in);
        by = at(w, k, 0, tap);
        for (int64_t c = 0; c < inner; c++)
            sum += value(x, from + c * x->strides[1]) *
                   value(w, by + c * w->strides[1]);
    } while (next(tap, w->dims + 2));
    return sum;
}

static double data_one(const fake_conv_t *conv, int64_t n, int64_t c,
                       const int64_t in[FAKE_SPACE])
{
    const fake_tensor_t *w = &conv->tensors[FAKE_W];
    const fake_tensor_t *y = &conv->tensors[FAKE_Y];
    const int64_t inner = w->dims[1];
    const int64_t outer = w->dims[0] / (conv->tensors[FAKE_X].dims[1] / inner);
    const int64_t first = c / inner * outer;
    int64_t tap[FAKE_SPACE] = {0}, out[FAKE_SPACE];
    double sum = 0;

    do {
        int64_t from, by;

        if (!place_out(conv, in, tap, out))
            continue;
        from = at(y, n, first, out);
        by = at(w, first, c % inner, tap);
        for (int64_t k = 0; k < outer; k++)
            sum += value(y, from + k * y->strides[1]) *
                   value(w, by + k * w->strides[0]);
    } while (next(tap, w->dims + 2));
    return sum;
}

static double filter_one(const fake_conv_t *conv, int64_t k, int64_t c,
                         const int64_t tap[FAKE_SPACE])
{
    const fake_tensor_t *x = &conv->tensors[FAKE_X];
    const fake_tensor_t *w = &conv->tensors[FAKE_W];
    const fake_tensor_t *y = &conv->tensors[FAKE_Y];
    const int64_t inner = w->dims[1], groups = x->dims[1] / inner;
    const int64_t channel = k / (w->dims[0] / groups) * inner + c;
    int64_t out[FAKE_SPACE] = {0}, in[FAKE_SPACE];
    double sum = 0;

    do {
        if (!place_in(conv, out, tap, in))
            continue;
        for (int64_t n = 0; n < x->dims[0]; n++)
            sum += value(x, at(x, n, channel, in)) * value(y, at(y, n, k, out));
    } while (next(out, y->dims + 2));
    return sum;
}

cudaError_t fake_conv_run(const void *args)
{
    typedef double one_t(const fake_conv_t *, int64_t, int64_t,
                         const int64_t *);
    static one_t *const ones[] = {forward_one, data_one, filter_one};
    static const int writes[] = {FAKE_Y, FAKE_X, FAKE_W};
    const fake_conv_t *conv = args;
    const fake_tensor_t *to = &conv->tensors[writes[conv->kind]];

    if (conv->workspace != NULL)
        memset(conv->workspace, 0xff, (size_t)conv->workspace_bytes);
    for (int64_t a = 0; a < to->dims[0]; a++)
        for (int64_t b = 0; b < to->dims[1]; b++) {
            int64_t place[FAKE_SPACE] = {0};

            do {
                const int64_t index = at(to, a, b, place);
                double sum =
                    (double)conv->alpha * ones[conv->kind](conv, a, b, place);

                if (conv->beta != 0)
                    sum += (double)conv->beta * value(to, index);
                fake_store(&to->numbers, index, sum);
            } while (next(place, to->dims + 2));
        }
    return cudaSuccess;
}
