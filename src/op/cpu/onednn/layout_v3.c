/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * oneDNN 3.x: a layout is an object behind a pointer. The layouts that cddp
 * makes belong to the engine and are freed with it; a layout that a primitive
 * reports belongs to that primitive.
 */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 3

cpu_raw_md_t cpu_md_raw(const cpu_md_t *md)
{
    return md->desc;
}

cpu_md_t cpu_md_from_raw(cpu_raw_md_t raw)
{
    return (cpu_md_t){.desc = (dnnl_memory_desc_t)(uintptr_t)raw};
}

/* Store [md] in the engine, which frees it later. Returns [status], the result
 * of making [md], or an error if the engine is full. */
static dnnl_status_t cpu_md_keep(const cpu_md_t *md, cpu_engine_t *engine,
                                 dnnl_status_t status)
{
    if (status != dnnl_success)
        return status;
    if (engine->made == CPU_MADE_MAX) {
        dnnl_memory_desc_destroy(md->desc);
        return dnnl_out_of_memory;
    }
    engine->mds[engine->made++] = *md;
    return dnnl_success;
}

bool cpu_md_is_bf16(const cpu_md_t *md)
{
    dnnl_data_type_t type = dnnl_data_type_undef;

    dnnl_memory_desc_query(md->desc, dnnl_query_data_type, &type);
    return type == dnnl_bf16;
}

dnnl_status_t cpu_md_make(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                          dnnl_format_tag_t tag)
{
    return cpu_md_keep(md, engine,
                       dnnl_memory_desc_create_with_tag(
                           &md->desc, shape.ndim, shape.dims,
                           shape.bf16 ? dnnl_bf16 : dnnl_f32, tag));
}

dnnl_status_t cpu_md_place(const cpu_md_t *md, cpu_engine_t *engine,
                           const int *place, cpu_md_t *out)
{
    return cpu_md_keep(
        out, engine,
        dnnl_memory_desc_permute_axes(&out->desc, md->desc, place));
}

void cpu_md_free_made(cpu_engine_t *engine)
{
    while (engine->made > 0)
        dnnl_memory_desc_destroy(engine->mds[--engine->made].desc);
}

#endif
