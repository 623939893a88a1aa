/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Finds a number that is not finite among samples that were read. It is only
 * used after a failure, so it may be slow. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "hdf5io/dataset_impl.h"

/* Set the error about [value], which is not finite, in field [k] of sample
 * [index]. It is the transformed number. */
static err_code_t finite_fail(const hdf5io_dataset_t *dataset, int k,
                              int64_t index, float value, err_t *err)
{
    const dataset_field_t *field = &dataset->fields[k];
    const hdf5io_shard_t *shard = dataset->shards;
    const hdf5io_column_t *column;
    const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    str_buf_t after = {0};

    while (index >= shard->first + shard->rows)
        shard++;
    column = &hdf5io_dataset_columns(dataset, shard)[k];
    hdf5io_transform_say(&field->transform, &after);
    err_set(err, ERR_DATA,
            "%s holds %s%s%s in row %" PRId64 " of %s:%s: training takes "
            "finite numbers only; mend the data or leave the row out",
            k < dataset->inputs ? "input" : "target", text,
            after.length > 0 ? " after " : "",
            after.length > 0 ? after.text : "", index - shard->first,
            shard->path, column->path);
    str_buf_free(&after);
    return ERR_DATA;
}

err_code_t hdf5io_dataset_finite(const hdf5io_dataset_t *dataset,
                                 const uint64_t *sample_ids, int64_t count,
                                 const void *const *fields, err_t *err)
{
    for (int k = 0; k < dataset->field_count; k++) {
        const int64_t elems = dataset->fields[k].elems;
        const float *values = fields[k];

        if (values == NULL || dataset->fields[k].as != HDF5IO_AS_REALS)
            continue;
        for (int64_t i = 0; i < count * elems; i++)
            if (!isfinite(values[i]))
                return finite_fail(dataset, k, (int64_t)sample_ids[i / elems],
                                   values[i], err);
    }
    return ERR_OK;
}
