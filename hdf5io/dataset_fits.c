/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Compares the samples of a dataset with what the model expects: the number of
 * values, scale and shift, and whether class numbers are whole. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"

/* Set the error for a field of the wrong size or type. [say] is the sentence
 * without place and file. */
static err_code_t dataset_misfit(const hdf5io_want_t *want, const char *file,
                                 const char *say, err_t *err)
{
    return err_set(err, ERR_DATA, "%s%s%s: %s",
                   want->place == NULL ? "" : want->place,
                   want->place == NULL ? "" : ": ", file, say);
}

/* Says in error sentences that crop or one_hot change the number of values. */
static const char *changes_of(const hdf5io_transform_t *how)
{
    return how->out_elems == how->elems ? "" : " after crop and one_hot";
}

static err_code_t dataset_input_fits(const hdf5io_want_t *want,
                                     const char *file,
                                     const hdf5io_column_t *column,
                                     const hdf5io_transform_t *how, err_t *err)
{
    char shape[256], say[ERR_TEXT_MAX];

    if (how->out_elems == want->elems)
        return ERR_OK;
    snprintf(say, sizeof say,
             "samples of %s are %s (%" PRId64
             " values%s), but model.input%s%s is %s (%" PRId64 " values)",
             column->path, hdf5io_column_shape(column, shape, sizeof shape),
             how->out_elems, changes_of(how), want->name == NULL ? "" : ".",
             want->name == NULL ? "" : want->name, want->shape, want->elems);
    return dataset_misfit(want, file, say, err);
}

static err_code_t dataset_target_fits(const hdf5io_want_t *want,
                                      const char *file,
                                      const hdf5io_column_t *column,
                                      const hdf5io_transform_t *how, err_t *err)
{
    const bool class = want->as == HDF5IO_AS_CLASSES;
    const bool soft = class && how->out_elems == want->elems * want->limit;
    char shape[256], say[ERR_TEXT_MAX];

    if (how->out_elems == want->elems)
        return ERR_OK;
    hdf5io_column_shape(column, shape, sizeof shape);
    snprintf(say, sizeof say,
             "targets of %s are %s (%" PRId64 " values%s), but the %s %" PRId64
             " %s%s%s%s",
             column->path, shape, how->out_elems, changes_of(how),
             class ? "loss takes" : "model gives", want->elems,
             class ? "class number" : "value", want->elems == 1 ? "" : "s",
             class ? " a sample" : "",
             soft ? ": if these are probabilities of the classes, set its "
                    "soft_target"
                  : "");
    return dataset_misfit(want, file, say, err);
}

err_code_t hdf5io_dataset_fits(const hdf5io_dataset_t *dataset,
                               const hdf5io_dataset_config_t *config,
                               const hdf5io_shard_t *shard, err_t *err)
{
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);
    err_code_t rc = ERR_OK;

    for (int k = 0; k < dataset->field_count && rc == ERR_OK; k++)
        rc = k < dataset->inputs
                 ? dataset_input_fits(&config->inputs[k], shard->path,
                                      &columns[k],
                                      &dataset->fields[k].transform, err)
                 : dataset_target_fits(&config->targets[k - dataset->inputs],
                                       shard->path, &columns[k],
                                       &dataset->fields[k].transform, err);
    return rc;
}

/* The entry of the run file that describes field [k]. */
static const hdf5io_field_t *dataset_field_of(const hdf5io_dataset_t *dataset,
                                              int k)
{
    const hdf5io_dataset_config_t *config = dataset->config;

    if (k < dataset->inputs)
        return config->inputs[k].field;
    return config->sequence > 0 ? config->inputs[0].field
                                : config->targets[k - dataset->inputs].field;
}

err_code_t hdf5io_dataset_transforms_make(hdf5io_dataset_t *dataset,
                                          const hdf5io_shard_t *shard,
                                          err_t *err)
{
    const hdf5io_column_t *columns = hdf5io_dataset_columns(dataset, shard);
    uint64_t dims[H5S_MAX_RANK];
    err_code_t rc = ERR_OK;

    for (int k = 0; k < dataset->field_count && rc == ERR_OK; k++) {
        const transform_source_t source = {
            .file = shard->path,
            .path = columns[k].path,
            .key = k < dataset->inputs ? "data.input" : "data.target",
            .ndim = columns[k].ndim,
            .dims = dims};

        for (int d = 0; d < columns[k].ndim; d++)
            dims[d] = columns[k].dims[d];
        if (!dataset->fields[k].transform.made)
            rc = hdf5io_transform_make(dataset_field_of(dataset, k), &source,
                                       &dataset->fields[k].transform, err);
    }
    return rc;
}

/* Refuse a setting of a field. */
static err_code_t want_refuse(const hdf5io_want_t *want, const char *key,
                              const char *why, err_t *err)
{
    return err_set(err, ERR_CONFIG, "%s%sdata.%s%s%s: %s",
                   want->place == NULL ? "" : want->place,
                   want->place == NULL ? "" : ": ", key,
                   want->name == NULL ? "" : ".",
                   want->name == NULL ? "" : want->name, why);
}

/* Check scale, shift, mean and std of a field of whole numbers. Error sentences
 * call these numbers [what]. */
static err_code_t want_whole_check(const hdf5io_want_t *want, const char *key,
                                   const char *what, err_t *err)
{
    const hdf5io_field_t *field = want->field;
    const bool lists = field->mean.count > 0 || field->std.count > 0;
    char why[256];

    if (field->scale == 1.0 && field->shift == rint(field->shift) &&
        fabs(field->shift) <= INT32_MAX && !lists)
        return ERR_OK;
    snprintf(why, sizeof why,
             "scale %g and shift %g%s: %s take scale 1 and a whole shift, and "
             "no mean or std",
             field->scale, field->shift, lists ? ", and mean or std" : "",
             what);
    return want_refuse(want, key, why, err);
}

err_code_t hdf5io_want_check(const hdf5io_want_t *want, const char *key,
                             err_t *err)
{
    const hdf5io_field_t *field = want->field;
    const bool last = field->layout == HDF5IO_NHWC;
    const bool image = field->flip != HDF5IO_FLIP_NONE ||
                       field->crop.count > 0 || field->pad > 0;

    if (want->as == HDF5IO_AS_REALS && field->one_hot == 0)
        return ERR_OK;
    if (want->as != HDF5IO_AS_REALS && field->one_hot > 0)
        return want_refuse(want, key,
                           "one_hot makes real numbers, but whole numbers are "
                           "needed here: leave one_hot out",
                           err);
    if (last || (want->as == HDF5IO_AS_TOKENS && image))
        return want_refuse(want, key,
                           "layout is for real numbers only; flip, crop and "
                           "pad are for real numbers and class numbers only: "
                           "leave them out",
                           err);
    if (want->as == HDF5IO_AS_CLASSES && field->pad > 0 && !want->ignore)
        return want_refuse(want, key,
                           "pad adds a border of class numbers that the loss "
                           "ignores: set ignore_index of the loss, too",
                           err);
    return want_whole_check(
        want, key, want->as == HDF5IO_AS_TOKENS ? "tokens" : "class numbers",
        err);
}

/* The first shard that has samples; there is at least one. */
static hdf5io_shard_t *dataset_filled(const hdf5io_dataset_t *dataset)
{
    int s = 0;

    while (s < dataset->count && dataset->shards[s].rows == 0)
        s++;
    check(s < dataset->count, "%d shards have no sample", dataset->count);
    return &dataset->shards[s];
}

err_code_t hdf5io_dataset_classes_check(hdf5io_dataset_t *dataset,
                                        const hdf5io_want_t *want, int index,
                                        err_t *err)
{
    hdf5io_shard_t *shard = dataset_filled(dataset);
    const hdf5io_column_t *column =
        &hdf5io_dataset_columns(dataset, shard)[index];
    const column_run_t run = {.row = 0, .count = 1};
    dataset_rows_t rows = {.dataset = dataset,
                           .shard = shard,
                           .column = index,
                           .runs = &run,
                           .count = 1};
    char say[ERR_TEXT_MAX], text[64];
    int64_t value;
    size_t at = 0;
    void *row;
    err_code_t rc;

    if (want->as != HDF5IO_AS_CLASSES || !hdf5io_convert_is_real(column->type))
        return ERR_OK;
    rc = mem_alloc(column->row_bytes, "a sample", &row, err);
    if (rc != ERR_OK)
        return rc;
    rows.out = row;
    rc = hdf5io_dataset_rows(&rows, err);
    while (rc == ERR_OK && at < column->row_bytes &&
           hdf5io_convert_ints(column->type, (char *)row + at, 1, &value) == 1)
        at += hdf5io_convert_bytes(column->type);
    if (rc == ERR_OK && at < column->row_bytes) {
        snprintf(say, sizeof say,
                 "targets of %s are real numbers (the first sample holds %s), "
                 "but the loss takes class numbers from 0 to %" PRId64
                 ": use a loss for real numbers such as mse, or store classes",
                 column->path,
                 hdf5io_convert_format(column->type, (char *)row + at, text,
                                       sizeof text),
                 want->limit - 1);
        rc = dataset_misfit(want, shard->path, say, err);
    }
    mem_free(row);
    return rc;
}
