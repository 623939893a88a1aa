/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op_cases.h"

/* A row of the table names only the fields that are not zero, even in
 * positional initializers. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define DIMS(n, ...)                         \
    {                                        \
        .ndim = (n), .dims = { __VA_ARGS__ } \
    }
#define IN2(n, f) .in = DIMS(2, n, f)
#define IN3(n, c, w) .in = DIMS(3, n, c, w)
#define IN4(n, c, h, w) .in = DIMS(4, n, c, h, w)

/* Square windows; cases with other windows are written out. */
#define CONV(o, k, s, p)                            \
    .kind = OP_CONV2D, .conv = {.out = (o),         \
                                .kernel = {k, k},   \
                                .stride = {s, s},   \
                                .pad = {p, p},      \
                                .dilation = {1, 1}, \
                                .groups = 1}
#define CONV_FULL(o, kh, kw, sh, sw, ph, pw, dh, dw, g) \
    .kind = OP_CONV2D, .conv = {.out = (o),             \
                                .kernel = {kh, kw},     \
                                .stride = {sh, sw},     \
                                .pad = {ph, pw},        \
                                .dilation = {dh, dw},   \
                                .groups = (g)}
#define POOL(kh, kw, sh, sw, ph, pw) \
    .kind = OP_MAXPOOL2D,            \
    .pool = {.kernel = {kh, kw}, .stride = {sh, sw}, .pad = {ph, pw}}
#define LINEAR(o) .kind = OP_LINEAR, .out = (o)
#define PLAIN(k) .kind = (k)
#define NORM(k, a, g) .kind = (k), .norm = {true, (a), (g)}
#define ALPHA(k, a) .kind = (k), .alpha = (a)
#define DROP(r) .kind = OP_DROPOUT, .rate = (r)

#define EMBEDDING(n, o) \
    .kind = OP_EMBEDDING, .embedding = {.rows = (n)}, .out = (o)

#define ROTARY(p, h, v) .kind = OP_ROTARY, .rotary = {p, h, 100, v}

/* One or two inputs after the first. */
#define AND1(...) .others = 1, .other = {DIMS(__VA_ARGS__)}
#define ANDS(one, two) .others = 2, .other = {one, two}
#define AND2(...) .others = 2, .other = {DIMS(__VA_ARGS__), DIMS(__VA_ARGS__)}
/* Arguments: is the first input transposed, is the second? */
#define MATMUL(x, y) .kind = OP_MATMUL, .transpose = {(x), (y)}
#define AXIS(k, a) .kind = (k), .view = {.axis = (a)}
#define SLICE(a, from, n) \
    .kind = OP_SLICE, .view = {.axis = (a), .start = (from), .size = (n)}
#define MEAN(a, b) .kind = OP_MEAN, .view = {.axis = (a), .axis_last = (b)}
#define MAX(a, b) .kind = OP_MAX, .view = {.axis = (a), .axis_last = (b)}
#define SOFTMAX(a) .kind = OP_SOFTMAX, .view = {.axis = (a), .axis_last = (a)}
#define LOG_SOFTMAX(a) \
    .kind = OP_LOG_SOFTMAX, .view = {.axis = (a), .axis_last = (a)}
#define VIEW(k, n, ...) .kind = (k), .view = DIMS(n, __VA_ARGS__)

/* Class weights, enough for 19 classes. */
static const float weights[] = {0.5f, 2.0f,  0.25f, 1.0f, 3.0f, 0.75f, 1.5f,
                                0.1f, 1.25f, 0.0f,  2.5f, 0.6f, 1.1f,  0.9f,
                                4.0f, 0.3f,  1.7f,  0.8f, 2.2f};

const op_case_t op_cases[] = {
#include "rows_activation.inc"
#include "rows_batchnorm.inc"
#include "rows_broadcast.inc"
#include "rows_combine.inc"
#include "rows_conv.inc"
#include "rows_dropout.inc"
#include "rows_linear.inc"
#include "rows_loss.inc"
#include "rows_norm.inc"
#include "rows_pointwise.inc"
#include "rows_pool.inc"
#include "rows_recurrent.inc"
#include "rows_reduce.inc"
#include "rows_resize.inc"
#include "rows_softmax.inc"
#include "rows_token.inc"
#include "rows_transpose.inc"
#include "rows_view.inc"
#include "rows_window.inc"
};

const int op_case_count = sizeof op_cases / sizeof op_cases[0];

const op_case_t op_perf_cases[] = {
#include "rows_perf.inc"
};

const int op_perf_case_count = sizeof op_perf_cases / sizeof op_perf_cases[0];
