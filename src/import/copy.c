/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/copy.h"

#include "base/mem.h"

#define SLAB_BYTES (INT64_C(16) << 20)

int64_t import_copy_rows(const import_source_t *source)
{
    int64_t each = 0, rows;

    for (int i = 0; i < source->field_count; i++)
        each += (int64_t)import_field_bytes(&source->fields[i]);
    rows = each > 0 && each < SLAB_BYTES ? SLAB_BYTES / each : 1;
    return rows < source->rows ? rows : source->rows;
}

err_code_t import_copy(import_source_t *source, import_sink_t *sink, err_t *err)
{
    const int64_t slab = import_copy_rows(source);
    void *data[IMPORT_FIELDS_MAX] = {NULL};
    err_code_t rc = ERR_OK;

    for (int i = 0; i < source->field_count && rc == ERR_OK; i++)
        rc = mem_alloc((size_t)slab * import_field_bytes(&source->fields[i]),
                       "samples", &data[i], err);
    for (int64_t done = 0; done < source->rows && rc == ERR_OK;) {
        const int64_t left = source->rows - done;
        const int64_t rows = slab < left ? slab : left;

        rc = source->kind->read(source, rows, data, err);
        if (rc == ERR_OK)
            rc = import_sink_write(sink, rows, data, err);
        done += rows;
    }
    for (int i = 0; i < source->field_count; i++)
        mem_free(data[i]);
    return rc;
}
