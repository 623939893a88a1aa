/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Converts one stored row to the numbers that the model needs, and checks them.
 * The error names file, row and value. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hdf5io/dataset_row.h"

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

/* Set the error about the stored number at [value], which is no class. */
static err_code_t class_fail(const dataset_row_t *row, const void *value,
                             err_t *err)
{
    const dataset_field_t *field = row->field;
    const bool one_hot = field->transform.classes > 0;
    char text[64];

    return err_set(
        err, ERR_DATA,
        "%s%s%s: row %" PRId64 " of %s holds label %s: expected a "
        "whole number from %" PRId64 " to %" PRId64 ", as %s %" PRId64 "%s",
        place_of(field), colon_of(field), row->file, row->number,
        row->column->path,
        hdf5io_convert_format(row->column->type, value, text, sizeof text),
        -field->whole, field->limit - 1 - field->whole,
        one_hot ? "one_hot is" : "the model has", field->limit,
        one_hot ? "" : " classes");
}

static transform_crop_t crop_of(const dataset_row_t *row)
{
    return row->crop != NULL ? *row->crop
                             : hdf5io_transform_crop(&row->field->transform,
                                                     row->draw, row->sample);
}

/* Convert the stored pixels of [line] to classes at [out]. */
static err_code_t line_classes(const dataset_row_t *row, transform_line_t line,
                               int64_t *out, err_t *err)
{
    const size_t bytes = hdf5io_convert_bytes(row->column->type);
    const char *from = (const char *)row->stored + (size_t)line.from * bytes;
    int64_t value;

    for (int64_t i = 0; i < line.left; i++)
        out[i] = row->field->ignored;
    out += line.left;
    for (int64_t i = 0; i < line.count; i++, from += bytes)
        if (hdf5io_convert_ints(row->column->type, from, 1, &value) != 1 ||
            !row_class(row->field, value,
                       &out[line.back ? line.count - 1 - i : i]))
            return class_fail(row, from, err);
    out += line.count;
    for (int64_t i = 0; i < line.right; i++)
        out[i] = row->field->ignored;
    return ERR_OK;
}

static err_code_t row_classes(const dataset_row_t *row, int64_t *out,
                              err_t *err)
{
    const hdf5io_transform_t *how = &row->field->transform;
    const transform_crop_t crop = crop_of(row);
    err_code_t rc = ERR_OK;

    for (int64_t l = 0; l < how->planes * how->out_height && rc == ERR_OK; l++)
        rc = line_classes(row, hdf5io_transform_line(how, crop, l),
                          out + l * how->out_width, err);
    return rc;
}

/* Write 1 to the place of each stored class; [out] holds zeros. */
static err_code_t row_one_hot(const dataset_row_t *row, float *out, err_t *err)
{
    const hdf5io_transform_t *how = &row->field->transform;
    const size_t bytes = hdf5io_convert_bytes(row->column->type);
    const transform_crop_t crop = crop_of(row);
    const int64_t apart = how->out_elems / how->classes;

    for (int64_t l = 0; l < how->planes * how->out_height; l++) {
        const transform_line_t line = hdf5io_transform_line(how, crop, l);
        const char *from =
            (const char *)row->stored + (size_t)line.from * bytes;
        float *first = out + l * how->out_width + line.left;
        int64_t value, class;

        for (int64_t i = 0; i < line.count; i++, from += bytes) {
            if (hdf5io_convert_ints(row->column->type, from, 1, &value) != 1 ||
                !row_class(row->field, value, &class))
                return class_fail(row, from, err);
            first[class * apart + (line.back ? line.count - 1 - i : i)] = 1;
        }
    }
    return ERR_OK;
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

/* Refuse an integer that float32 cannot hold. */
static err_code_t row_exact(const dataset_row_t *row, err_t *err)
{
    const hdf5io_column_t *column = row->column;
    const size_t count = (size_t)column->elems;
    const size_t bad = hdf5io_convert_inexact(column->type, row->stored, count);
    char text[64];

    if (bad == count)
        return ERR_OK;
    return err_set(
        err, ERR_DATA,
        "%s%s%s: row %" PRId64 " of %s holds %s, which float32 rounds to "
        "another integer: set cast: float32 beside its path to allow that, "
        "or scale it",
        place_of(row->field), colon_of(row->field), row->file, row->number,
        column->path,
        hdf5io_convert_format(column->type,
                              (const char *)row->stored +
                                  bad * hdf5io_convert_bytes(column->type),
                              text, sizeof text));
}

/* Convert to real numbers. */
static err_code_t row_reals(const dataset_row_t *row, float *out, err_t *err)
{
    const hdf5io_transform_t *how = &row->field->transform;
    err_code_t rc = ERR_OK;

    if (how->classes > 0) {
        memset(out, 0, (size_t)how->out_elems * sizeof *out);
        return row_one_hot(row, out, err);
    }
    if (how->exact)
        rc = row_exact(row, err);
    if (rc == ERR_OK)
        hdf5io_transform_reals(how, crop_of(row), row->column->type,
                               row->stored, out);
    return rc;
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

    for (int64_t i = 0; i < field->elems; i++)
        if (!(x[i] >= 0)) /* negative or NaN */
            return err_set(err, ERR_DATA,
                           "%s%s%s: row %" PRId64 " of %s holds %g at position "
                           "%" PRId64 ": %s",
                           place, colon, row->file, row->number, column->path,
                           (double)x[i], i, field->shares);
    for (int i = 0; i < HDF5IO_SUMS_MAX && field->sums[i].count > 0; i++)
        if (shares_sum(x, field->elems, field->sums[i], &sum))
            return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s%s%s: row %" PRId64 " of %s sums to %g: %s", place, colon,
                   row->file, row->number, column->path, sum, field->shares);
}

err_code_t hdf5io_dataset_row(const dataset_row_t *row, err_t *err)
{
    const dataset_field_t *field = row->field;
    const int64_t at = row->slot * field->elems;
    float *reals;
    err_code_t rc;

    check(row->column->elems == field->transform.elems &&
              field->transform.out_elems == field->elems,
          "%lld values become %lld, not %lld", (long long)row->column->elems,
          (long long)field->transform.out_elems, (long long)field->elems);
    switch (field->as) {
    case HDF5IO_AS_TOKENS:
        return row_tokens(row, (int32_t *)row->out + at, err);
    case HDF5IO_AS_CLASSES:
        return row_classes(row, (int64_t *)row->out + at, err);
    case HDF5IO_AS_REALS:
        reals = (float *)row->out + at;
        rc = row_reals(row, reals, err);
        if (rc == ERR_OK && field->shares != NULL)
            rc = row_shares(row, reals, err);
        return rc;
    }
    return ERR_OK;
}

bool hdf5io_dataset_row_same(const dataset_field_t *field,
                             const hdf5io_column_t *column)
{
    return field->as == HDF5IO_AS_REALS && field->transform.made &&
           field->transform.plain && !field->transform.moves &&
           field->transform.classes == 0 && field->shares == NULL &&
           column->type.kind == CONVERT_F32 && !column->type.swap;
}
