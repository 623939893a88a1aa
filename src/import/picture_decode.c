/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/picture_decoder.h"

#include <string.h>

err_code_t picture_decode(const void *data, size_t bytes, picture_t *out,
                          err_t *err)
{
    const picture_decoder_t *all = picture_decoders();

    for (const picture_decoder_t *of = all; of->name != NULL; of++) {
        if (bytes < of->mark_bytes ||
            memcmp(data, of->mark, of->mark_bytes) != 0)
            continue;
        if (of->decode == NULL)
            return err_set(err, ERR_UNAVAILABLE,
                           "this build cannot read %s files: install %s "
                           "(Debian, Ubuntu), then configure with --with-%s "
                           "and build again",
                           of->name, of->package, of->library);
        return of->decode(data, bytes, out, err);
    }
    return err_set(err, ERR_DATA,
                   "this is neither a PNG nor a JPEG file, whatever its name "
                   "says");
}
