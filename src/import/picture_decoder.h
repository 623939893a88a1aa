/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The decoders behind picture_decode, each built only with its library. */
#ifndef CDDP_IMPORT_PICTURE_DECODER_H
#define CDDP_IMPORT_PICTURE_DECODER_H

#include "import/picture.h"

/* As picture_decode, for one format. */
typedef err_code_t picture_decode_t(const void *data, size_t bytes,
                                    picture_t *out, err_t *err);

picture_decode_t picture_png_decode, picture_jpeg_decode;

typedef struct picture_decoder {
    const char *name, *mark; /* "PNG"; the first bytes of such a file */
    size_t mark_bytes;
    picture_decode_t *decode; /* NULL: not built in */
    const char *library, *package;
} picture_decoder_t;

/* All formats; the last one has no name. In registry.c. */
const picture_decoder_t *picture_decoders(void);

#endif
