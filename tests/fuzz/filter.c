/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "hdf5io/filter.h"

/* Chunks of more decoded bytes are not tried. */
#define DECODED_MOST ((size_t)1 << 16)

/* The next byte; 0 after the last one. */
static unsigned byte_take(const uint8_t **data, size_t *bytes)
{
    if (*bytes == 0)
        return 0;
    (*bytes)--;
    return *(*data)++;
}

/* Take a pipeline, which has each filter at most once. */
static void pipe_take(const uint8_t **data, size_t *bytes, filter_pipe_t *out)
{
    const unsigned count = byte_take(data, bytes) % (FILTER_MAX + 1);
    unsigned seen = 0;

    *out = (filter_pipe_t){.unit = 1};
    for (unsigned i = 0; i < count; i++) {
        const unsigned kind = byte_take(data, bytes) % FILTER_KINDS;

        if ((seen & 1U << kind) == 0)
            out->kinds[out->count++] = (filter_kind_t)kind;
        seen |= 1U << kind;
    }
    out->unit += byte_take(data, bytes);
}

static void buffer_make(size_t room, const uint8_t *data, size_t bytes,
                        filter_buffer_t *out)
{
    *out = (filter_buffer_t){malloc(room), bytes, room};
    if (out->data == NULL)
        abort();
    if (bytes > 0)
        memcpy(out->data, data, bytes);
}

/* Decode the chunk at [data] to [length] bytes; the caller frees *out. The
 * buffers are not longer than needed, so that a sanitizer detects each access
 * behind their ends. */
static bool chunk_decode(const filter_pipe_t *pipe, uint32_t mask,
                         size_t length, const uint8_t *data, size_t bytes,
                         unsigned char **out)
{
    const size_t room = hdf5io_filter_room(length);
    filter_buffer_t from, to;
    const char *wrong;

    buffer_make(room, data, bytes, &from);
    buffer_make(room, NULL, 0, &to);
    wrong = hdf5io_filter_decode(pipe, mask, length, &from, &to);
    free(from.data);
    if (wrong == NULL && to.bytes != length) {
        fprintf(stderr, "fuzz: %zu bytes instead of %zu\n", to.bytes, length);
        abort();
    }
    if (wrong != NULL && wrong[0] == '\0')
        abort();
    if (wrong == NULL)
        *out = to.data;
    else
        free(to.data);
    return wrong == NULL;
}

err_code_t fuzz_filter(const uint8_t *data, size_t bytes)
{
    unsigned char *first = NULL, *second = NULL;
    filter_pipe_t pipe;
    uint32_t mask;
    size_t length;
    bool good;

    pipe_take(&data, &bytes, &pipe);
    mask = byte_take(&data, &bytes);
    length = byte_take(&data, &bytes);
    length |= (size_t)byte_take(&data, &bytes) << 8;
    if (length == 0 || length > DECODED_MOST ||
        bytes > hdf5io_filter_room(length))
        return ERR_DATA;
    good = chunk_decode(&pipe, mask, length, data, bytes, &first);
    if (good && (!chunk_decode(&pipe, mask, length, data, bytes, &second) ||
                 memcmp(first, second, length) != 0)) {
        fprintf(stderr, "fuzz: a chunk was decoded in two ways\n");
        abort();
    }
    free(second);
    free(first);
    return good ? ERR_OK : ERR_DATA;
}
