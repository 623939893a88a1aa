/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/ops/combine.h"

#include "base/check.h"
#include "base/mem.h"

static const op_desc_t *combine_desc(const op_t *op, int k)
{
    return k == 0 ? &op->config.in : &op->config.other[k - 1];
}

/* Choose the common layout: that of the first bfloat16 input with a private
 * layout, or, if there is none, of the first input with a private layout. */
static err_code_t combine_choose(op_t *op, cpu_combine_t *combine, err_t *err)
{
    const op_desc_t *chosen = combine_desc(op, 0);
    err_code_t rc;

    for (int k = op->config.others; k >= 0; k--)
        if (combine_desc(op, k)->layout != NULL &&
            (op_stored_bf16(combine_desc(op, k)) || !op_stored_bf16(chosen)))
            chosen = combine_desc(op, k);
    rc = cpu_md_of(&combine->layout, &combine->scratch.engine, chosen, err);
    if (rc == ERR_OK)
        rc = cpu_md_publish(&combine->layout, &combine->scratch.engine,
                            &op->out, err);
    return rc;
}

/* Open the reorders of input [k], to the plain layout if [plain], else to the
 * common one. */
static err_code_t combine_open_reorders(op_t *op, int k, bool plain, err_t *err)
{
    const op_desc_t *desc = combine_desc(op, k);
    cpu_combine_t *combine = op->state;
    cpu_md_t outside, inside = combine->layout;
    err_code_t rc = cpu_md_of(&outside, &combine->scratch.engine, desc, err);

    if (rc == ERR_OK && plain)
        rc = cpu_md_plain(&inside, &combine->scratch.engine,
                          cpu_shape_of(desc, false), err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(&combine->in[k], &combine->scratch, &outside,
                                 &inside, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_out(&combine->grad[k], &combine->scratch, &inside,
                                  &outside, err);
    return rc;
}

err_code_t cpu_combine_open(op_t *op, bool plain, err_t *err)
{
    return cpu_combine_open_in(op, sizeof(cpu_combine_t), plain, err);
}

err_code_t cpu_combine_open_in(op_t *op, size_t bytes, bool plain, err_t *err)
{
    cpu_combine_t *combine;
    err_code_t rc;

    check(bytes >= sizeof *combine, "a state of %zu bytes", bytes);
    check(op->config.others < OP_INPUTS_MAX, "%d other inputs",
          op->config.others);
    rc = mem_alloc(bytes, "an op on plain tensors", &op->state, err);

    if (rc != ERR_OK)
        return rc;
    combine = op->state;
    rc = cpu_engine_open(&combine->scratch.engine, err);
    if (rc == ERR_OK && !plain)
        rc = combine_choose(op, combine, err);
    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        rc = combine_open_reorders(op, k, plain, err);
    if (rc == ERR_OK)
        cpu_scratch_finish(&combine->scratch, op);
    return rc;
}

err_code_t cpu_combine_open_over(op_t *op, err_t *err)
{
    err_code_t rc = cpu_combine_open(op, true, err);
    const cpu_combine_t *combine = op->state;

    if (rc != ERR_OK)
        return rc;
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
    cpu_engine_close(&combine->scratch.engine);
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

void *cpu_combine_place(const op_t *op, const op_args_t *args, int k)
{
    const cpu_combine_t *combine = op->state;
    void *to = cpu_combine_gradient(op, args, k);

    return to == NULL ? NULL : cpu_reorder_place(&combine->grad[k], args, to);
}

err_code_t cpu_combine_flush(const op_t *op, const op_args_t *args, int k,
                             err_t *err)
{
    cpu_combine_t *combine = op->state;
    void *to = cpu_combine_gradient(op, args, k);

    return to == NULL ? ERR_OK
                      : cpu_reorder_flush(&combine->grad[k], args, to, err);
}

err_code_t cpu_combine_convert(op_t *op, const op_args_t *args,
                               const void *inside[OP_INPUTS_MAX], err_t *err)
{
    cpu_combine_t *combine = op->state;
    err_code_t rc = ERR_OK;

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++) {
        const void *data = NULL;

        rc = cpu_reorder_read(&combine->in[k], args, cpu_combine_input(args, k),
                              &data, err);
        inside[k] = data;
    }
    return rc;
}

err_code_t cpu_combine_read(op_t *op, const op_args_t *args,
                            const float *inside[OP_INPUTS_MAX], err_t *err)
{
    const void *data[OP_INPUTS_MAX] = {NULL};
    err_code_t rc = cpu_combine_convert(op, args, data, err);

    for (int k = 0; k <= op->config.others && rc == ERR_OK; k++)
        inside[k] = data[k];
    return rc;
}
