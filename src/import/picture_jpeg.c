/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* JPEG, by libjpeg, which calls error_exit when a function fails: we leave it
 * by longjmp. It only warns of data that are cut or damaged, and makes up the
 * rest of the picture: such warnings are errors here. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

#include "import/picture_decoder.h"

typedef struct reading {
    struct jpeg_error_mgr manager; /* must be first */
    struct jpeg_decompress_struct info;
    jmp_buf jump;
    picture_t picture;
    char cause[JMSG_LENGTH_MAX];
    err_code_t rc; /* an error that is not libjpeg's; the sentence is in err */
    err_t *err;
} reading_t;

static void on_error(j_common_ptr info)
{
    reading_t *self = (reading_t *)info->err;

    info->err->format_message(info, self->cause);
    longjmp(self->jump, 1);
}

static void on_message(j_common_ptr info, int level)
{
    const int code = info->err->msg_code;

    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                      code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC ||
                      code == JWRN_ARITH_BAD_CODE))
        on_error(info);
}

/* Ask for 1 or 3 channels; false: self->cause says why there are none. */
static bool format_set(reading_t *self)
{
    struct jpeg_decompress_struct *info = &self->info;

    switch (info->jpeg_color_space) {
    case JCS_GRAYSCALE:
        info->out_color_space = JCS_GRAYSCALE;
        return true;
    case JCS_RGB:
    case JCS_YCbCr:
        info->out_color_space = JCS_RGB;
        return true;
    default:
        snprintf(self->cause, sizeof self->cause,
                 "its colours are neither grey nor red, green and blue: "
                 "convert it to RGB");
        return false;
    }
}

/* False: libjpeg's error is in self->cause, or another one in self->rc. */
static bool pixels_read(reading_t *self, const void *data, size_t bytes)
{
    struct jpeg_decompress_struct *info = &self->info;
    picture_t *picture = &self->picture;
    size_t row;

    if (setjmp(self->jump) != 0)
        return false;
    jpeg_create_decompress(info);
    jpeg_mem_src(info, data, bytes);
    jpeg_read_header(info, TRUE);
    if (!format_set(self))
        return false;
    /* First the room for the result: jpeg_start_decompress takes six times as
     * much for a progressive file. */
    picture->width = (int)info->image_width;
    picture->height = (int)info->image_height;
    picture->channels = info->out_color_space == JCS_GRAYSCALE ? 1 : 3;
    self->rc = picture_alloc(picture, self->err);
    if (self->rc != ERR_OK)
        return false;
    jpeg_start_decompress(info);
    row = (size_t)picture->width * (size_t)picture->channels;
    while (info->output_scanline < info->output_height) {
        JSAMPROW line = picture->pixels + info->output_scanline * row;

        jpeg_read_scanlines(info, &line, 1);
    }
    jpeg_finish_decompress(info);
    return true;
}

err_code_t picture_jpeg_decode(const void *data, size_t bytes, picture_t *out,
                               err_t *err)
{
    reading_t self = {.err = err};

    self.info.err = jpeg_std_error(&self.manager);
    self.manager.error_exit = on_error;
    self.manager.emit_message = on_message;
    if (!pixels_read(&self, data, bytes) && self.rc == ERR_OK)
        self.rc = err_set(err, ERR_DATA,
                          "this JPEG file cannot be decoded (libjpeg: %s)",
                          self.cause);
    jpeg_destroy_decompress(&self.info);
    if (self.rc == ERR_OK)
        *out = self.picture;
    else
        picture_free(&self.picture);
    return self.rc;
}
