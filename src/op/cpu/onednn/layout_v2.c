/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* oneDNN 2.x: a layout is a value. */
#include "op/cpu/onednn/onednn_make.h"

#if DNNL_VERSION_MAJOR == 2

cpu_raw_md_t cpu_md_raw(const cpu_md_t *md)
{
    return &md->desc;
}

cpu_md_t cpu_md_from_raw(cpu_raw_md_t raw)
{
    return (cpu_md_t){.desc = *raw};
}

bool cpu_md_is_bf16(const cpu_md_t *md)
{
    return md->desc.data_type == dnnl_bf16;
}

dnnl_status_t cpu_md_make(cpu_md_t *md, cpu_engine_t *engine, cpu_shape_t shape,
                          dnnl_format_tag_t tag)
{
    (void)engine; /* there is nothing to free */
    return dnnl_memory_desc_init_by_tag(&md->desc, shape.ndim, shape.dims,
                                        shape.bf16 ? dnnl_bf16 : dnnl_f32, tag);
}

dnnl_status_t cpu_md_place(const cpu_md_t *md, cpu_engine_t *engine,
                           const int *place, cpu_md_t *out)
{
    (void)engine;
    return dnnl_memory_desc_permute_axes(&out->desc, &md->desc, place);
}

void cpu_md_free_made(cpu_engine_t *engine)
{
    (void)engine;
}

#endif
