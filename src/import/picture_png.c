/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* PNG, by libpng, which leaves its functions by longjmp when one fails. All of
 * its calls that can do so are in pixels_read, whose state is in a struct. */
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "import/picture_decoder.h"

typedef struct reading {
    png_structp png;
    png_infop info;
    const unsigned char *at;
    size_t left;
    picture_t picture;
    char cause[128];
    err_code_t rc; /* an error that is not libpng's; the sentence is in err */
    err_t *err;
} reading_t;

static void on_error(png_structp png, png_const_charp text)
{
    reading_t *self = png_get_error_ptr(png);

    snprintf(self->cause, sizeof self->cause, "%s", text);
    png_longjmp(png, 1);
}

/* Warnings are about what is left out anyway, such as profiles. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void bytes_take(png_structp png, png_bytep out, size_t bytes)
{
    reading_t *self = png_get_io_ptr(png);

    if (bytes > self->left)
        png_error(png, "it is cut at its end");
    memcpy(out, self->at, bytes);
    self->at += bytes;
    self->left -= bytes;
}

/* Ask for 8 bits a channel, and 1 or 3 channels. */
static void format_set(reading_t *self)
{
    const int color = png_get_color_type(self->png, self->info);
    const int depth = png_get_bit_depth(self->png, self->info);

    if (depth == 16)
        png_set_strip_16(self->png);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(self->png);
    else if (depth < 8)
        png_set_expand_gray_1_2_4_to_8(self->png);
    png_set_strip_alpha(self->png);
}

/* False: libpng's error is in self->cause, or another one in self->rc. */
static bool pixels_read(reading_t *self)
{
    picture_t *picture = &self->picture;
    int passes;
    size_t row;

    if (setjmp(png_jmpbuf(self->png)) != 0)
        return false;
    png_set_read_fn(self->png, self, bytes_take);
    png_set_user_limits(self->png, PICTURE_EDGE_MAX, PICTURE_EDGE_MAX);
    png_read_info(self->png, self->info);
    format_set(self);
    passes = png_set_interlace_handling(self->png);
    png_read_update_info(self->png, self->info);
    picture->width = (int)png_get_image_width(self->png, self->info);
    picture->height = (int)png_get_image_height(self->png, self->info);
    picture->channels = png_get_channels(self->png, self->info);
    row = (size_t)picture->width * (size_t)picture->channels;
    if ((picture->channels != 1 && picture->channels != 3) ||
        png_get_rowbytes(self->png, self->info) != row)
        png_error(self->png, "it has other colours");
    self->rc = picture_alloc(picture, self->err);
    if (self->rc != ERR_OK)
        return false;
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < picture->height; y++)
            png_read_row(self->png, picture->pixels + (size_t)y * row, NULL);
    png_read_end(self->png, NULL);
    return true;
}

err_code_t picture_png_decode(const void *data, size_t bytes, picture_t *out,
                              err_t *err)
{
    reading_t self = {.at = data, .left = bytes, .err = err};

    self.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &self, on_error,
                                      on_warning);
    if (self.png != NULL)
        self.info = png_create_info_struct(self.png);
    if (self.info == NULL)
        self.rc = err_set(err, ERR_MEMORY, "no memory to decode it");
    else if (!pixels_read(&self) && self.rc == ERR_OK)
        self.rc =
            err_set(err, ERR_DATA,
                    "this PNG file cannot be decoded (libpng: %s)", self.cause);
    png_destroy_read_struct(&self.png, &self.info, NULL);
    if (self.rc == ERR_OK)
        *out = self.picture;
    else
        picture_free(&self.picture);
    return self.rc;
}
