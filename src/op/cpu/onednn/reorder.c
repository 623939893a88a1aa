/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/onednn/reorder.h"

#include "base/check.h"
#include "base/mem.h"

void cpu_scratch_restart(cpu_scratch_t *scratch)
{
    check(scratch->kept <= scratch->taken, "%zu bytes kept of %zu",
          scratch->kept, scratch->taken);
    scratch->taken = scratch->kept;
}

void cpu_scratch_keep(cpu_scratch_t *scratch)
{
    scratch->kept = scratch->taken;
}

size_t cpu_scratch_take(cpu_scratch_t *scratch, size_t bytes)
{
    size_t at = scratch->taken;

    scratch->taken += mem_round(bytes);
    if (scratch->taken > scratch->most)
        scratch->most = scratch->taken;
    check(at + bytes <= scratch->most,
          "buffer at %zu of %zu bytes ends after %zu", at, bytes,
          scratch->most);
    return at;
}

void cpu_scratch_finish(const cpu_scratch_t *scratch, op_t *op)
{
    op->scratch_bytes = scratch->most + mem_round(scratch->engine.pad_bytes);
}

err_code_t cpu_scratch_run(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                           const op_args_t *args, err_t *err)
{
    char *memory = args->scratch;

    check(memory != NULL ||
              (scratch->most == 0 && scratch->engine.pad_bytes == 0),
          "%s runs without scratch, needs %zu bytes and %zu for oneDNN",
          prim->what, scratch->most, scratch->engine.pad_bytes);
    return cpu_prim_run(prim, &scratch->engine,
                        memory == NULL ? NULL : memory + scratch->most, err);
}

err_code_t cpu_scratch_matmul(const cpu_scratch_t *scratch, cpu_prim_t *prim,
                              const op_args_t *args, cpu_factors_t with,
                              err_t *err)
{
    cpu_prim_bind(prim, DNNL_ARG_SRC, with.a);
    cpu_prim_bind(prim, DNNL_ARG_WEIGHTS, with.b);
    cpu_prim_bind(prim, DNNL_ARG_BIAS, with.bias);
    cpu_prim_bind(prim, DNNL_ARG_DST, with.c);
    return cpu_scratch_run(scratch, prim, args, err);
}

/* Set the fields of [reorder] except the primitive. */
static void cpu_reorder_take(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                             const cpu_md_t *outside, const cpu_md_t *inside)
{
    reorder->scratch = scratch;
    reorder->direct = cpu_md_equal(outside, inside);
    if (!reorder->direct)
        reorder->at = cpu_scratch_take(scratch, cpu_md_bytes(inside));
}

err_code_t cpu_reorder_open_in(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                               const cpu_md_t *outside, const cpu_md_t *inside,
                               err_t *err)
{
    cpu_reorder_take(reorder, scratch, outside, inside);
    return reorder->direct ? ERR_OK
                           : cpu_prim_reorder(&reorder->prim, &scratch->engine,
                                              outside, inside, err);
}

err_code_t cpu_reorder_open_out(cpu_reorder_t *reorder, cpu_scratch_t *scratch,
                                const cpu_md_t *inside, const cpu_md_t *outside,
                                err_t *err)
{
    cpu_reorder_take(reorder, scratch, outside, inside);
    return reorder->direct ? ERR_OK
                           : cpu_prim_reorder(&reorder->prim, &scratch->engine,
                                              inside, outside, err);
}

void cpu_reorder_close(cpu_reorder_t *reorder)
{
    cpu_prim_close(&reorder->prim);
}

/* Run the reorder from [from] to [to]. */
static err_code_t cpu_reorder_run(cpu_reorder_t *reorder, const op_args_t *args,
                                  const void *from, void *to, err_t *err)
{
    cpu_prim_bind(&reorder->prim, DNNL_ARG_FROM, from);
    cpu_prim_bind(&reorder->prim, DNNL_ARG_TO, to);
    return cpu_scratch_run(reorder->scratch, &reorder->prim, args, err);
}

err_code_t cpu_reorder_read_to(cpu_reorder_t *reorder, const op_args_t *args,
                               const void *data, void *inside, err_t *err)
{
    check(!reorder->direct, "the layouts agree: there is nothing to reorder");
    check(inside != NULL && inside != data, "a reorder in place");
    return cpu_reorder_run(reorder, args, data, inside, err);
}

err_code_t cpu_reorder_read(cpu_reorder_t *reorder, const op_args_t *args,
                            const void *data, const void **inside, err_t *err)
{
    err_code_t rc;
    void *buffer;

    if (reorder->direct) {
        *inside = data;
        return ERR_OK;
    }
    buffer = (char *)args->scratch + reorder->at;
    rc = cpu_reorder_read_to(reorder, args, data, buffer, err);
    if (rc == ERR_OK)
        *inside = buffer;
    return rc;
}

void *cpu_reorder_place(const cpu_reorder_t *reorder, const op_args_t *args,
                        void *data)
{
    return reorder->direct ? data : (char *)args->scratch + reorder->at;
}

err_code_t cpu_reorder_flush(cpu_reorder_t *reorder, const op_args_t *args,
                             void *data, err_t *err)
{
    if (reorder->direct)
        return ERR_OK;
    check(reorder->at < reorder->scratch->most,
          "buffer at %zu of %zu bytes of scratch", reorder->at,
          reorder->scratch->most);
    return cpu_reorder_run(reorder, args, (char *)args->scratch + reorder->at,
                           data, err);
}

err_code_t cpu_plain_open(cpu_plain_t *plain, cpu_scratch_t *scratch,
                          const op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    cpu_md_t outside, inside;
    err_code_t rc;

    if (in->layout == NULL) {
        plain->x.direct = plain->dx.direct = true;
        return ERR_OK;
    }
    rc = cpu_md_of(&outside, &scratch->engine, in, err);
    if (rc == ERR_OK)
        rc = cpu_md_plain(&inside, &scratch->engine, cpu_shape_of(in, false),
                          err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_in(&plain->x, scratch, &outside, &inside, err);
    if (rc == ERR_OK)
        rc = cpu_reorder_open_out(&plain->dx, scratch, &inside, &outside, err);
    cpu_scratch_keep(scratch);
    return rc;
}

void cpu_plain_close(cpu_plain_t *plain)
{
    cpu_reorder_close(&plain->x);
    cpu_reorder_close(&plain->dx);
}
