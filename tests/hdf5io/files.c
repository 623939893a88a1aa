/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "files.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static void files_need(bool condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    abort();
}

char *files_make(void)
{
    const char *parent = getenv("TMPDIR");
    char *directory =
        str_printf("%s/cddp-test-XXXXXX", parent == NULL ? "/tmp" : parent);

    files_need(mkdtemp(directory) != NULL, directory);
    return directory;
}

void files_remove(char *directory)
{
    err_t err = ERR_INIT;

    files_need(file_remove_tree(directory, &err) == ERR_OK, err.text);
    free(directory);
}

char *files_path(const char *directory, const char *name)
{
    return str_printf("%s/%s", directory, name);
}

hid_t files_create(const char *directory, const char *name)
{
    char *path = files_path(directory, name);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    files_need(file >= 0, path);
    free(path);
    return file;
}

static hid_t files_create_list(files_layout_t layout, int ndim,
                               const hsize_t *dims)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];

    if (layout == FILES_COMPACT)
        H5Pset_layout(list, H5D_COMPACT);
    if (layout != FILES_CHUNKED && layout != FILES_GZIP)
        return list;
    /* Chunk sizes that do not divide any shape. */
    for (int i = 0; i < ndim; i++)
        chunk[i] = dims[i] / 3 + 1;
    H5Pset_chunk(list, ndim, chunk);
    if (layout == FILES_GZIP)
        H5Pset_deflate(list, 3);
    return list;
}

static void files_write_column(hid_t file, files_layout_t layout, int64_t first,
                               int64_t rows, const files_column_t *column)
{
    hsize_t dims[4] = {(hsize_t)rows};
    int64_t elems = 1;
    double *values;
    hid_t space, list, dataset;

    for (int i = 0; i < column->ndim; i++) {
        dims[i + 1] = column->dims[i];
        elems *= (int64_t)column->dims[i];
    }
    values = calloc((size_t)(rows * elems + 1), sizeof *values);
    files_need(values != NULL, "calloc");
    for (int64_t i = 0; i < rows * elems; i++)
        values[i] = column->value(first + i / elems, i % elems);
    space = H5Screate_simple(column->ndim + 1, dims, NULL);
    list = files_create_list(layout, column->ndim + 1, dims);
    dataset = H5Dcreate2(file, column->name, column->type, space, H5P_DEFAULT,
                         list, H5P_DEFAULT);
    files_need(dataset >= 0, column->name);
    if (rows > 0)
        files_need(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL,
                            H5P_DEFAULT, values) >= 0,
                   column->name);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    free(values);
}

void files_write(const char *path, files_layout_t layout, int64_t first,
                 int64_t rows, const files_column_t *columns, int count)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE), file;

    if (layout == FILES_USERBLOCK)
        H5Pset_userblock(create, 1024);
    file = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
    files_need(file >= 0, path);
    for (int i = 0; i < count; i++)
        files_write_column(file, layout, first, rows, &columns[i]);
    files_need(H5Fclose(file) >= 0, path);
    H5Pclose(create);
}

void files_poke(const char *path, const char *name, int64_t at, double value)
{
    hsize_t dims[H5S_MAX_RANK], point[H5S_MAX_RANK], one = 1;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set);
    hid_t memory = H5Screate_simple(1, &one, NULL);
    int ndim = H5Sget_simple_extent_dims(space, dims, NULL);

    for (int d = ndim - 1; d >= 0; d--) {
        point[d] = (hsize_t)at % dims[d];
        at /= (int64_t)dims[d];
    }
    files_need(H5Sselect_elements(space, H5S_SELECT_SET, 1, point) >= 0, name);
    files_need(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT,
                        &value) >= 0,
               name);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    files_need(H5Fclose(file) >= 0, path);
}

void files_write_text(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "we");

    files_need(file != NULL, path);
    files_need(fwrite(text, 1, bytes, file) == bytes, path);
    files_need(fclose(file) == 0, path);
}

void files_truncate(const char *path, int64_t bytes)
{
    files_need(truncate(path, bytes) == 0, path);
}

int64_t files_bytes(const char *path)
{
    struct stat status;

    files_need(stat(path, &status) == 0, path);
    return (int64_t)status.st_size;
}
