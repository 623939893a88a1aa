/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/ops/combine.h"

#include "base/mem.h"

static const op_desc_t *combine_desc(const op_t *op, int k)
{
    return k == 0 ? &op->config.in : &op->config.other[k - 1];
}

/* The common layout: of the first input that has one, and of those that lie as
 * bfloat16 if there are any. */
static err_code_t combine_choose(op_t *op, cpu_combine_t *combine, err_t *err)
{
    const op_desc_t *chosen = combine_desc(op, 0);
    err_code_t code;

    for (int k = op->config.others; k >= 0; k--)
        if (combine_desc(op, k)->layout != NULL &&
            (combine_desc(op, k)->bf16 || !chosen->bf16))
            chosen = combine_desc(op, k);
    code = cpu_md_of(&combine->layout, &combine->room.engine, chosen, err);
    if (code == ERR_OK)
        code = cpu_md_publish(&combine->layout, &combine->room.engine, &op->out,
                              err);
    return code;
}

/* The ports of input [k]; [plain] or in the common layout. */
static err_code_t combine_open_port(op_t *op, int k, bool plain, err_t *err)
{
    const op_desc_t *desc = combine_desc(op, k);
    cpu_combine_t *combine = op->state;
    cpu_md_t outside, inside = combine->layout;
    err_code_t code = cpu_md_of(&outside, &combine->room.engine, desc, err);

    if (code == ERR_OK && plain)
        code = cpu_md_plain(&inside, &combine->room.engine, desc->ndim,
                            desc->dims, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&combine->in[k], &combine->room, &outside,
                                   &inside, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_out(&combine->grad[k], &combine->room, &inside,
                                    &outside, err);
    return code;
}

err_code_t cpu_combine_open(op_t *op, bool plain, err_t *err)
{
    return cpu_combine_open_in(op, sizeof(cpu_combine_t), plain, err);
}

err_code_t cpu_combine_open_in(op_t *op, size_t bytes, bool plain, err_t *err)
{
    cpu_combine_t *combine;
    err_code_t code =
        mem_alloc(bytes, "an op on plain tensors", &op->state, err);

    if (code != ERR_OK)
        return code;
    combine = op->state;
    code = cpu_engine_open(&combine->room.engine, err);
    if (code == ERR_OK && !plain)
        code = combine_choose(op, combine, err);
    for (int k = 0; k <= op->config.others && code == ERR_OK; k++)
        code = combine_open_port(op, k, plain, err);
    if (code == ERR_OK)
        cpu_scratch_finish(&combine->room, op);
    return code;
}

err_code_t cpu_combine_open_over(op_t *op, err_t *err)
{
    err_code_t code = cpu_combine_open(op, true, err);
    const cpu_combine_t *combine = op->state;

    if (code != ERR_OK)
        return code;
    op->in_place = combine->in[0].direct;
    op->reads_x = false;
    return ERR_OK;
}

void cpu_combine_close(op_t *op)
{
    cpu_combine_t *combine = op->state;

    if (combine == NULL)
        return;
    for (int k = 0; k <= op->config.others; k++) {
        cpu_reorder_close(&combine->in[k]);
        cpu_reorder_close(&combine->grad[k]);
    }
    cpu_engine_close(&combine->room.engine);
    mem_free(combine);
}

const void *cpu_combine_input(const op_args_t *args, int k)
{
    return k == 0 ? args->x : args->other[k - 1];
}

void *cpu_combine_gradient(const op_t *op, const op_args_t *args, int k)
{
    if (k > 0)
        return args->dother[k - 1];
    return op->config.need_dx ? args->dx : NULL;
}

err_code_t cpu_combine_bring(op_t *op, const op_args_t *args,
                             const void *inside[OP_INPUTS_MAX], err_t *err)
{
    cpu_combine_t *combine = op->state;
    err_code_t code = ERR_OK;

    for (int k = 0; k <= op->config.others && code == ERR_OK; k++) {
        const void *data = NULL;

        code = cpu_reorder_read(&combine->in[k], &combine->room, args,
                                cpu_combine_input(args, k), &data, err);
        inside[k] = data;
    }
    return code;
}

err_code_t cpu_combine_read(op_t *op, const op_args_t *args,
                            const float *inside[OP_INPUTS_MAX], err_t *err)
{
    const void *data[OP_INPUTS_MAX] = {NULL};
    err_code_t code = cpu_combine_bring(op, args, data, err);

    for (int k = 0; k <= op->config.others && code == ERR_OK; k++)
        inside[k] = data[k];
    return code;
}
