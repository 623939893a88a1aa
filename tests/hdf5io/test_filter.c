/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Chunks with filters that a build may lack. This program teaches HDF5 to write
 * them, not to read them. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_BLOSC
#include <blosc.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "chunk_files.h"
#include "files.h"
#include "hdf5io/dataset_tell.h"
#include "hdf5io/filter.h"

/* The numbers that The HDF Group registered for these filters. */
enum { BLOSC = 32001, ZSTD = 32015 };

#if defined HAVE_ZSTD || defined HAVE_BLOSC
static char *directory;
static hdf5io_dataset_t *dataset;

static const chunk_file_t five = {
    .ndim = 5, .dims = {61, 5, 3, 7, 2}, .chunk = {8, 3, 3, 4, 2}};

/* Write a file with [filter] and read it. HDF5 does not know the filter when
 * the file is read. */
static void same_bits(const H5Z_class2_t *filter, const chunk_file_t *file)
{
    int counts[HDF5IO_WAYS];

    directory = files_make();
    cr_assert_geq(H5Zregister(filter), 0);
    chunk_write(directory, "a.h5", file);
    cr_assert_geq(H5Zunregister(filter->id), 0);
    dataset = chunk_open(directory, "a.h5", file, 0, true);
    cr_expect_eq(chunk_wrong(dataset, file, 1, 7), 0);
    cr_expect_eq(chunk_wrong(dataset, file, 17, 64), 0);
    hdf5io_dataset_ways(dataset, 0, counts);
    cr_expect_eq(counts[HDF5IO_WAY_CHUNKS], 1);
    hdf5io_dataset_close(dataset);
    files_remove(directory);
}

/* Replace the bytes that HDF5 gave by the [length] bytes at [out]. */
static size_t replaced(unsigned char *out, size_t length, size_t room,
                       size_t *have, void **buffer)
{
    free(*buffer);
    *buffer = out;
    *have = room;
    return length;
}
#endif

/* ---- zstd ----------------------------------------------------------------
 */

#ifdef HAVE_ZSTD
static size_t zstd_write(unsigned flags, size_t count, const unsigned values[],
                         size_t bytes, size_t *have, void **buffer)
{
    const size_t room = ZSTD_compressBound(bytes);
    unsigned char *out = malloc(room);

    (void)count;
    (void)values;
    cr_assert((flags & H5Z_FLAG_REVERSE) == 0, "HDF5 decoded a chunk");
    return replaced(out, ZSTD_compress(out, room, *buffer, bytes, 3), room,
                    have, buffer);
}

static void zstd_add(hid_t create)
{
    H5Pset_filter(create, ZSTD, H5Z_FLAG_MANDATORY, 0, NULL);
}

static const H5Z_class2_t zstd_class = {.version = H5Z_CLASS_T_VERS,
                                        .id = ZSTD,
                                        .encoder_present = 1,
                                        .decoder_present = 1,
                                        .name = "zstd",
                                        .filter = zstd_write};

Test(filter, chunks_of_zstd, .timeout = 300)
{
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_STD_I16BE};
    chunk_file_t file = five;

    file.more = zstd_add;
    for (size_t t = 0; t < 2; t++)
        for (unsigned filters = 0; filters < CHUNK_FILTERS; filters++) {
            if ((filters & (CHUNK_LZF | CHUNK_DEFLATE)) != 0)
                continue;
            file.type = types[t];
            file.filters = filters;
            same_bits(&zstd_class, &file);
        }
}
#else
Test(filter, chunks_of_zstd)
{
    cr_skip_test("this build has no zstd");
}
#endif

/* ---- blosc ---------------------------------------------------------------
 */

#ifdef HAVE_BLOSC
static int blosc_shuffle;
static unsigned blosc_compressor;

static size_t blosc_write(unsigned flags, size_t count, const unsigned values[],
                          size_t bytes, size_t *have, void **buffer)
{
    const size_t room = bytes + BLOSC_MAX_OVERHEAD;
    unsigned char *out = malloc(room);
    const char *name = NULL;
    int length;

    cr_assert_eq(count, 7);
    cr_assert((flags & H5Z_FLAG_REVERSE) == 0, "HDF5 decoded a chunk");
    cr_assert_geq(blosc_compcode_to_compname((int)values[6], &name), 0);
    length = blosc_compress_ctx((int)values[4], (int)values[5], values[2],
                                bytes, *buffer, out, room, name, 0, 1);
    cr_assert_gt(length, 0);
    return replaced(out, (size_t)length, room, have, buffer);
}

static void blosc_add(hid_t create)
{
    const unsigned values[7] = {
        2, 2, 4, 1024, 5, (unsigned)blosc_shuffle, blosc_compressor};

    H5Pset_filter(create, BLOSC, H5Z_FLAG_MANDATORY, 7, values);
}

static const H5Z_class2_t blosc_class = {.version = H5Z_CLASS_T_VERS,
                                         .id = BLOSC,
                                         .encoder_present = 1,
                                         .decoder_present = 1,
                                         .name = "blosc",
                                         .filter = blosc_write};

Test(filter, chunks_of_blosc, .timeout = 300)
{
    chunk_file_t file = five;

    file.more = blosc_add;
    file.type = H5T_IEEE_F32LE;
    for (unsigned code = BLOSC_BLOSCLZ; code <= BLOSC_ZSTD; code++)
        for (blosc_shuffle = 0; blosc_shuffle <= 2; blosc_shuffle++) {
            blosc_compressor = code;
            if (hdf5io_filter_blosc_has(code))
                same_bits(&blosc_class, &file);
        }
    cr_expect_not(hdf5io_filter_blosc_has(99));
}
#else
Test(filter, chunks_of_blosc)
{
    cr_skip_test("this build has no blosc");
}
#endif

/* ---- any bytes -----------------------------------------------------------
 */

typedef bool (*decode_t)(const unsigned char *in, size_t in_bytes,
                         unsigned char *out, size_t room, size_t *bytes);

/* Decode [length] bytes, as they are and with each of them changed, to buffers
 * of every size. Nothing may be written beyond a buffer. */
static void stays_within(decode_t decode, const unsigned char *in,
                         size_t length, size_t most)
{
    unsigned char *copy = malloc(length + 1), *out = malloc(most + 8);
    uint64_t state = 1;
    size_t bytes;

    for (size_t turn = 0; turn < 40 * length; turn++) {
        const size_t some = turn % 7 == 0 ? turn % (length + 1) : length;
        const size_t room = turn % 3 == 0 ? turn * 31 % (most + 1) : most;

        memcpy(copy, in, length);
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (turn > 0)
            copy[turn % length] ^= (unsigned char)(state >> 33);
        memset(out + room, 0x5a, 8);
        if (decode(copy, some, out, room, &bytes))
            cr_assert_leq(bytes, room);
        for (int i = 0; i < 8; i++)
            cr_assert_eq(out[room + (size_t)i], 0x5a, "turn %zu", turn);
    }
    free(out);
    free(copy);
}

Test(filter, damaged_chunks_write_nothing_beyond_their_buffers, .timeout = 300)
{
    unsigned char plain[400], packed[1000] = {0};
    size_t length;

    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (unsigned char)(i * i % 251 / 9);
#ifdef HAVE_ZSTD
    length = ZSTD_compress(packed, sizeof packed, plain, sizeof plain, 3);
    cr_assert_not(ZSTD_isError(length));
    stays_within(hdf5io_filter_zstd, packed, length, sizeof plain);
#endif
#ifdef HAVE_BLOSC
    for (int shuffle = 0; shuffle <= 2; shuffle++) {
        length = (size_t)blosc_compress_ctx(5, shuffle, 4, sizeof plain, plain,
                                            packed, sizeof packed, "lz4", 0, 1);
        stays_within(hdf5io_filter_blosc, packed, length, sizeof plain);
    }
#endif
    length = sizeof plain;
    stays_within(hdf5io_filter_lzf, plain, length, sizeof plain);
}

Test(filter, filters_of_the_build_are_known)
{
    cr_expect_eq(hdf5io_filter_built(ZSTD), hdf5io_filter_zstd_built());
    cr_expect_eq(hdf5io_filter_built(BLOSC), hdf5io_filter_blosc_built());
    cr_expect(hdf5io_filter_built(H5Z_FILTER_DEFLATE));
    cr_expect_not(hdf5io_filter_built(H5Z_FILTER_NBIT));
}
