/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Numbers become float64 in pieces that stay in the cache, and then float32.
 * Each step is a loop that the compiler vectorizes: along numbers of one
 * channel, or, where neighbours are of different channels, along the channels.
 * A sample whose numbers move is transformed line by line.
 */
#include <string.h>

#include "base/clones.h"
#include "base/rng.h"
#include "hdf5io/transform.h"

#define PIECE 512

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

/* Each number has its own mean and std: the first those of [channel], the next
 * those of the next channel, and so on. */
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

/* Transform the stored numbers [first, first + count) of the sample at [in]. */
static void numbers_take(const hdf5io_transform_t *how, convert_type_t type,
                         const void *in, int64_t first, int64_t count,
                         float *out)
{
    const size_t bytes = hdf5io_convert_bytes(type);
    const char *from = (const char *)in + (size_t)first * bytes;
    double piece[PIECE];

    if (how->plain) {
        hdf5io_convert_floats(type, from, (size_t)count, out);
        return;
    }
    for (int64_t at = 0; at < count; at += PIECE) {
        const int64_t take = count - at < PIECE ? count - at : PIECE;

        hdf5io_convert_doubles(type, from + (size_t)at * bytes, (size_t)take,
                               piece);
        transform_piece(how, piece, first + at, take, out + at);
    }
}

/* What a stored 0 of [channel] becomes. */
static float zero_of(const hdf5io_transform_t *how, int64_t channel)
{
    const double zero = 0;
    float out = 0;

    if (!how->plain)
        transform_piece(how, &zero, channel * how->inner, 1, &out);
    return out;
}

/* ---- places -------------------------------------------------------------- */

/* A random number below [count], made of 32 random bits. */
static int64_t below(rng_t *rng, int64_t count)
{
    return (int64_t)((uint64_t)count * rng_u32(rng) >> 32);
}

transform_crop_t hdf5io_transform_crop(const hdf5io_transform_t *transform,
                                       const hdf5io_draw_t *draw,
                                       int64_t sample)
{
    const int64_t high =
        transform->height + 2 * transform->pad - transform->out_height;
    const int64_t wide =
        transform->width + 2 * transform->pad - transform->out_width;
    transform_crop_t crop = {.top = high / 2, .left = wide / 2};
    uint32_t coins;
    rng_t rng;

    if (draw == NULL || !transform->moves)
        return crop;
    /* The random numbers are the same, whether or not there is a flip or crop.
     */
    rng_open(&rng, draw->seed, RNG_AUGMENT, (uint64_t)draw->epoch,
             (uint64_t)sample);
    coins = rng_u32(&rng) & (uint32_t)transform->flip;
    crop.flip_pixels = (coins & HDF5IO_FLIP_HORIZONTAL) != 0;
    crop.flip_lines = (coins & HDF5IO_FLIP_VERTICAL) != 0;
    crop.top = below(&rng, high + 1);
    crop.left = below(&rng, wide + 1);
    return crop;
}

transform_line_t hdf5io_transform_line(const hdf5io_transform_t *transform,
                                       transform_crop_t crop, int64_t line)
{
    const int64_t plane = line / transform->out_height;
    const int64_t wanted = line % transform->out_height;
    const int64_t y =
        crop.top - transform->pad +
        (crop.flip_lines ? transform->out_height - 1 - wanted : wanted);
    const int64_t x = crop.left - transform->pad;
    const int64_t width = transform->out_width;
    const int64_t begin = x > 0 ? x : 0;
    const int64_t end =
        x + width < transform->width ? x + width : transform->width;
    transform_line_t out = {.right = width, .back = crop.flip_pixels};

    if (y < 0 || y >= transform->height || begin >= end)
        return out;
    out.from = (plane * transform->height + y) * transform->width + begin;
    out.count = end - begin;
    out.left = begin - x;
    out.right = width - out.left - out.count;
    if (out.back) {
        const int64_t left = out.left;

        out.left = out.right;
        out.right = left;
    }
    return out;
}

static void reverse(float *x, int64_t count)
{
    for (int64_t i = 0; i < count / 2; i++) {
        const float first = x[i];

        x[i] = x[count - 1 - i];
        x[count - 1 - i] = first;
    }
}

/* Pixels are single numbers: a line is one piece of the output. */
static void line_single(const hdf5io_transform_t *how, convert_type_t type,
                        const void *in, transform_line_t line, float zero,
                        float *out)
{
    for (int64_t i = 0; i < line.left; i++)
        out[i] = zero;
    numbers_take(how, type, in, line.from, line.count, out + line.left);
    if (line.back)
        reverse(out + line.left, line.count);
    for (int64_t i = line.left + line.count; i < how->out_width; i++)
        out[i] = zero;
}

/* Pixels have all channels: distribute them. Lines of neighbouring channels
 * have the distance [apart]. */
static void line_pixels(const hdf5io_transform_t *how, convert_type_t type,
                        const void *in, transform_line_t line, int64_t apart,
                        float *out)
{
    const int64_t channels = how->pixel, all = line.count * channels;
    int64_t channel = 0, pixel = 0;
    float piece[PIECE] = {0};

    for (int64_t c = 0; c < channels && line.count < how->out_width; c++) {
        const float zero = zero_of(how, c);

        for (int64_t i = 0; i < how->out_width; i++)
            out[c * apart + i] = zero;
    }
    for (int64_t at = 0; at < all; at += PIECE) {
        const int64_t take = all - at < PIECE ? all - at : PIECE;

        numbers_take(how, type, in, line.from * channels + at, take, piece);
        for (int64_t i = 0; i < take; i++) {
            out[channel * apart + line.left +
                (line.back ? line.count - 1 - pixel : pixel)] = piece[i];
            if (++channel == channels) {
                channel = 0;
                pixel++;
            }
        }
    }
}

void hdf5io_transform_reals(const hdf5io_transform_t *transform,
                            transform_crop_t crop, convert_type_t type,
                            const void *in, float *out)
{
    const int64_t height = transform->out_height, width = transform->out_width;
    const int64_t lines = transform->planes * height;

    if (!transform->moves) {
        numbers_take(transform, type, in, 0, transform->elems, out);
        return;
    }
    for (int64_t l = 0; l < lines; l++) {
        const transform_line_t line = hdf5io_transform_line(transform, crop, l);
        const int64_t plane = l / height;

        if (transform->pixel == 1)
            line_single(transform, type, in, line,
                        zero_of(transform, plane * transform->channels /
                                               transform->planes),
                        out + l * width);
        else
            line_pixels(transform, type, in, line, lines * width,
                        out + l * width);
    }
}
