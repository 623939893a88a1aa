/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Decompression by libraries that a build may lack. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "hdf5io/filter.h"

#ifdef HAVE_BLOSC
#include <blosc.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

/* The functions of a filter whose library this build lacks. */
#define FILTER_LACKING(name)                                                  \
    bool hdf5io_filter_##name(const unsigned char *in, size_t in_bytes,       \
                              unsigned char *out, size_t room, size_t *bytes) \
    {                                                                         \
        (void)in;                                                             \
        (void)in_bytes;                                                       \
        (void)out;                                                            \
        (void)room;                                                           \
        (void)bytes;                                                          \
        return false;                                                         \
    }                                                                         \
    bool hdf5io_filter_##name##_built(void)                                   \
    {                                                                         \
        return false;                                                         \
    }

#ifdef HAVE_ZSTD
bool hdf5io_filter_zstd(const unsigned char *in, size_t in_bytes,
                        unsigned char *out, size_t room, size_t *bytes)
{
    const size_t got = ZSTD_decompress(out, room, in, in_bytes);

    if (ZSTD_isError(got) != 0)
        return false;
    *bytes = got;
    return true;
}

bool hdf5io_filter_zstd_built(void)
{
    return true;
}
#else
FILTER_LACKING(zstd)
#endif

#ifdef HAVE_BLOSC
bool hdf5io_filter_blosc(const unsigned char *in, size_t in_bytes,
                         unsigned char *out, size_t room, size_t *bytes)
{
    size_t whole = 0;
    int got;

    /* The library reads the header, so all of it must be there. */
    if (in_bytes < BLOSC_MIN_HEADER_LENGTH ||
        blosc_cbuffer_validate(in, in_bytes, &whole) < 0 || whole > room)
        return false;
    /* This function decodes in this thread. blosc_decompress would use threads
     * that all callers share. */
    got = blosc_decompress_ctx(in, out, room, 1);
    if (got < 0 || (size_t)got != whole)
        return false;
    *bytes = whole;
    return true;
}

bool hdf5io_filter_blosc_built(void)
{
    return true;
}

bool hdf5io_filter_blosc_has(unsigned compressor)
{
    const char *name;

    return compressor <= BLOSC_ZSTD &&
           blosc_compcode_to_compname((int)compressor, &name) >= 0;
}
#else
FILTER_LACKING(blosc)

bool hdf5io_filter_blosc_has(unsigned compressor)
{
    (void)compressor;
    return false;
}
#endif
