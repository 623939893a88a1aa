/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_io_file.h"

#include <hdf5.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "hdf5io/h5.h"

#define GZIP_LEVEL 4 /* h5py's default */
#define CHUNK_BYTES (BENCH_IO_CHUNK_ROWS * BENCH_IO_ELEMS * sizeof(float))
#define CHUNKS_MOST 64

float bench_io_value(int64_t row, int64_t i)
{
    uint64_t bits = (uint64_t)(row * BENCH_IO_ELEMS + i + 1);

    bits *= UINT64_C(0x9E3779B97F4A7C15);
    bits ^= bits >> 29;
    bits *= UINT64_C(0xBF58476D1CE4E5B9);
    return (float)(bits >> 56);
}

/* Bytes of a stored number of /x. */
static size_t number_bytes(bench_io_layout_t layout)
{
    return layout == BENCH_IO_FLOAT16 ? 2 : sizeof(float);
}

size_t bench_io_row_bytes(bench_io_layout_t layout)
{
    return BENCH_IO_ELEMS * number_bytes(layout) + sizeof(int32_t);
}

/* ---- writing ------------------------------------------------------------- */

/* The creation list of /x; < 0 on failure. */
static hid_t creation_list(bench_io_layout_t layout)
{
    const hsize_t chunk[] = {BENCH_IO_CHUNK_ROWS, BENCH_IO_ELEMS};
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    bool good = list >= 0;

    if (good && layout != BENCH_IO_CHUNKED && layout != BENCH_IO_GZIP)
        good = H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0;
    else if (good)
        good = H5Pset_chunk(list, 2, chunk) >= 0;
    if (good && layout == BENCH_IO_GZIP)
        good =
            H5Pset_shuffle(list) >= 0 && H5Pset_deflate(list, GZIP_LEVEL) >= 0;
    if (good)
        good = H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0;
    if (good || list < 0)
        return list;
    H5Pclose(list);
    return H5I_INVALID_HID;
}

/* Write rows [first, first + count) of [set], whose rows have [elems] numbers
 * (0: one, and one dimension less). */
static bool slab_write(hid_t set, hid_t type, int64_t first, int64_t count,
                       int64_t elems, const void *data)
{
    const hsize_t from[] = {(hsize_t)first, 0};
    const hsize_t size[] = {(hsize_t)count, (hsize_t)elems};
    const hid_t space = H5Dget_space(set);
    const hid_t memory = H5Screate_simple(elems > 0 ? 2 : 1, size, NULL);
    const bool good =
        space >= 0 && memory >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, size, NULL) >=
            0 &&
        H5Dwrite(set, type, memory, space, H5P_DEFAULT, data) >= 0;

    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    return good;
}

static bool rows_write(hid_t x, hid_t y, int64_t rows, float *values)
{
    int32_t numbers[BENCH_IO_CHUNK_ROWS];
    bool good = true;

    for (int64_t first = 0; good && first < rows;
         first += BENCH_IO_CHUNK_ROWS) {
        const int64_t rest = rows - first;
        const int64_t count =
            rest < BENCH_IO_CHUNK_ROWS ? rest : BENCH_IO_CHUNK_ROWS;

        for (int64_t r = 0; r < count; r++) {
            numbers[r] = (int32_t)(first + r);
            for (int64_t i = 0; i < BENCH_IO_ELEMS; i++)
                values[r * BENCH_IO_ELEMS + i] = bench_io_value(first + r, i);
        }
        good = slab_write(x, H5T_NATIVE_FLOAT, first, count, BENCH_IO_ELEMS,
                          values) &&
               slab_write(y, H5T_NATIVE_INT32, first, count, 0, numbers);
    }
    return good;
}

/* The type of /x; < 0 on failure. The caller closes it. */
static hid_t type_make(bench_io_layout_t layout)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    if (type < 0 || layout != BENCH_IO_FLOAT16 ||
        (H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 &&
         H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, 15) >= 0))
        return type;
    H5Tclose(type);
    return H5I_INVALID_HID;
}

/* Make dataset [name] of [file]; < 0 on failure. */
static hid_t set_make(hid_t file, const char *name, int ndim, int64_t rows,
                      bench_io_layout_t layout)
{
    const hsize_t dims[] = {(hsize_t)rows, BENCH_IO_ELEMS};
    const hid_t space = H5Screate_simple(ndim, dims, NULL);
    const hid_t list = creation_list(layout);
    const hid_t type = ndim == 2 ? type_make(layout) : H5Tcopy(H5T_STD_I32LE);
    hid_t set = H5I_INVALID_HID;

    if (space >= 0 && list >= 0 && type >= 0)
        set =
            H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (type >= 0)
        H5Tclose(type);
    if (list >= 0)
        H5Pclose(list);
    if (space >= 0)
        H5Sclose(space);
    return set;
}

/* Fill the new file [file] and close it. */
static bool file_fill(hid_t file, bench_io_layout_t layout, int64_t rows,
                      float *values)
{
    const hid_t x = set_make(file, "/x", 2, rows, layout);
    const hid_t y = set_make(file, "/y", 1, rows, BENCH_IO_CONTIGUOUS);
    bool good = x >= 0 && y >= 0 && rows_write(x, y, rows, values);

    if (x >= 0)
        good = H5Dclose(x) >= 0 && good;
    if (y >= 0)
        good = H5Dclose(y) >= 0 && good;
    return H5Fclose(file) >= 0 && good;
}

err_code_t bench_io_file_write(const char *path, bench_io_layout_t layout,
                               int64_t rows, err_t *err)
{
    hid_t access, file = H5I_INVALID_HID;
    float *values = NULL;
    err_code_t rc =
        mem_new(float, CHUNK_BYTES / sizeof(float), "samples", &values, err);

    if (rc != ERR_OK)
        return rc;
    h5_lock();
    access = h5_access_list();
    if (access >= 0)
        file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, access);
    if (file < 0 || !file_fill(file, layout, rows, values))
        rc = h5_err_set(err, ERR_IO, "%s: cannot write the samples", path);
    if (access >= 0)
        H5Pclose(access);
    h5_unlock();
    mem_free(values);
    return rc == ERR_OK ? file_sync(path, err) : rc;
}

/* ---- zlib ---------------------------------------------------------------- */

struct bench_io_chunks {
    int count;
    unsigned char *data[CHUNKS_MOST];
    size_t bytes[CHUNKS_MOST];
    unsigned char *out; /* [CHUNK_BYTES] */
};

/* Read chunk [index] of [set] as stored. HDF5 lock held. */
static err_code_t chunk_take(hid_t set, bench_io_chunks_t *chunks, int index,
                             err_t *err)
{
    const hsize_t at[] = {(hsize_t)index * BENCH_IO_CHUNK_ROWS, 0};
    uint32_t mask = 0;
    hsize_t bytes = 0;
    err_code_t rc = ERR_OK;

    if (H5Dget_chunk_storage_size(set, at, &bytes) < 0 || bytes == 0)
        return h5_err_set(err, ERR_DATA, "chunk %d of /x is not there", index);
    rc = mem_new(unsigned char, (size_t)bytes, "a chunk", &chunks->data[index],
                 err);
    if (rc != ERR_OK)
        return rc;
    chunks->bytes[index] = (size_t)bytes;
    if (H5Dread_chunk(set, H5P_DEFAULT, at, &mask, chunks->data[index]) < 0 ||
        mask != 0)
        rc = h5_err_set(err, ERR_DATA, "cannot read chunk %d of /x", index);
    return rc;
}

static err_code_t chunks_take(const char *path, bench_io_chunks_t *chunks,
                              err_t *err)
{
    hid_t file, set = H5I_INVALID_HID;
    err_code_t rc = ERR_OK;

    h5_lock();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file >= 0)
        set = H5Dopen2(file, "/x", H5P_DEFAULT);
    if (set < 0)
        rc = h5_err_set(err, ERR_DATA, "%s: cannot open /x", path);
    for (int i = 0; rc == ERR_OK && i < chunks->count; i++)
        rc = chunk_take(set, chunks, i, err);
    if (set >= 0)
        H5Dclose(set);
    if (file >= 0)
        H5Fclose(file);
    h5_unlock();
    return rc;
}

err_code_t bench_io_chunks_open(const char *path, int64_t rows,
                                bench_io_chunks_t **out, err_t *err)
{
    const int64_t count =
        (rows + BENCH_IO_CHUNK_ROWS - 1) / BENCH_IO_CHUNK_ROWS;
    bench_io_chunks_t *chunks = NULL;
    err_code_t rc = mem_new(bench_io_chunks_t, 1, "chunks", &chunks, err);

    if (rc != ERR_OK)
        return rc;
    chunks->count = count < CHUNKS_MOST ? (int)count : CHUNKS_MOST;
    rc = mem_new(unsigned char, CHUNK_BYTES, "a chunk", &chunks->out, err);
    if (rc == ERR_OK)
        rc = chunks_take(path, chunks, err);
    if (rc != ERR_OK) {
        bench_io_chunks_close(chunks);
        return rc;
    }
    *out = chunks;
    return ERR_OK;
}

void bench_io_chunks_close(bench_io_chunks_t *chunks)
{
    if (chunks == NULL)
        return;
    for (int i = 0; i < CHUNKS_MOST; i++)
        mem_free(chunks->data[i]);
    mem_free(chunks->out);
    mem_free(chunks);
}

err_code_t bench_io_chunks_inflate(const bench_io_chunks_t *chunks,
                                   double *bytes_s, err_t *err)
{
    const double begin = clock_now();

    for (int i = 0; i < chunks->count; i++) {
        uLongf bytes = CHUNK_BYTES;

        if (uncompress(chunks->out, &bytes, chunks->data[i],
                       chunks->bytes[i]) != Z_OK ||
            bytes != CHUNK_BYTES)
            return err_set(err, ERR_DATA,
                           "zlib cannot decompress chunk %d of /x", i);
    }
    *bytes_s =
        (double)chunks->count * (double)CHUNK_BYTES / (clock_now() - begin);
    return ERR_OK;
}
