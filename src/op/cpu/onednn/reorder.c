/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "op/cpu/onednn/reorder.h"

#include "base/mem.h"

void cpu_scratch_restart(cpu_scratch_t *room)
{
    room->taken = room->kept;
}

void cpu_scratch_keep(cpu_scratch_t *room)
{
    room->kept = room->taken;
}

size_t cpu_scratch_take(cpu_scratch_t *room, size_t bytes)
{
    size_t at = room->taken;

    room->taken += mem_round(bytes);
    if (room->taken > room->most)
        room->most = room->taken;
    return at;
}

void cpu_scratch_finish(const cpu_scratch_t *room, op_t *op)
{
    op->scratch_bytes = room->most + mem_round(room->engine.pad_bytes);
}

err_code_t cpu_scratch_run(const cpu_scratch_t *room, cpu_prim_t *prim,
                           const op_args_t *args, err_t *err)
{
    char *scratch = args->scratch;

    return cpu_prim_run(prim, &room->engine,
                        scratch == NULL ? NULL : scratch + room->most, err);
}

err_code_t cpu_reorder_open_in(cpu_reorder_t *port, cpu_scratch_t *room,
                               const cpu_md_t *outside, const cpu_md_t *inside,
                               err_t *err)
{
    port->direct = cpu_md_equal(outside, inside);
    if (port->direct)
        return ERR_OK;
    port->at = cpu_scratch_take(room, cpu_md_bytes(inside));
    return cpu_prim_reorder(&port->reorder, &room->engine, outside, inside,
                            err);
}

err_code_t cpu_reorder_open_out(cpu_reorder_t *port, cpu_scratch_t *room,
                                const cpu_md_t *inside, const cpu_md_t *outside,
                                err_t *err)
{
    port->direct = cpu_md_equal(outside, inside);
    if (port->direct)
        return ERR_OK;
    port->at = cpu_scratch_take(room, cpu_md_bytes(inside));
    return cpu_prim_reorder(&port->reorder, &room->engine, inside, outside,
                            err);
}

void cpu_reorder_close(cpu_reorder_t *port)
{
    cpu_prim_close(&port->reorder);
}

err_code_t cpu_reorder_read_to(cpu_reorder_t *port, const cpu_scratch_t *room,
                               const op_args_t *args, const void *data,
                               void *inside, err_t *err)
{
    cpu_prim_bind(&port->reorder, DNNL_ARG_FROM, data);
    cpu_prim_bind(&port->reorder, DNNL_ARG_TO, inside);
    return cpu_scratch_run(room, &port->reorder, args, err);
}

err_code_t cpu_reorder_read(cpu_reorder_t *port, const cpu_scratch_t *room,
                            const op_args_t *args, const void *data,
                            const void **inside, err_t *err)
{
    err_code_t code;
    void *buffer;

    if (port->direct) {
        *inside = data;
        return ERR_OK;
    }
    buffer = (char *)args->scratch + port->at;
    code = cpu_reorder_read_to(port, room, args, data, buffer, err);
    if (code == ERR_OK)
        *inside = buffer;
    return code;
}

void *cpu_reorder_place(const cpu_reorder_t *port, const op_args_t *args,
                        void *data)
{
    return port->direct ? data : (char *)args->scratch + port->at;
}

err_code_t cpu_reorder_flush(cpu_reorder_t *port, const cpu_scratch_t *room,
                             const op_args_t *args, void *data, err_t *err)
{
    if (port->direct)
        return ERR_OK;
    cpu_prim_bind(&port->reorder, DNNL_ARG_FROM,
                  (char *)args->scratch + port->at);
    cpu_prim_bind(&port->reorder, DNNL_ARG_TO, data);
    return cpu_scratch_run(room, &port->reorder, args, err);
}

err_code_t cpu_plain_open(cpu_plain_t *plain, cpu_scratch_t *room,
                          const op_t *op, err_t *err)
{
    const op_desc_t *in = &op->config.in;
    cpu_md_t outside, inside;
    err_code_t code;

    if (in->layout == NULL) {
        plain->x.direct = plain->dx.direct = true;
        return ERR_OK;
    }
    code = cpu_md_of(&outside, &room->engine, in, err);
    if (code == ERR_OK)
        code = cpu_md_plain(&inside, &room->engine, in->ndim, in->dims, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_in(&plain->x, room, &outside, &inside, err);
    if (code == ERR_OK)
        code = cpu_reorder_open_out(&plain->dx, room, &inside, &outside, err);
    cpu_scratch_keep(room);
    return code;
}

void cpu_plain_close(cpu_plain_t *plain)
{
    cpu_reorder_close(&plain->x);
    cpu_reorder_close(&plain->dx);
}
