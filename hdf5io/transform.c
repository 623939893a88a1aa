/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Numbers become float64 in pieces that stay in the cache, and then float32.
 * Each step is a loop that the compiler vectorizes: along a run of one channel,
 * or along the channels where each number has another one.
 */
#include "hdf5io/transform.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clones.h"
#include "base/mem.h"

#define PIECE 512

/* ---- making -------------------------------------------------------------- */

/* Find the channels of the samples. They are those of `cddp-data stats`. */
static void channels_find(const transform_source_t *source,
                          hdf5io_transform_t *out)
{
    const bool along = source->ndim == 1 || source->ndim >= 3;

    out->elems = 1;
    for (int d = 0; d < source->ndim; d++)
        out->elems *= (int64_t)source->dims[d];
    out->channels = along ? (int64_t)source->dims[0] : 1;
    out->inner = out->elems / out->channels;
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

    channels_find(source, &made);
    if (field->mean.count > 0 || field->std.count > 0)
        rc = lists_make(field, source, &made, err);
    made.plain = made.scale == 1 && made.shift == 0 && made.mean == NULL;
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

/* ---- numbers ------------------------------------------------------------- */

BASE_CLONES static void transform_scale(const double *in, int64_t count,
                                        double scale, double shift, float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(in[i] * scale + shift);
}

/* All numbers have one mean and one std. */
BASE_CLONES static void transform_run(const double *in, int64_t count,
                                      const hdf5io_transform_t *how,
                                      int64_t channel, float *out)
{
    const double scale = how->scale, shift = how->shift;
    const double mean = how->mean[channel], std = how->std[channel];

    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((in[i] * scale + shift - mean) / std);
}

/* Each number has its own mean and std, from those of [channel] on. */
BASE_CLONES static void transform_row(const double *in, int64_t count,
                                      const hdf5io_transform_t *how,
                                      int64_t channel, float *out)
{
    const double *mean = how->mean + channel, *std = how->std + channel;
    const double scale = how->scale, shift = how->shift;

    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((in[i] * scale + shift - mean[i]) / std[i]);
}

/* Transform the numbers [first, first + count) of a sample. */
static void transform_piece(const hdf5io_transform_t *how, const double *in,
                            int64_t first, int64_t count, float *out)
{
    if (how->mean == NULL) {
        transform_scale(in, count, how->scale, how->shift, out);
        return;
    }
    while (count > 0) {
        const int64_t channel = first / how->inner % how->channels;
        const int64_t left = how->inner == 1 ? how->channels - channel
                                             : how->inner - first % how->inner;
        const int64_t take = left < count ? left : count;

        if (how->inner == 1)
            transform_row(in, take, how, channel, out);
        else
            transform_run(in, take, how, channel, out);
        in += take;
        out += take;
        first += take;
        count -= take;
    }
}

void hdf5io_transform_reals(const hdf5io_transform_t *transform,
                            convert_type_t type, const void *in, float *out)
{
    const size_t bytes = hdf5io_convert_bytes(type);
    double piece[PIECE];

    if (transform->plain) {
        hdf5io_convert_floats(type, in, (size_t)transform->elems, out);
        return;
    }
    for (int64_t from = 0; from < transform->elems; from += PIECE) {
        const int64_t left = transform->elems - from;
        const int64_t count = left < PIECE ? left : PIECE;

        hdf5io_convert_doubles(type, (const char *)in + (size_t)from * bytes,
                               (size_t)count, piece);
        transform_piece(transform, piece, from, count, out + from);
    }
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
