/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A chunk is read into one buffer, and each step either shortens it in place
 * (fletcher32) or writes to the other buffer. So two buffers are enough.
 */
#include "hdf5io/filter.h"

#include <string.h>

/* The index of the compressor among the values of the filter blosc. */
#define BLOSC_VALUE 6
#define FLETCHER_BYTES ((size_t)4)

size_t hdf5io_filter_room(size_t bytes)
{
    return bytes + bytes / 256 + 64;
}

/* HDF5's numbers of filters. The HDF Group registers the numbers from 32000
 * on. */
static const int filter_numbers[FILTER_KINDS] = {
    [FILTER_DEFLATE] = H5Z_FILTER_DEFLATE,
    [FILTER_SHUFFLE] = H5Z_FILTER_SHUFFLE,
    [FILTER_FLETCHER32] = H5Z_FILTER_FLETCHER32,
    [FILTER_LZF] = 32000,
    [FILTER_ZSTD] = 32015,
    [FILTER_BLOSC] = 32001};

/* The kind of the filter [number]; FILTER_KINDS: it is not built. */
static unsigned filter_kind(int number)
{
    unsigned kind = 0;

    while (kind < FILTER_KINDS && filter_numbers[kind] != number)
        kind++;
    if ((kind == FILTER_ZSTD && !hdf5io_filter_zstd_built()) ||
        (kind == FILTER_BLOSC && !hdf5io_filter_blosc_built()))
        return FILTER_KINDS;
    return kind;
}

bool hdf5io_filter_built(int number)
{
    return filter_kind(number) < FILTER_KINDS;
}

bool hdf5io_filter_find(hid_t create, filter_pipe_t *out)
{
    const int count = H5Pget_nfilters(create);
    filter_pipe_t pipe = {.count = count};
    unsigned seen = 0;

    if (count < 0 || count > FILTER_MAX)
        return false;
    for (int i = 0; i < count; i++) {
        unsigned flags, config, values[8] = {0};
        size_t room = sizeof values / sizeof values[0];
        const int number = (int)H5Pget_filter2(create, (unsigned)i, &flags,
                                               &room, values, 0, NULL, &config);
        const unsigned kind = filter_kind(number);

        if (kind == FILTER_KINDS || (seen & 1U << kind) != 0)
            return false;
        seen |= 1U << kind;
        pipe.kinds[i] = (filter_kind_t)kind;
        if (kind == FILTER_SHUFFLE)
            pipe.unit = room < 1 ? 0 : values[0];
        if (kind == FILTER_SHUFFLE && pipe.unit == 0)
            return false;
        if (kind == FILTER_BLOSC && room > BLOSC_VALUE &&
            !hdf5io_filter_blosc_has(values[BLOSC_VALUE]))
            return false;
    }
    *out = pipe;
    return true;
}

/* A control byte below 32: that many bytes, plus one, follow. Else its upper 3
 * bits (7: plus the next byte) plus 2 are a length, and its lower 5 bits and
 * one more byte a distance minus 1: bytes that were written before. */
bool hdf5io_filter_lzf(const unsigned char *in, size_t in_bytes,
                       unsigned char *out, size_t room, size_t *bytes)
{
    size_t at = 0, end = 0;

    while (at < in_bytes) {
        const unsigned control = in[at++];
        size_t length = control + 1, distance;

        if (control < 32) {
            if (length > in_bytes - at || length > room - end)
                return false;
            memcpy(out + end, in + at, length);
            at += length;
            end += length;
            continue;
        }
        length = (control >> 5) + 2;
        if (control >> 5 == 7 && at < in_bytes)
            length += in[at++];
        if (at >= in_bytes)
            return false;
        distance = ((size_t)(control & 31) << 8) + in[at++] + 1;
        if (distance > end || length > room - end)
            return false;
        /* They may overlap, so that a pattern is repeated. */
        for (size_t i = 0; i < length; i++, end++)
            out[end] = out[end - distance];
    }
    *bytes = end;
    return true;
}

/* Unshuffle [count] numbers of the type [word], by a loop that compilers
 * vectorize. */
#define FILTER_WORDS(word)                                              \
    static void unshuffle_##word(const unsigned char *in, size_t count, \
                                 unsigned char *out)                    \
    {                                                                   \
        for (size_t i = 0; i < count; i++) {                            \
            word number = 0;                                            \
                                                                        \
            for (size_t b = 0; b < sizeof number; b++)                  \
                number |= (word)((word)in[b * count + i] << 8 * b);     \
            memcpy(out + i * sizeof number, &number, sizeof number);    \
        }                                                               \
    }
FILTER_WORDS(uint16_t)
FILTER_WORDS(uint32_t)
FILTER_WORDS(uint64_t)

static void unshuffle_any(const unsigned char *in, size_t count, size_t unit,
                          unsigned char *out)
{
    /* As many numbers as stay in the first-level cache. */
    const size_t block = 512;

    for (size_t first = 0; first < count; first += block) {
        const size_t last = count - first < block ? count : first + block;

        for (size_t b = 0; b < unit; b++)
            for (size_t i = first; i < last; i++)
                out[i * unit + b] = in[b * count + i];
    }
}

/* Bytes b of all numbers are stored together; the rest, which is no complete
 * number, follows. */
void hdf5io_filter_unshuffle(const unsigned char *in, size_t bytes, size_t unit,
                             unsigned char *out)
{
    const size_t count = unit > 0 ? bytes / unit : 0;
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

    if (little && unit == sizeof(uint16_t))
        unshuffle_uint16_t(in, count, out);
    else if (little && unit == sizeof(uint32_t))
        unshuffle_uint32_t(in, count, out);
    else if (little && unit == sizeof(uint64_t))
        unshuffle_uint64_t(in, count, out);
    else
        unshuffle_any(in, count, unit, out);
    memcpy(out + count * unit, in + count * unit, bytes - count * unit);
}

/* Fletcher's sum of 16-bit words whose first byte is the high one. */
uint32_t hdf5io_filter_fletcher32(const unsigned char *in, size_t bytes)
{
    /* so many words that no sum overflows */
    const size_t most = 360;
    uint32_t low = 0, high = 0;
    size_t words = bytes / 2;

    while (words > 0) {
        const size_t now = words < most ? words : most;

        for (size_t i = 0; i < now; i++, in += 2) {
            low += (uint32_t)in[0] << 8 | in[1];
            high += low;
        }
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
        words -= now;
    }
    if (bytes % 2 != 0) {
        low += (uint32_t)in[0] << 8;
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}

/* Compare and remove the checksum at the end of [buffer]. */
static const char *filter_sum_check(filter_buffer_t *buffer)
{
    const unsigned char *stored;
    uint32_t sum, little, swapped;

    if (buffer->bytes < FLETCHER_BYTES)
        return "it is shorter than its checksum";
    buffer->bytes -= FLETCHER_BYTES;
    stored = buffer->data + buffer->bytes;
    sum = hdf5io_filter_fletcher32(buffer->data, buffer->bytes);
    little = (uint32_t)stored[0] | (uint32_t)stored[1] << 8 |
             (uint32_t)stored[2] << 16 | (uint32_t)stored[3] << 24;
    /* HDF5 before 1.6.3 exchanged the bytes of each half. */
    swapped = (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
    return little == sum || little == swapped ? NULL : "its checksum is wrong";
}

static void filter_exchange(filter_buffer_t *a, filter_buffer_t *b)
{
    const filter_buffer_t kept = *a;

    *a = *b;
    *b = kept;
}

/* Undo one filter: *from becomes the data before it. */
static const char *filter_undo(const filter_pipe_t *pipe, filter_kind_t kind,
                               filter_buffer_t *from, filter_buffer_t *to)
{
    bool good = true;

    if (kind == FILTER_FLETCHER32)
        return filter_sum_check(from);
    switch (kind) {
    case FILTER_DEFLATE:
        good = hdf5io_filter_inflate(from->data, from->bytes, to->data,
                                     to->room, &to->bytes);
        break;
    case FILTER_LZF:
        good = hdf5io_filter_lzf(from->data, from->bytes, to->data, to->room,
                                 &to->bytes);
        break;
    case FILTER_ZSTD:
        good = hdf5io_filter_zstd(from->data, from->bytes, to->data, to->room,
                                  &to->bytes);
        break;
    case FILTER_BLOSC:
        good = hdf5io_filter_blosc(from->data, from->bytes, to->data, to->room,
                                   &to->bytes);
        break;
    default:
        if (from->bytes > to->room)
            return "it is too long";
        hdf5io_filter_unshuffle(from->data, from->bytes, pipe->unit, to->data);
        to->bytes = from->bytes;
    }
    if (!good)
        return "its compressed data is damaged";
    filter_exchange(from, to);
    return NULL;
}

const char *hdf5io_filter_decode(const filter_pipe_t *pipe, uint32_t mask,
                                 size_t bytes, filter_buffer_t *from,
                                 filter_buffer_t *to)
{
    const char *wrong = NULL;

    for (int i = pipe->count - 1; i >= 0 && wrong == NULL; i--)
        if ((mask & 1U << i) == 0)
            wrong = filter_undo(pipe, pipe->kinds[i], from, to);
    if (wrong == NULL && from->bytes != bytes)
        wrong = "it has another length than its shape";
    if (wrong == NULL)
        filter_exchange(from, to);
    return wrong;
}
