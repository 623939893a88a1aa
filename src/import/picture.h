/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* picture: a decoded picture of 8 bits a channel, and what is done with it
 * before it becomes a sample. */
#ifndef CDDP_IMPORT_PICTURE_H
#define CDDP_IMPORT_PICTURE_H

#include <stddef.h>

#include "base/err.h"

enum { PICTURE_EDGE_MAX = 65500, PICTURE_PIXELS_MAX = 1 << 28 };

typedef struct picture {
    int height, width;
    int channels;          /* 1: grey; 3: red, green, blue */
    unsigned char *pixels; /* [height, width, channels]; of mem_alloc */
} picture_t;

/* Allocate the pixels of a picture whose sizes are set. ERR_DATA: it has an
 * edge above PICTURE_EDGE_MAX, or more than PICTURE_PIXELS_MAX pixels.
 * ERR_MEMORY. */
err_code_t picture_alloc(picture_t *picture, err_t *err);

void picture_free(picture_t *picture);

/* Decode a PNG or JPEG file of [bytes] bytes; which one it is, its first bytes
 * say. Transparency, gamma, colour profiles and the camera's orientation are
 * left out, as Pillow's convert does; of 16 bits the upper 8 are taken. Thread
 * safe. ERR_DATA, without the name of the file: it is of another format,
 * damaged, cut or has other colours (CMYK). ERR_UNAVAILABLE: this build has no
 * library for it. */
err_code_t picture_decode(const void *data, size_t bytes, picture_t *out,
                          err_t *err);

/* What becomes of a picture, in this order. 0: it stays as it is. */
typedef struct picture_fit {
    int channels; /* 1 or 3 */
    /* Its new size; without resize_width the shorter edge becomes
     * resize_height, and the proportions stay. */
    int resize_height, resize_width;
    int crop_height, crop_width; /* what is cut out of its middle */
} picture_fit_t;

/* Apply [fit]. The numbers are those of Pillow: convert("L") and
 * convert("RGB"), resize with BILINEAR (of all pixels that a new one covers);
 * sizes and places are those of torchvision's Resize and CenterCrop. ERR_DATA,
 * without the name of the file: it is smaller than what is cut out. */
err_code_t picture_apply(const picture_fit_t *fit, picture_t *picture,
                         err_t *err);

/* Copy the pixels to [out] as [channels, height, width]. */
void picture_planes(const picture_t *picture, unsigned char *out);

#endif
