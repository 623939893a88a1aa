/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * filter: undoes the filters with which HDF5 stored a chunk: deflate, shuffle,
 * fletcher32, lzf, and, in builds with their libraries, zstd and blosc. It does
 * not use HDF5, so several threads may decode at the same time.
 */
#ifndef CDDP_HDF5IO_FILTER_H
#define CDDP_HDF5IO_FILTER_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of filters of a pipeline: one of each kind. */
#define FILTER_MAX 6

typedef enum filter_kind {
    FILTER_DEFLATE,
    FILTER_SHUFFLE,
    FILTER_FLETCHER32,
    FILTER_LZF,
    FILTER_ZSTD,
    FILTER_BLOSC,
    FILTER_KINDS
} filter_kind_t;

/* The filters of a dataset, in the order in which they were applied. */
typedef struct filter_pipe {
    int count;
    filter_kind_t kinds[FILTER_MAX];
    size_t unit; /* shuffle: bytes of a number */
} filter_pipe_t;

/* A buffer of [room] bytes, of which the first [bytes] hold data. */
typedef struct filter_buffer {
    unsigned char *data;
    size_t bytes, room;
} filter_buffer_t;

/* The room that buffers need for a chunk of [bytes] decoded bytes: what cannot
 * be compressed becomes a little longer. */
size_t hdf5io_filter_room(size_t bytes);

/* Can this build undo the filter that HDF5 knows by [number]? The library of
 * blosc may still lack a compressor (hdf5io_filter_blosc_has). */
bool hdf5io_filter_built(int number);

/* The library that decompresses gzip: "ISA-L", "libdeflate" or "zlib"; and
 * whether zstd and blosc are built. */
const char *hdf5io_filter_inflater(void);
bool hdf5io_filter_zstd_built(void);
bool hdf5io_filter_blosc_built(void);

/* Find the filters of the creation list [create]. False: there are others, or
 * one twice; only HDF5 decodes these chunks. HDF5's lock held. */
bool hdf5io_filter_find(hid_t create, filter_pipe_t *out);

/* Decode the chunk in *from, where bit i of [mask] says that filter i was not
 * applied. Both buffers are written, and may be exchanged: the result is in
 * *to, and must have [bytes] bytes. Both have hdf5io_filter_room(bytes). NULL,
 * or what is wrong ("its checksum is wrong"). */
const char *hdf5io_filter_decode(const filter_pipe_t *pipe, uint32_t mask,
                                 size_t bytes, filter_buffer_t *from,
                                 filter_buffer_t *to);

/* The steps, for tests. Each reads [in] of [in_bytes] bytes and writes [out] of
 * at most [room] bytes. inflate, lzf, zstd and blosc: false: damaged, no room,
 * or not built. */
bool hdf5io_filter_inflate(const unsigned char *in, size_t in_bytes,
                           unsigned char *out, size_t room, size_t *bytes);
bool hdf5io_filter_lzf(const unsigned char *in, size_t in_bytes,
                       unsigned char *out, size_t room, size_t *bytes);
bool hdf5io_filter_zstd(const unsigned char *in, size_t in_bytes,
                        unsigned char *out, size_t room, size_t *bytes);
bool hdf5io_filter_blosc(const unsigned char *in, size_t in_bytes,
                         unsigned char *out, size_t room, size_t *bytes);
/* Does blosc's library in this build have the compressor with this number (one
 * of the values of the filter)? */
bool hdf5io_filter_blosc_has(unsigned compressor);
void hdf5io_filter_unshuffle(const unsigned char *in, size_t bytes, size_t unit,
                             unsigned char *out);
uint32_t hdf5io_filter_fletcher32(const unsigned char *in, size_t bytes);

#endif
