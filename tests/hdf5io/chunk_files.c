/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "chunk_files.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

#define LZF 32000

/* Patterns that compress, and some noise. */
double chunk_value(int64_t i)
{
    const int64_t noise = i * INT64_C(2654435761) % 1000003 % 97;

    return (double)(i / 16 % 4 == 0 ? noise : i / 7 % 23);
}

static int64_t chunk_numbers(const chunk_file_t *file)
{
    int64_t numbers = 1;

    for (int d = 0; d < file->ndim; d++)
        numbers *= (int64_t)file->dims[d];
    return numbers;
}

static hid_t chunk_list(const chunk_file_t *file)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    if (file->chunk[0] > 0)
        H5Pset_chunk(list, file->ndim, file->chunk);
    if ((file->filters & CHUNK_SHUFFLE) != 0)
        H5Pset_shuffle(list);
    if ((file->filters & CHUNK_DEFLATE) != 0)
        H5Pset_deflate(list, 4);
    if ((file->filters & CHUNK_LZF) != 0)
        H5Pset_filter(list, LZF, H5Z_FLAG_OPTIONAL, 0, NULL);
    if ((file->filters & CHUNK_FLETCHER32) != 0)
        H5Pset_fletcher32(list);
    if (file->more != NULL)
        file->more(list);
    return list;
}

static void chunk_put(hid_t file, const char *name, int ndim,
                      const hsize_t *dims, hid_t type, hid_t list,
                      const double *values)
{
    const hid_t space = H5Screate_simple(ndim, dims, NULL);
    const hid_t set =
        H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);

    cr_assert_geq(set, 0, "%s", name);
    cr_assert_geq(
        H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values),
        0);
    H5Dclose(set);
    H5Sclose(space);
}

void chunk_shuffle_again(hid_t create)
{
    H5Pset_shuffle(create);
}

void chunk_write(const char *directory, const char *name,
                 const chunk_file_t *file)
{
    const int64_t numbers = chunk_numbers(file);
    const hid_t create = H5Pcreate(H5P_FILE_CREATE), list = chunk_list(file);
    char *path = files_path(directory, name);
    double *values = calloc((size_t)numbers, sizeof *values);
    hid_t out;

    cr_assert_not_null(values);
    if (file->user_block > 0)
        H5Pset_userblock(create, file->user_block);
    out = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
    for (int64_t i = 0; i < numbers; i++)
        values[i] = chunk_value(i);
    chunk_put(out, "/x", file->ndim, file->dims, file->type, list, values);
    for (hsize_t i = 0; i < file->dims[0]; i++)
        values[i] = (double)i;
    chunk_put(out, "/y", 1, file->dims, H5T_IEEE_F32LE, H5P_DEFAULT, values);
    cr_assert_geq(H5Fclose(out), 0);
    H5Pclose(list);
    H5Pclose(create);
    free(values);
    free(path);
}

hdf5io_dataset_t *chunk_open(const char *directory, const char *name,
                             const chunk_file_t *file, size_t cache_bytes,
                             bool digest)
{
    char *path = files_path(directory, name);
    const opt_texts_t shards = {.count = 1, .items = &path};
    const hdf5io_field_t x = {.path = (char *)"/x", .scale = 1};
    const hdf5io_field_t y = {.path = (char *)"/y", .scale = 1};
    const hdf5io_dataset_config_t config = {
        .shards = &shards,
        .inputs[0] = {.field = &x,
                      .elems = chunk_numbers(file) / (int64_t)file->dims[0],
                      .shape = "[]"},
        .targets[0] = {.field = &y, .elems = 1},
        .digest = digest,
        .cache_bytes = cache_bytes};
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_open(&config, &dataset, &err), ERR_OK, "%s",
                 err.text);
    free(path);
    return dataset;
}

int64_t chunk_wrong(hdf5io_dataset_t *dataset, const chunk_file_t *file,
                    int64_t jump, int64_t batch)
{
    const int64_t rows = (int64_t)file->dims[0];
    const int64_t elems = chunk_numbers(file) / rows;
    int64_t *index = calloc((size_t)batch, sizeof *index), wrong = 0;
    float *x = calloc((size_t)(batch * elems), sizeof *x);
    float *y = calloc((size_t)batch, sizeof *y);
    err_t err = ERR_INIT;

    for (int64_t k = 0; k < rows; k += batch) {
        const int64_t count = rows - k < batch ? rows - k : batch;

        for (int64_t i = 0; i < count; i++)
            index[i] = (k + i) * jump % rows;
        if (hdf5io_dataset_read(dataset, index, count, x, y, &err) != ERR_OK) {
            fprintf(stderr, "%s\n", err.text);
            wrong += rows;
            break;
        }
        for (int64_t i = 0; i < count; i++) {
            wrong += y[i] != (float)index[i];
            for (int64_t e = 0; e < elems; e++)
                wrong += x[i * elems + e] !=
                         (float)chunk_value(index[i] * elems + e);
        }
    }
    free(index);
    free(x);
    free(y);
    return wrong;
}

/* ---- lzf ------------------------------------------------------------------
 */

/* Write [length] bytes that were written [distance] bytes before. */
static size_t lzf_copy(unsigned char *out, size_t length, size_t distance)
{
    const unsigned high = (unsigned)(distance - 1) >> 8;
    size_t at = 0;

    if (length - 2 < 7) {
        out[at++] = (unsigned char)((length - 2) << 5 | high);
    } else {
        out[at++] = (unsigned char)(7U << 5 | high);
        out[at++] = (unsigned char)(length - 9);
    }
    out[at++] = (unsigned char)(distance - 1);
    return at;
}

/* Compress: repetitions with a few distances, else single bytes. */
static size_t lzf_encode(const unsigned char *in, size_t bytes,
                         unsigned char *out)
{
    static const size_t distances[] = {1, 4, 8, 92, 1000};
    size_t at = 0, end = 0;

    while (at < bytes) {
        size_t best = 0, far = 0;

        for (size_t k = 0; k < sizeof distances / sizeof distances[0]; k++) {
            size_t length = 0;

            while (distances[k] <= at && at + length < bytes && length < 264 &&
                   in[at + length] == in[at + length - distances[k]])
                length++;
            if (length > best) {
                best = length;
                far = distances[k];
            }
        }
        if (best >= 3) {
            end += lzf_copy(out + end, best, far);
            at += best;
        } else {
            out[end++] = 0;
            out[end++] = in[at++];
        }
    }
    return end;
}

/* HDF5's interface of a filter; 0: it is not applied. */
static size_t lzf_filter(unsigned flags, size_t count, const unsigned values[],
                         size_t bytes, size_t *room, void **buffer)
{
    unsigned char *out = malloc(2 * bytes + 16);
    size_t length;

    (void)count;
    (void)values;
    cr_assert((flags & H5Z_FLAG_REVERSE) == 0, "HDF5 decoded a chunk");
    length = lzf_encode(*buffer, bytes, out);
    if (length >= bytes) {
        free(out);
        return 0;
    }
    free(*buffer);
    *buffer = out;
    *room = 2 * bytes + 16;
    return length;
}

void chunk_lzf_register(void)
{
    static const H5Z_class2_t lzf = {.version = H5Z_CLASS_T_VERS,
                                     .id = LZF,
                                     .encoder_present = 1,
                                     .decoder_present = 1,
                                     .name = "lzf",
                                     .filter = lzf_filter};

    cr_assert_geq(H5Zregister(&lzf), 0);
}

void chunk_lzf_forget(void)
{
    if (H5Zfilter_avail(LZF) > 0)
        H5Zunregister(LZF);
}
