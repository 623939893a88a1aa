/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/picture.h"

#include "base/mem.h"

err_code_t picture_alloc(picture_t *picture, err_t *err)
{
    const int height = picture->height, width = picture->width;

    if (height < 1 || width < 1 || height > PICTURE_EDGE_MAX ||
        width > PICTURE_EDGE_MAX || height > PICTURE_PIXELS_MAX / width)
        return err_set(err, ERR_DATA,
                       "it has %d x %d pixels: expected edges up to %d, and at "
                       "most %d pixels",
                       width, height, PICTURE_EDGE_MAX, PICTURE_PIXELS_MAX);
    return mem_new(unsigned char,
                   (size_t)height *(size_t)width *(size_t)picture->channels,
                   "a picture", &picture->pixels, err);
}

void picture_free(picture_t *picture)
{
    mem_free(picture->pixels);
    *picture = (picture_t){0};
}

void picture_planes(const picture_t *picture, unsigned char *out)
{
    const size_t pixels = (size_t)picture->height * (size_t)picture->width;
    const size_t channels = (size_t)picture->channels;

    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < pixels; i++)
            *out++ = picture->pixels[i * channels + c];
}
