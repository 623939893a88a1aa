/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Converts one stored row to the numbers that the model needs, and checks them.
 * The error names file, row and value. */
#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "hdf5io/dataset_impl.h"

/* Allowed difference between a sum of probabilities and 1. */
#define SHARES_SLACK 1e-3

/* What error sentences begin with: the option that asks for the field. */
static const char *place_of(const dataset_field_t *field)
{
    return field->place == NULL ? "" : field->place;
}

static const char *colon_of(const dataset_field_t *field)
{
    return field->place == NULL ? "" : ": ";
}

/* Convert the stored [value] to a class number; false if it is neither a class
 * number nor the ignored one. */
static bool row_class(const dataset_field_t *field, int64_t value, int64_t *out)
{
    int64_t class;

    if (field->ignore && value == field->ignored) {
        *out = value;
        return true;
    }
    if (__builtin_add_overflow(value, field->whole, &class) || class < 0 ||
        class >= field->limit)
        return false;
    *out = class;
    return true;
}

static err_code_t row_classes(const dataset_row_t *row, int64_t *out,
                              err_t *err)
{
    const dataset_field_t *field = row->field;
    const hdf5io_column_t *column = row->column;
    const char *next = row->stored;
    char text[64];
    int64_t i = 0, value;

    for (; i < column->elems; i++) {
        if (hdf5io_convert_ints(column->type, next, 1, &value) != 1 ||
            !row_class(field, value, &out[i]))
            break;
        next += hdf5io_convert_bytes(column->type);
    }
    if (i == column->elems)
        return ERR_OK;
    return err_set(
        err, ERR_DATA,
        "%s%s%s: row %" PRId64 " of %s holds label %s: expected a "
        "whole number from %" PRId64 " to %" PRId64
        ", as the model has %" PRId64 " classes",
        place_of(field), colon_of(field), row->file, row->number, column->path,
        hdf5io_convert_format(column->type, next, text, sizeof text),
        -field->whole, field->limit - 1 - field->whole, field->limit);
}

static err_code_t row_tokens(const dataset_row_t *row, int32_t *out, err_t *err)
{
    const dataset_field_t *field = row->field;
    const hdf5io_column_t *column = row->column;
    const size_t bytes = hdf5io_convert_bytes(column->type);
    char text[64];

    for (int64_t i = 0; i < column->elems; i++) {
        const void *from = (const char *)row->stored + (size_t)i * bytes;
        int64_t value;

        if (hdf5io_convert_ints(column->type, from, 1, &value) == 1 &&
            !__builtin_add_overflow(value, field->whole, &value) &&
            value >= 0 && value < field->limit) {
            out[i] = (int32_t)value;
            continue;
        }
        return err_set(
            err, ERR_DATA,
            "%s: row %" PRId64 " of %s holds token %s at position %" PRId64
            ": expected a whole number from %" PRId64 " to %" PRId64
            ", as the model has %" PRId64 " tokens",
            row->file, row->number, column->path,
            hdf5io_convert_format(column->type, from, text, sizeof text), i,
            -field->whole, field->limit - 1 - field->whole, field->limit);
    }
    return ERR_OK;
}

/* Do the [elems] numbers at [x] sum to 1 in each group of [way]? *sum becomes
 * the sum of the last group that was checked. */
static bool shares_sum(const float *x, int64_t elems, hdf5io_sum_t way,
                       double *sum)
{
    const int64_t count = way.count, step = way.step;

    for (int64_t begin = 0; begin < elems / count; begin++) {
        const float *from = x + begin / step * step * count + begin % step;

        *sum = 0;
        for (int64_t i = 0; i < count; i++)
            *sum += (double)from[i * step];
        if (!(fabs(*sum - 1) <= SHARES_SLACK))
            return false;
    }
    return true;
}

/* Are the converted numbers at [x] probabilities? */
static err_code_t row_shares(const dataset_row_t *row, const float *x,
                             err_t *err)
{
    const dataset_field_t *field = row->field;
    const hdf5io_column_t *column = row->column;
    const char *place = place_of(field), *colon = colon_of(field);
    double sum = 0;

    for (int64_t i = 0; i < column->elems; i++)
        if (!(x[i] >= 0)) /* negative or NaN */
            return err_set(err, ERR_DATA,
                           "%s%s%s: row %" PRId64 " of %s holds %g at position "
                           "%" PRId64 ": %s",
                           place, colon, row->file, row->number, column->path,
                           (double)x[i], i, field->shares);
    for (int i = 0; i < HDF5IO_SUMS_MAX && field->sums[i].count > 0; i++)
        if (shares_sum(x, column->elems, field->sums[i], &sum))
            return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s%s%s: row %" PRId64 " of %s sums to %g: %s", place, colon,
                   row->file, row->number, column->path, sum, field->shares);
}

err_code_t hdf5io_dataset_row(const dataset_row_t *row, err_t *err)
{
    const dataset_field_t *field = row->field;
    const hdf5io_column_t *column = row->column;
    const int64_t at = row->slot * column->elems;
    float *reals;

    check(column->elems == field->elems, "%lld of %lld values",
          (long long)column->elems, (long long)field->elems);
    switch (field->as) {
    case HDF5IO_AS_TOKENS:
        return row_tokens(row, (int32_t *)row->out + at, err);
    case HDF5IO_AS_CLASSES:
        return row_classes(row, (int64_t *)row->out + at, err);
    case HDF5IO_AS_REALS:
        reals = (float *)row->out + at;
        hdf5io_transform_reals(&field->transform, column->type, row->stored,
                               reals);
        if (field->shares != NULL)
            return row_shares(row, reals, err);
        break;
    }
    return ERR_OK;
}

bool hdf5io_dataset_row_same(const dataset_field_t *field,
                             const hdf5io_column_t *column)
{
    return field->as == HDF5IO_AS_REALS && field->transform.made &&
           field->transform.plain && field->shares == NULL &&
           column->type.kind == CONVERT_F32 && !column->type.swap;
}
