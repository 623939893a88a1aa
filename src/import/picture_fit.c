/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Sizes and channels. A picture is resized along its rows, then along its
 * columns. A new pixel is the mean of the old ones within [support] of its
 * centre, with weights that fall linearly: in fixed point, rounded after each
 * direction, as Pillow does it, so that the numbers are the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "import/picture.h"

#define WEIGHT_BITS 22
#define WEIGHT_ONE (1 << WEIGHT_BITS)

/* The old pixels that make one new one. */
typedef struct span {
    int first, count;
} span_t;

/* How a line of [before] pixels becomes one of [after]. */
typedef struct line {
    int before, after;
    int most; /* weights of a new pixel */
    span_t *spans;
    int *weights; /* [after, most] */
} line_t;

/* ---- channels ------------------------------------------------------------ */

static unsigned char grey(const unsigned char *pixel)
{
    return (unsigned char)((pixel[0] * 19595 + pixel[1] * 38470 +
                            pixel[2] * 7471 + 0x8000) >>
                           16);
}

static err_code_t channels_set(picture_t *picture, int channels, err_t *err)
{
    const size_t pixels = (size_t)picture->height * (size_t)picture->width;
    picture_t made = *picture;
    err_code_t rc;

    if (channels == 0 || channels == picture->channels)
        return ERR_OK;
    made.channels = channels;
    rc = picture_alloc(&made, err);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < pixels; i++)
        if (channels == 1)
            made.pixels[i] = grey(picture->pixels + 3 * i);
        else
            for (size_t c = 0; c < 3; c++)
                made.pixels[3 * i + c] = picture->pixels[i];
    picture_free(picture);
    *picture = made;
    return ERR_OK;
}

/* ---- size ---------------------------------------------------------------- */

static void line_free(line_t *line)
{
    mem_free(line->spans);
    mem_free(line->weights);
}

/* Find the weights of new pixel [index]. */
static void weights_find(line_t *line, int index, double *weight)
{
    const double scale = (double)line->before / line->after;
    const double support = scale < 1 ? 1 : scale;
    const double center = (index + 0.5) * scale;
    int first = (int)(center - support + 0.5);
    int end = (int)(center + support + 0.5);
    double sum = 0;

    first = first < 0 ? 0 : first;
    end = end > line->before ? line->before : end;
    for (int i = first; i < end; i++) {
        const double away = (i - center + 0.5) * (1.0 / support);
        const double near = away < 0 ? 1 + away : 1 - away;

        weight[i - first] = near > 0 ? near : 0;
        sum += weight[i - first];
    }
    for (int i = 0; i < end - first; i++)
        line->weights[(ptrdiff_t)index * line->most + i] =
            (int)(0.5 + weight[i] / sum * WEIGHT_ONE);
    line->spans[index] = (span_t){.first = first, .count = end - first};
}

static err_code_t line_open(int before, int after, line_t *line, err_t *err)
{
    const int widest = before > after ? before / after + 1 : 1;
    double *weight = NULL;
    err_code_t rc;

    *line = (line_t){.before = before, .after = after, .most = 2 * widest + 1};
    rc = mem_new(span_t, (size_t)after, "a picture", &line->spans, err);
    if (rc == ERR_OK)
        rc = mem_new(int, (size_t)after *(size_t)line->most, "a picture",
                     &line->weights, err);
    if (rc == ERR_OK)
        rc = mem_new(double, (size_t)line->most, "a picture", &weight, err);
    for (int i = 0; i < after && rc == ERR_OK; i++)
        weights_find(line, i, weight);
    mem_free(weight);
    return rc;
}

/* One new pixel of a line whose old ones are [stride] bytes apart. */
static unsigned char pixel_make(const line_t *line, int index,
                                const unsigned char *from, size_t stride)
{
    const span_t span = line->spans[index];
    const int *weights = line->weights + (ptrdiff_t)index * line->most;
    int sum = WEIGHT_ONE / 2;

    from += (size_t)span.first * stride;
    for (int i = 0; i < span.count; i++)
        sum += from[(size_t)i * stride] * weights[i];
    sum >>= WEIGHT_BITS;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void lines_make(const line_t *line, const picture_t *from,
                       const picture_t *to, bool rows)
{
    const size_t channels = (size_t)from->channels;
    const size_t from_row = (size_t)from->width * channels;
    const size_t to_row = (size_t)to->width * channels;

    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            for (size_t c = 0; c < channels; c++)
                to->pixels[(size_t)y * to_row + (size_t)x * channels + c] =
                    rows ? pixel_make(line, x,
                                      from->pixels + (size_t)y * from_row + c,
                                      channels)
                         : pixel_make(line, y,
                                      from->pixels + (size_t)x * channels + c,
                                      from_row);
}

/* Resize the rows (to [size] pixels each) or the columns. */
static err_code_t side_set(picture_t *picture, bool rows, int size, err_t *err)
{
    const int before = rows ? picture->width : picture->height;
    picture_t made = *picture;
    line_t line = {0};
    err_code_t rc;

    if (size == before)
        return ERR_OK;
    *(rows ? &made.width : &made.height) = size;
    made.pixels = NULL;
    rc = picture_alloc(&made, err);
    if (rc == ERR_OK)
        rc = line_open(before, size, &line, err);
    if (rc == ERR_OK) {
        lines_make(&line, picture, &made, rows);
        picture_free(picture);
        *picture = made;
    } else {
        picture_free(&made);
    }
    line_free(&line);
    return rc;
}

static err_code_t size_set(const picture_fit_t *fit, picture_t *picture,
                           err_t *err)
{
    const int64_t height = picture->height, width = picture->width;
    int64_t high = fit->resize_height, wide = fit->resize_width;
    err_code_t rc;

    if (high == 0)
        return ERR_OK;
    if (wide == 0 && width <= height) {
        wide = high;
        high = wide * height / width;
    } else if (wide == 0) {
        wide = high * width / height;
    }
    if (high > PICTURE_EDGE_MAX || wide > PICTURE_EDGE_MAX)
        return err_set(err, ERR_DATA,
                       "it has %lld x %lld pixels: too long for --resize %d",
                       (long long)width, (long long)height, fit->resize_height);
    rc = side_set(picture, true, (int)wide, err);
    return rc == ERR_OK ? side_set(picture, false, (int)high, err) : rc;
}

/* ---- middle -------------------------------------------------------------- */

/* Half of [rest], rounded to the nearest number, of two to the even one. */
static int half(int rest)
{
    const int down = rest / 2;

    return rest % 2 == 1 && down % 2 == 1 ? down + 1 : down;
}

static err_code_t middle_cut(const picture_fit_t *fit, picture_t *picture,
                             err_t *err)
{
    const int high = fit->crop_height, wide = fit->crop_width;
    const size_t channels = (size_t)picture->channels;
    const size_t from_row = (size_t)picture->width * channels;
    const size_t row = (size_t)wide * channels;
    const unsigned char *from;

    if (high == 0)
        return ERR_OK;
    if (high > picture->height || wide > picture->width)
        return err_set(err, ERR_DATA,
                       "it is %d pixels high and %d wide, less than --crop "
                       "%d,%d: add or enlarge --resize",
                       picture->height, picture->width, high, wide);
    from = picture->pixels + (size_t)half(picture->height - high) * from_row +
           (size_t)half(picture->width - wide) * channels;
    for (int y = 0; y < high; y++)
        memmove(picture->pixels + (size_t)y * row, from + (size_t)y * from_row,
                row);
    picture->height = high;
    picture->width = wide;
    return ERR_OK;
}

err_code_t picture_apply(const picture_fit_t *fit, picture_t *picture,
                         err_t *err)
{
    err_code_t rc = channels_set(picture, fit->channels, err);

    if (rc == ERR_OK)
        rc = size_set(fit, picture, err);
    return rc == ERR_OK ? middle_cut(fit, picture, err) : rc;
}
