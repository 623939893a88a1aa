/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Finds what is done to the samples of a dataset, once for all of them. */
#include "hdf5io/transform.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

/* ---- making -------------------------------------------------------------- */

/* Find the channels of the samples. They are those of `cddp-data stats`. */
static void channels_find(const hdf5io_field_t *field,
                          const transform_source_t *source,
                          hdf5io_transform_t *out)
{
    const bool last = field->layout == HDF5IO_NHWC;
    const bool first = source->ndim == 1 || source->ndim >= 3;

    out->elems = 1;
    for (int d = 0; d < source->ndim; d++)
        out->elems *= (int64_t)source->dims[d];
    out->channels = 1;
    if ((last || first) && source->ndim > 0)
        out->channels = (int64_t)source->dims[last ? source->ndim - 1 : 0];
    out->inner = last ? 1 : out->elems / out->channels;
}

/* Divide the stored sample into planes, lines and pixels. */
static void planes_find(const transform_source_t *source, bool last,
                        hdf5io_transform_t *out)
{
    const int ndim = source->ndim - last;

    out->width = (int64_t)source->dims[ndim - 1];
    out->height = ndim > 1 ? (int64_t)source->dims[ndim - 2] : 1;
    out->planes = out->elems / out->pixel / out->width / out->height;
}

/* Set the size of the crop. */
static err_code_t crop_find(const hdf5io_field_t *field,
                            const transform_source_t *source,
                            hdf5io_transform_t *out, err_t *err)
{
    const opt_ints_t *crop = &field->crop;

    out->pad = field->pad;
    out->flip = (hdf5io_flip_t)field->flip;
    out->out_height = out->height;
    out->out_width = out->width;
    if (crop->count > 2)
        return err_set(err, ERR_DATA,
                       "%s: %s.crop has %d numbers: expected height and width",
                       source->file, source->key, crop->count);
    if (crop->count > 0) {
        out->out_height = crop->items[0];
        out->out_width = crop->items[crop->count - 1];
    }
    if (out->out_height <= out->height + 2 * out->pad &&
        out->out_width <= out->width + 2 * out->pad)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s: %s.crop is %" PRId64 " x %" PRId64
                   ", but samples of %s "
                   "are %" PRId64 " x %" PRId64 " with %" PRId64 " of pad on "
                   "each side: a crop is at most as large",
                   source->file, source->key, out->out_height, out->out_width,
                   source->path, out->height, out->width, out->pad);
}

/* Find how numbers change their places. */
static err_code_t moves_find(const hdf5io_field_t *field,
                             const transform_source_t *source,
                             hdf5io_transform_t *out, err_t *err)
{
    const bool last = field->layout == HDF5IO_NHWC;
    const bool image = field->flip != HDF5IO_FLIP_NONE ||
                       field->crop.count > 0 || field->pad > 0;
    err_code_t rc = ERR_OK;

    out->planes = out->height = out->out_height = out->pixel = 1;
    out->width = out->out_width = out->out_elems = out->elems;
    out->classes = field->one_hot;
    if ((last || image) && source->ndim < 2 + (last && image))
        return err_set(err, ERR_DATA,
                       "%s: samples of %s have %d dimension%s, but %s of %s "
                       "needs %d at least",
                       source->file, source->path, source->ndim,
                       source->ndim == 1 ? "" : "s",
                       image ? "flip, crop or pad" : "layout: nhwc",
                       source->key, 2 + (last && image));
    if (last || image) {
        out->pixel = last ? out->channels : 1;
        out->moves = image || out->pixel > 1;
        planes_find(source, last, out);
        rc = crop_find(field, source, out, err);
    }
    if (rc == ERR_OK &&
        (__builtin_mul_overflow(out->planes * out->pixel, out->out_height,
                                &out->out_elems) ||
         __builtin_mul_overflow(out->out_elems, out->out_width,
                                &out->out_elems) ||
         __builtin_mul_overflow(out->out_elems,
                                out->classes > 0 ? out->classes : 1,
                                &out->out_elems) ||
         out->out_elems > INT32_MAX))
        rc = err_set(err, ERR_DATA,
                     "%s: crop or one_hot of %s makes too many values of a "
                     "sample of %s: expected at most %d",
                     source->file, source->key, source->path, INT32_MAX);
    return rc;
}

/* Are there as many numbers as channels, or one for all? */
static err_code_t list_check(const transform_source_t *source, const char *name,
                             const opt_reals_t *list,
                             const hdf5io_transform_t *transform, err_t *err)
{
    if (list->count <= 1 || list->count == transform->channels)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s: %s has numbers for %d channels, but samples of %s have "
                   "%" PRId64 " channel%s: give one number for each channel, "
                   "or one for all",
                   source->file, name, list->count, source->path,
                   transform->channels, transform->channels == 1 ? "" : "s");
}

/* [list] as [channels] numbers; [fallback] if it is empty. */
static err_code_t list_spread(const opt_reals_t *list, double fallback,
                              int64_t channels, double **out, err_t *err)
{
    err_code_t rc = mem_new(double, (size_t)channels, "channels", out, err);

    for (int64_t c = 0; c < channels && rc == ERR_OK; c++)
        (*out)[c] =
            list->count == 0 ? fallback : list->items[list->count == 1 ? 0 : c];
    return rc;
}

static err_code_t lists_make(const hdf5io_field_t *field,
                             const transform_source_t *source,
                             hdf5io_transform_t *out, err_t *err)
{
    char name[64];
    err_code_t rc;

    snprintf(name, sizeof name, "%s.mean", source->key);
    rc = list_check(source, name, &field->mean, out, err);
    snprintf(name, sizeof name, "%s.std", source->key);
    if (rc == ERR_OK)
        rc = list_check(source, name, &field->std, out, err);
    if (rc == ERR_OK)
        rc = list_spread(&field->mean, 0, out->channels, &out->mean, err);
    if (rc == ERR_OK)
        rc = list_spread(&field->std, 1, out->channels, &out->std, err);
    return rc;
}

err_code_t hdf5io_transform_make(const hdf5io_field_t *field,
                                 const transform_source_t *source,
                                 hdf5io_transform_t *out, err_t *err)
{
    hdf5io_transform_t made = {
        .made = true, .scale = field->scale, .shift = field->shift};
    err_code_t rc = ERR_OK;

    channels_find(field, source, &made);
    rc = moves_find(field, source, &made, err);
    if (rc == ERR_OK && (field->mean.count > 0 || field->std.count > 0))
        rc = lists_make(field, source, &made, err);
    made.plain = made.scale == 1 && made.shift == 0 && made.mean == NULL;
    made.exact = made.plain && field->cast == HDF5IO_CAST_AUTO;
    if (rc == ERR_OK)
        *out = made;
    else
        hdf5io_transform_free(&made);
    return rc;
}

void hdf5io_transform_free(hdf5io_transform_t *transform)
{
    mem_free(transform->mean);
    mem_free(transform->std);
    transform->mean = transform->std = NULL;
}

/* ---- words --------------------------------------------------------------- */

void hdf5io_transform_say(const hdf5io_transform_t *transform, str_buf_t *out)
{
    const bool lists = transform->mean != NULL;

    if (transform->plain)
        return;
    str_buf_add(out, "%sx", lists ? "(" : "");
    if (transform->scale != 1)
        str_buf_add(out, " * %g", transform->scale);
    if (transform->shift != 0)
        str_buf_add(out, " %c %g", transform->shift < 0 ? '-' : '+',
                    transform->shift < 0 ? -transform->shift
                                         : transform->shift);
    if (lists)
        str_buf_add(out, " - mean) / std, %" PRId64 " channel%s",
                    transform->channels, transform->channels == 1 ? "" : "s");
}

void hdf5io_transform_moves_say(const hdf5io_transform_t *transform,
                                str_buf_t *out)
{
    static const char *const flips[] = {"", "left to right", "top to bottom",
                                        "left to right, top to bottom"};
    const char *comma = "";

    if (transform->pixel > 1) {
        str_buf_add(out, "channels first");
        comma = ", ";
    }
    if (transform->out_height != transform->height ||
        transform->out_width != transform->width || transform->pad > 0) {
        str_buf_add(out,
                    "%s%" PRId64 " x %" PRId64 " of %" PRId64 " x %" PRId64,
                    comma, transform->out_height, transform->out_width,
                    transform->height, transform->width);
        if (transform->pad > 0)
            str_buf_add(out, " with a border of %" PRId64, transform->pad);
        str_buf_add(out, " (in training at random, else the middle)");
        comma = ", ";
    }
    if (transform->flip != HDF5IO_FLIP_NONE) {
        str_buf_add(out, "%smirrored %s (half of the samples, in training)",
                    comma, flips[transform->flip]);
        comma = ", ";
    }
    if (transform->classes > 0)
        str_buf_add(out, "%s1 of %" PRId64 " numbers for each class", comma,
                    transform->classes);
}
