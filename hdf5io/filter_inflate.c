/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Decompression by libdeflate if the build has it, else by ISA-L, else by zlib:
 * the fastest comes first. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "hdf5io/filter.h"

#if defined HAVE_DEFLATE
#include <libdeflate.h>
#elif defined HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

#if defined HAVE_DEFLATE
bool hdf5io_filter_inflate(const unsigned char *in, size_t in_bytes,
                           unsigned char *out, size_t room, size_t *bytes)
{
    struct libdeflate_decompressor *state = libdeflate_alloc_decompressor();
    enum libdeflate_result result;

    if (state == NULL)
        return false;
    result = libdeflate_zlib_decompress(state, in, in_bytes, out, room, bytes);
    libdeflate_free_decompressor(state);
    return result == LIBDEFLATE_SUCCESS;
}

const char *hdf5io_filter_inflater(void)
{
    return "libdeflate";
}
#elif defined HAVE_ISAL
bool hdf5io_filter_inflate(const unsigned char *in, size_t in_bytes,
                           unsigned char *out, size_t room, size_t *bytes)
{
    struct inflate_state state;
    int status;

    if (in_bytes > UINT32_MAX || room > UINT32_MAX)
        return false;
    isal_inflate_init(&state);
    state.crc_flag = ISAL_ZLIB;
    /* It does not write to its input. */
    state.next_in = (uint8_t *)(uintptr_t)in;
    state.avail_in = (uint32_t)in_bytes;
    state.next_out = out;
    state.avail_out = (uint32_t)room;
    status = isal_inflate(&state);
    *bytes = room - state.avail_out;
    return status == ISAL_DECOMP_OK && state.block_state == ISAL_BLOCK_FINISH;
}

const char *hdf5io_filter_inflater(void)
{
    return "ISA-L";
}
#else
bool hdf5io_filter_inflate(const unsigned char *in, size_t in_bytes,
                           unsigned char *out, size_t room, size_t *bytes)
{
    z_stream stream = {0};
    int status;

    if (in_bytes > UINT32_MAX || room > UINT32_MAX ||
        inflateInit(&stream) != Z_OK)
        return false;
    /* It does not write to its input. */
    stream.next_in = (Bytef *)(uintptr_t)in;
    stream.avail_in = (uInt)in_bytes;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    status = inflate(&stream, Z_FINISH);
    *bytes = room - stream.avail_out;
    inflateEnd(&stream);
    return status == Z_STREAM_END;
}

const char *hdf5io_filter_inflater(void)
{
    return "zlib";
}
#endif
