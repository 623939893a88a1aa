/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shapes that broadcast, shapes that do not, and matrices that can be
 * multiplied. */
#include <criterion/criterion.h>
#include <string.h>

#include "op/op_broadcast.h"
#include "op/op_desc.h"

static op_desc_t desc(int ndim, const int64_t *dims)
{
    op_desc_t out;

    op_desc_fill(&out, OP_FLOAT32, ndim, dims);
    return out;
}

#define DESC(...)                                            \
    desc(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
         (int64_t[]){__VA_ARGS__})

static op_config_t of(op_kind_t kind, op_desc_t first, op_desc_t second)
{
    return (op_config_t){.kind = kind,
                         .threads = 1,
                         .in = first,
                         .others = 1,
                         .other = {second}};
}

static void expect_shape(const op_config_t *config, const char *text)
{
    char got[OP_TEXT_MAX];
    err_t err = ERR_INIT;
    op_desc_t out;

    cr_assert_eq(op_shape(config, &out, &err), ERR_OK, "%s", err.text);
    cr_expect_str_eq(op_desc_text(&out, got), text);
}

static void expect_error(const op_config_t *config, const char *part)
{
    err_t err = ERR_INIT;
    op_desc_t out;

    cr_expect_eq(op_shape(config, &out, &err), ERR_CONFIG);
    cr_expect(strstr(err.text, part), "no \"%s\" in: %s", part, err.text);
}

/* Shapes are aligned at the last dimension of a sample; the first dimension is
 * always the batch. */
Test(op_broadcast, shapes)
{
    op_config_t same = of(OP_MUL_BROADCAST, DESC(2, 3, 4), DESC(2, 3, 4));
    op_config_t space =
        of(OP_MUL_BROADCAST, DESC(2, 3, 4, 5), DESC(2, 3, 1, 1));
    op_config_t fewer = of(OP_ADD_BROADCAST, DESC(2, 5), DESC(2, 3, 4, 5));
    op_config_t outer = of(OP_ADD_BROADCAST, DESC(2, 5, 1), DESC(2, 1, 7));
    op_config_t apart = of(OP_ADD_BROADCAST, DESC(2, 3, 4), DESC(2, 3));
    op_config_t batch = of(OP_ADD_BROADCAST, DESC(2, 3), DESC(1, 3));

    cr_expect_not(op_broadcast_fits(&same));
    cr_expect(op_broadcast_fits(&space));
    expect_shape(&space, "[2, 3, 4, 5]");
    cr_expect(op_broadcast_fits(&fewer));
    expect_shape(&fewer, "[2, 3, 4, 5]");
    expect_shape(&outer, "[2, 5, 7]");
    cr_expect_not(op_broadcast_fits(&apart));
    expect_error(&apart, "its input 1 is [2, 3, 4] and its input 2 is [2, 3]");
    cr_expect_not(op_broadcast_fits(&batch));
    apart.kind = OP_ADD;
    expect_error(&apart, "are equal or 1");
}

/* The message names two inputs whose shapes disagree, although neither is the
 * first. */
Test(op_broadcast, the_inputs_that_do_not_agree_are_named)
{
    op_config_t config = of(OP_ADD, DESC(2, 4, 1), DESC(2, 4, 8));

    config.others = 2;
    config.other[1] = config.in;
    config.other[1].dims[2] = 5;
    expect_error(&config, "its input 2 is [2, 4, 8] and its input 3 is "
                          "[2, 4, 5]");
    config.kind = OP_MUL_BROADCAST;
    expect_error(&config, "its input 2 is [2, 4, 8] and its input 3 is "
                          "[2, 4, 5]");
}

/* Neighbouring dimensions become one if each input either has all of them or
 * broadcasts over all of them. */
Test(op_broadcast, dimensions_are_joined)
{
    op_config_t space =
        of(OP_MUL_BROADCAST, DESC(2, 3, 4, 5), DESC(2, 3, 1, 1));
    op_config_t token = of(OP_MUL_BROADCAST, DESC(2, 7), DESC(2, 4, 7));
    op_broadcast_t broadcast = op_broadcast_of(&space);

    cr_assert_eq(broadcast.ndim, 2);
    cr_expect_eq(broadcast.dims[0], 6);
    cr_expect_eq(broadcast.dims[1], 20);
    cr_expect_eq(broadcast.stride[0][0], 20);
    cr_expect_eq(broadcast.stride[1][0], 1);
    cr_expect_eq(broadcast.stride[0][1], 1);
    cr_expect_eq(broadcast.stride[1][1], 0);
    broadcast = op_broadcast_of(&token);
    cr_assert_eq(broadcast.ndim, 3);
    cr_expect_eq(broadcast.stride[0][0], 7);
    cr_expect_eq(broadcast.stride[0][1], 0);
    cr_expect_eq(broadcast.stride[0][2], 1);
}

Test(op_broadcast, matrices)
{
    op_config_t plain = of(OP_MATMUL, DESC(2, 3, 4), DESC(2, 4, 5));
    op_config_t heads = of(OP_MATMUL, DESC(2, 6, 3, 4), DESC(2, 6, 5, 4));
    op_config_t vectors = of(OP_MATMUL, DESC(2, 3), DESC(2, 3));

    expect_shape(&plain, "[2, 3, 5]");
    plain.transpose.a = true;
    expect_error(&plain, "[2, 3, 4] (transposed) and [2, 4, 5] do not fit");
    expect_error(&heads, "do not fit");
    heads.transpose.b = true;
    expect_shape(&heads, "[2, 6, 3, 5]");
    heads.other[0].dims[1] = 1;
    expect_error(&heads, "the other dimensions equal");
    expect_error(&vectors, "[N, ..., rows, columns]");
    vectors.others = 2;
    vectors.in = DESC(2, 3, 3);
    expect_error(&vectors, "matmul takes 2 inputs, but it got 3");
}
