/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op_rig.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "op/op_attention.h"
#include "op/op_desc.h"
#include "op/op_ops.h"

double *op_rig_doubles(int64_t count)
{
    double *values = calloc((size_t)count + 1, sizeof *values);

    cr_assert_not_null(values);
    return values;
}

/* Distinct values in (-1, 1), in an order that depends on [salt]. */
static double *rig_values(int64_t count, uint64_t salt)
{
    double *values = op_rig_doubles(count);
    rng_t rng;

    rng_open(&rng, 7, RNG_INIT, salt, 0);
    for (int64_t i = 0; i < count; i++)
        values[i] =
            ((double)i + 0.5) / (double)count * 2 - 1 + 0.25 / (double)count;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);
        double swap = values[i];

        values[i] = values[j];
        values[j] = swap;
    }
    return values;
}

/* ---- opening ------------------------------------------------------------ */

/* Give [desc] a private layout: that of the output of a conv with these
 * dimensions, stored as bfloat16 if [bf16]. The conv stays open as *donor. */
static void rig_borrow_layout(op_rig_t *rig, bool bf16, op_desc_t *desc,
                              op_t **donor)
{
    op_config_t config = {
        .kind = OP_CONV2D,
        .training = true,
        .threads = rig->config.threads,
        .compute_type = bf16 ? OP_BFLOAT16 : OP_FLOAT32,
        .y_stored_as = bf16 ? OP_BFLOAT16 : OP_FLOAT32,
        .conv = {.out = desc->dims[1],
                 .kernel = {3, 3, 3},
                 .stride = {1, 1, 1},
                 .pad = {1, 1, 1},
                 .dilation = {1, 1, 1},
                 .groups = 1},
        .in = *desc,
    };
    err_t err = ERR_INIT;

    cr_assert_eq(op_open(rig->backend, rig->mem.dev, &config, donor, &err),
                 ERR_OK, "%s", err.text);
    *desc = *op_out(*donor);
    cr_assert_eq(op_stored_bf16(desc), bf16);
}

/* A flatten op that converts between the layout of [desc] and the plain one;
 * NULL if [desc] is plain. */
static op_t *rig_way_open(op_rig_t *rig, const op_desc_t *desc)
{
    op_config_t config = {.kind = OP_FLATTEN,
                          .training = true,
                          .need_dx = true,
                          .threads = 1,
                          .in = *desc};
    err_t err = ERR_INIT;
    op_t *way;

    if (desc->layout == NULL)
        return NULL;
    cr_assert_eq(op_open(rig->backend, rig->mem.dev, &config, &way, &err),
                 ERR_OK, "%s", err.text);
    op_rig_block_free(&rig->mem, rig->way_scratch);
    rig->way_scratch =
        op_rig_block(&rig->mem, op_scratch_bytes(way) + (1 << 20));
    return way;
}

/* Allocate the inputs after the first, and open the ops that convert them to
 * the plain layout. */
static void rig_allocate_others(op_rig_t *rig)
{
    for (int k = 0; k < rig->config.others; k++) {
        op_desc_t *desc = &rig->op->config.other[k];

        rig->other_way[k] = rig_way_open(rig, desc);
        rig->other[k] = op_rig_block(&rig->mem, desc->bytes);
        rig->dother[k] = op_rig_block(&rig->mem, desc->bytes);
    }
}

static void rig_allocate(op_rig_t *rig)
{
    int64_t N = rig->config.in.dims[0], C = rig->config.in.dims[1];
    op_args_t *args = &rig->args;

    rig->x = op_rig_block(&rig->mem, op_grad_in(rig->op)->bytes);
    rig->dx = op_rig_block(&rig->mem, op_grad_in(rig->op)->bytes);
    rig->y = op_rig_block(&rig->mem, op_out(rig->op)->bytes);
    rig->dy = op_rig_block(&rig->mem, op_out(rig->op)->bytes);
    rig_allocate_others(rig);
    for (int i = 0; i < rig->param_count; i++) {
        args->params[i] = op_rig_block(&rig->mem, rig->params[i].bytes);
        args->dparams[i] = op_rig_block(&rig->mem, rig->params[i].bytes);
    }
    if (op_workspace_bytes(rig->op) > 0)
        args->workspace = op_rig_block(&rig->mem, op_workspace_bytes(rig->op));
    if (op_scratch_bytes(rig->op) > 0)
        args->scratch = op_rig_block(&rig->mem, op_scratch_bytes(rig->op));
    if (rig->config.kind == OP_BATCHNORM ||
        rig->config.kind == OP_SYNCBATCHNORM) {
        args->moments = op_rig_block(&rig->mem, 2 * (size_t)C * sizeof(double));
        args->running_mean = op_rig_block(&rig->mem, (size_t)C * sizeof(float));
        args->running_var = op_rig_block(&rig->mem, (size_t)C * sizeof(float));
    }
    if (rig->config.kind == OP_DROPOUT)
        args->sample_ids =
            op_rig_block(&rig->mem, (size_t)N * sizeof(uint64_t));
    if (rig->weighed)
        args->sample_weights =
            op_rig_block(&rig->mem, (size_t)N * sizeof(float));
    if (rig->config.kind == OP_CROSS_ENTROPY)
        args->target =
            op_rig_block(&rig->mem, (size_t)op_classes_of(&rig->config).rows *
                                        sizeof(int64_t));
    if (op_rig_is_loss(rig) && rig->config.kind != OP_CROSS_ENTROPY)
        args->target =
            op_rig_block(&rig->mem, (size_t)op_desc_elems(&rig->config.in) *
                                        op_type_bytes(rig->config.in.type));
}

static void rig_fill_classes(op_rig_t *rig)
{
    const op_loss_t *loss = &rig->config.loss;
    op_classes_t at = op_classes_of(&rig->config);
    int64_t *target = (void *)(uintptr_t)rig->args.target;

    for (int64_t r = 0; r < at.rows; r++)
        target[r] = loss->ignore && r % 4 == 1 ? loss->ignored
                                               : (r * 7 + 3) % at.classes;
}

/* Fill the mask: every third key is hidden, and all keys of the last sample. A
 * mask of lengths gets 0, 2, 4 ... */
static void rig_fill_mask(op_rig_t *rig)
{
    const int last = rig->config.others - 1;
    const op_desc_t *desc = &rig->config.other[last];
    const int64_t S = op_attention_of(&rig->config).S;

    for (int64_t i = 0; i < op_desc_elems(desc); i++) {
        const bool hidden = i % 3 == 1 || i / S == desc->dims[0] - 1;
        const double value =
            desc->dims[1] > 1 ? !hidden : (double)(2 * i % (S + 1));

        if (desc->type == OP_FLOAT32)
            ((float *)rig->other[last])[i] = (float)value;
        else
            ((double *)rig->other[last])[i] = value;
    }
}

static void rig_fill_extras(op_rig_t *rig)
{
    int64_t N = rig->config.in.dims[0], C = rig->config.in.dims[1];
    int64_t elems = op_desc_elems(&rig->config.in);
    double *values = rig_values(elems + C, 99);
    op_args_t *args = &rig->args;

    for (int64_t n = 0; n < N && args->sample_ids != NULL; n++)
        ((uint64_t *)(uintptr_t)args->sample_ids)[n] = (uint64_t)(n * 977 + 5)
                                                       << (n % 2 * 30);
    /* The first sample has weight 0. */
    for (int64_t n = 0; n < N && args->sample_weights != NULL; n++)
        ((float *)(uintptr_t)args->sample_weights)[n] = (float)n / 2;
    for (int64_t c = 0; c < C && args->running_mean != NULL; c++) {
        ((float *)(uintptr_t)args->running_mean)[c] = (float)values[c];
        ((float *)(uintptr_t)args->running_var)[c] =
            (float)(1.5 + values[c + elems]);
    }
    /* Some tokens occur twice, some never. */
    for (int64_t i = 0; i < elems && rig->config.kind == OP_EMBEDDING; i++)
        ((int32_t *)rig->x)[i] =
            (int32_t)((i * i * 7 + 3) % rig->config.embedding.rows);
    if (rig->config.kind == OP_CROSS_ENTROPY)
        rig_fill_classes(rig);
    if (rig->config.heads.masked)
        rig_fill_mask(rig);
    for (int64_t i = 0; i < elems && op_rig_is_loss(rig) &&
                        rig->config.kind != OP_CROSS_ENTROPY;
         i++) {
        void *target = (void *)(uintptr_t)args->target;

        if (rig->config.kind == OP_KL || rig->config.kind == OP_BCE ||
            rig->config.kind == OP_CROSS_ENTROPY_SOFT)
            values[i] = fabs(values[i]); /* probabilities are not negative */

        if (rig->config.in.type == OP_FLOAT32)
            ((float *)target)[i] = (float)values[i];
        else
            ((double *)target)[i] = values[i];
    }
    free(values);
    rig->step = (op_step_t){.seed = 11, .epoch = 3, .scales = {1, 0.37}};
    op_rig_block_add(&rig->mem, &rig->step, sizeof rig->step);
    args->step = &rig->step;
    args->layer = 5;
    args->loss = 1;
    op_rig_block_add(&rig->mem, &rig->loss_sum, sizeof rig->loss_sum);
    op_rig_block_add(&rig->mem, &rig->correct, sizeof rig->correct);
    args->loss_sum = &rig->loss_sum;
    args->correct = &rig->correct;
}

op_config_t op_rig_config(const op_case_t *test, op_type_t type)
{
    op_config_t config = test->config;

    config.in.type = config.kind == OP_EMBEDDING ? OP_INT32 : type;
    config.embedding.type = type;
    for (int k = 0; k < config.others; k++)
        config.other[k].type = type;
    config.threads = 1;
    config.training = !test->evaluation;
    config.bias = !test->no_bias;
    config.need_dx = !test->no_dx && !test->evaluation;
    config.epsilon = 1e-5;
    return config;
}

/* Can [desc] have the layout of a conv's output, [N, channels, space]? */
static bool rig_may_lie(const op_desc_t *desc)
{
    return desc->ndim > 2 && desc->ndim <= 2 + OP_SPACE_MAX;
}

bool op_rig_lies(const op_backend_ops_t *backend, const op_case_t *test)
{
    return rig_may_lie(&test->config.in) &&
           op_backend_bf16_use(backend, test->config.kind) != OP_BF16_REFUSED;
}

/* Can [tensor] be stored as bfloat16? */
static bool rig_lies(op_rig_tensor_t tensor)
{
    return tensor == RIG_X || tensor == RIG_X1 || tensor == RIG_X2 ||
           tensor == RIG_DY;
}

static void rig_round(double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float value = (float)values[i];
        uint16_t half;

        half_round_bf16(&half, &value, 1);
        half_widen_bf16(&value, &half, 1);
        values[i] = (double)value;
    }
}

void op_rig_open(op_rig_t *rig, const op_case_t *test, const char *backend,
                 op_type_t type, int threads)
{
    const op_rig_on_t on = {backend, 0, type, threads};

    op_rig_open_on(rig, test, &on);
}

void op_rig_open_on(op_rig_t *rig, const op_case_t *test, const op_rig_on_t *on)
{
    static const op_rig_tensor_t filled[] = {RIG_X,  RIG_W,  RIG_B,  RIG_P2,
                                             RIG_P3, RIG_DY, RIG_X1, RIG_X2};
    err_t err = ERR_INIT;

    memset(rig, 0, sizeof *rig);
    cr_assert_eq(op_backend_get(on->backend, &rig->backend, &err), ERR_OK, "%s",
                 err.text);
    rig->name = test->name;
    op_rig_dev_open(&rig->mem, test->name, on->backend, on->index);
    rig->weighed = test->weighed;
    rig->config = op_rig_config(test, on->type);
    rig->config.threads = on->threads;
    if ((test->blocked || test->bf16) && rig->backend->private_in)
        rig_borrow_layout(rig, test->bf16, &rig->config.in, &rig->donor);
    for (int k = 0; k < rig->config.others; k++)
        if ((test->others_blocked ||
             (test->bf16 && rig_may_lie(&rig->config.other[k]))) &&
            rig->backend->private_in)
            rig_borrow_layout(rig, test->bf16, &rig->config.other[k],
                              &rig->other_donor[k]);
    if (test->bf16 &&
        op_backend_bf16_use(rig->backend, test->config.kind) >= OP_BF16_KEPT)
        rig->config.y_stored_as = OP_BFLOAT16;
    cr_assert_eq(
        op_open(rig->backend, rig->mem.dev, &rig->config, &rig->op, &err),
        ERR_OK, "%s: %s", test->name, err.text);
    cr_assert_eq(op_params(&rig->config, rig->params, &rig->param_count, &err),
                 ERR_OK);
    rig->x_way = rig_way_open(rig, &rig->config.in);
    rig->y_way = rig_way_open(rig, op_out(rig->op));
    rig_allocate(rig);
    rig_fill_extras(rig);
    for (size_t i = 0; i < sizeof filled / sizeof filled[0]; i++) {
        int64_t count = op_rig_count(rig, filled[i]);
        double *values = rig_values(count, filled[i]);

        for (int64_t k = 0; filled[i] == RIG_X && k < count; k++)
            values[k] *= test->range > 0 ? test->range : 1;
        if (test->bf16 && rig_lies(filled[i]))
            rig_round(values, count);
        if (count > 0)
            op_rig_set(rig, filled[i], values);
        free(values);
    }
}

void op_rig_close(op_rig_t *rig)
{
    op_close(rig->x_way);
    op_close(rig->y_way);
    op_close(rig->op);
    op_close(rig->donor);
    for (int k = 0; k < rig->config.others; k++) {
        op_close(rig->other_way[k]);
        op_close(rig->other_donor[k]);
    }
    op_rig_dev_close(&rig->mem);
}

/* ---- tensors ------------------------------------------------------------ */

bool op_rig_rounds(op_kind_t kind)
{
    return kind == OP_LINEAR || kind == OP_CONV2D || kind == OP_ATTENTION ||
           kind == OP_LSTM || kind == OP_GRU;
}

bool op_rig_is_loss(const op_rig_t *rig)
{
    op_kind_t kind = rig->config.kind;

    return kind == OP_CROSS_ENTROPY || kind == OP_CROSS_ENTROPY_SOFT ||
           kind == OP_MSE || (kind >= OP_MAE && kind <= OP_KL);
}

typedef struct rig_view {
    void *data;
    int64_t count;
    op_t *way;
} rig_view_t;

/* View of input k + 1, or of its gradient. */
static rig_view_t rig_view_other(const op_rig_t *rig, int k, bool gradient)
{
    const bool mask = rig->config.heads.masked && k == rig->config.others - 1;
    int64_t count = 0;

    if (k < rig->config.others && !mask && (!gradient || rig->config.need_dx))
        count = op_desc_elems(&rig->config.other[k]);
    return (rig_view_t){gradient ? rig->dother[k] : rig->other[k], count,
                        rig->other_way[k]};
}

/* Index of the parameter that [tensor] is, or whose gradient [tensor] is. */
static int rig_param(op_rig_tensor_t tensor)
{
    switch (tensor) {
    case RIG_B:
    case RIG_DB:
        return 1;
    case RIG_P2:
    case RIG_DP2:
        return 2;
    case RIG_P3:
    case RIG_DP3:
        return 3;
    default:
        return 0;
    }
}

static rig_view_t rig_view(const op_rig_t *rig, op_rig_tensor_t tensor)
{
    int64_t in = rig->config.kind == OP_EMBEDDING
                     ? 0 /* tokens are integers, which are not handled here */
                     : op_desc_elems(&rig->config.in);
    int64_t out = op_rig_is_loss(rig) ? 0 : op_desc_elems(op_out(rig->op));
    int i = rig_param(tensor);
    int64_t elems = i < rig->param_count ? op_desc_elems(&rig->params[i]) : 0;

    switch (tensor) {
    case RIG_X:
        return (rig_view_t){rig->x, in, rig->x_way};
    case RIG_DX:
        return (rig_view_t){rig->dx, rig->config.need_dx ? in : 0, rig->x_way};
    case RIG_Y:
        return (rig_view_t){rig->y, out, rig->y_way};
    case RIG_DY:
        return (rig_view_t){rig->dy, out, rig->y_way};
    case RIG_W:
    case RIG_B:
    case RIG_P2:
    case RIG_P3:
        return (rig_view_t){(void *)(uintptr_t)rig->args.params[i], elems,
                            NULL};
    case RIG_DW:
    case RIG_DB:
    case RIG_DP2:
    case RIG_DP3:
        return (rig_view_t){rig->args.dparams[i],
                            rig->config.training ? elems : 0, NULL};
    case RIG_X1:
    case RIG_X2:
        return rig_view_other(rig, tensor - RIG_X1, false);
    case RIG_DX1:
    case RIG_DX2:
        return rig_view_other(rig, tensor - RIG_DX1, true);
    case RIG_TENSORS:
        break;
    }
    return (rig_view_t){0};
}

int64_t op_rig_count(const op_rig_t *rig, op_rig_tensor_t tensor)
{
    return rig_view(rig, tensor).count;
}

void op_rig_get(op_rig_t *rig, op_rig_tensor_t tensor, double *values)
{
    rig_view_t view = rig_view(rig, tensor);
    op_type_t type = op_number_type(&rig->config);
    void *plain = op_rig_block(&rig->mem, (size_t)view.count * sizeof(double));
    op_args_t args = {.x = view.data, .y = plain, .scratch = rig->way_scratch};
    err_t err = ERR_INIT;
    const void *from = view.data;

    if (view.way != NULL && view.count > 0) {
        cr_assert_eq(op_rig_call(&rig->mem, op_forward, view.way, &args, &err),
                     ERR_OK, "%s", err.text);
        from = plain;
    }
    for (int64_t i = 0; i < view.count; i++)
        values[i] = type == OP_FLOAT32 ? (double)((const float *)from)[i]
                                       : ((const double *)from)[i];
    op_rig_block_free(&rig->mem, plain);
}

void op_rig_set(op_rig_t *rig, op_rig_tensor_t tensor, const double *values)
{
    rig_view_t view = rig_view(rig, tensor);
    op_type_t type = op_number_type(&rig->config);
    void *plain = op_rig_block(&rig->mem, (size_t)view.count * sizeof(double));
    op_args_t args = {
        .dy = plain, .dx = view.data, .scratch = rig->way_scratch};
    err_t err = ERR_INIT;
    void *to = view.way != NULL ? plain : view.data;

    for (int64_t i = 0; i < view.count; i++) {
        if (type == OP_FLOAT32)
            ((float *)to)[i] = (float)values[i];
        else
            ((double *)to)[i] = values[i];
    }
    if (view.way != NULL && view.count > 0)
        cr_assert_eq(op_rig_call(&rig->mem, op_backward, view.way, &args, &err),
                     ERR_OK, "%s", err.text);
    op_rig_block_free(&rig->mem, plain);
}

void op_rig_divide_w_hh(op_rig_t *rig)
{
    const bool steps =
        rig->config.kind == OP_LSTM || rig->config.kind == OP_GRU;
    const int64_t count = steps ? op_rig_count(rig, RIG_B) : 0;
    double *w = op_rig_doubles(count);

    if (count > 0)
        op_rig_get(rig, RIG_B, w);
    for (int64_t i = 0; i < count; i++)
        w[i] /= sqrt((double)rig->config.out);
    if (count > 0)
        op_rig_set(rig, RIG_B, w);
    free(w);
}

/* ---- running ------------------------------------------------------------ */

static void rig_spoil(void *block, size_t bytes)
{
    if (block != NULL)
        memset(block, 0xff, bytes); /* all bits set: NaN in float and double */
}

void op_rig_spoil_forward(op_rig_t *rig)
{
    rig_spoil(rig->y, op_out(rig->op)->bytes);
    rig_spoil(rig->args.workspace, op_workspace_bytes(rig->op));
    rig_spoil(rig->args.scratch, op_scratch_bytes(rig->op));
    rig_spoil(rig->args.moments,
              2 * (size_t)rig->config.in.dims[1] * sizeof(double));
    rig->loss_sum = 0.0 / 0.0;
    rig->correct = -1;
}

void op_rig_spoil_backward(op_rig_t *rig)
{
    rig_spoil(rig->dx, op_grad_in(rig->op)->bytes);
    rig_spoil(rig->args.scratch, op_scratch_bytes(rig->op));
    for (int i = 0; i < rig->param_count; i++)
        rig_spoil(rig->args.dparams[i], rig->params[i].bytes);
    for (int k = 0; k < rig->config.others; k++)
        rig_spoil(rig->dother[k], rig->op->config.other[k].bytes);
}

void op_rig_forward(op_rig_t *rig)
{
    err_t err = ERR_INIT;

    rig->args.x = rig->x;
    for (int k = 0; k < rig->config.others; k++)
        rig->args.other[k] = rig->other[k];
    rig->args.y = op_rig_is_loss(rig) ? NULL : rig->y;
    cr_assert_eq(op_rig_call(&rig->mem, op_forward, rig->op, &rig->args, &err),
                 ERR_OK, "%s: %s", rig->name, err.text);
}

void op_rig_backward(op_rig_t *rig)
{
    err_t err = ERR_INIT;

    rig->args.x = op_reads_x(rig->op) ? rig->x : NULL;
    rig->args.y = op_reads_y(rig->op) ? rig->y : NULL;
    rig->args.dy = op_rig_is_loss(rig) ? NULL : rig->dy;
    rig->args.dx = rig->config.need_dx ? rig->dx : NULL;
    for (int k = 0; k < rig->config.others; k++) {
        rig->args.other[k] = op_reads_x(rig->op) ? rig->other[k] : NULL;
        rig->args.dother[k] = rig->config.need_dx ? rig->dother[k] : NULL;
    }
    cr_assert_eq(op_rig_call(&rig->mem, op_backward, rig->op, &rig->args, &err),
                 ERR_OK, "%s: %s", rig->name, err.text);
}
