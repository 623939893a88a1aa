/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_layout.h"

#include <stdbool.h>
#include <stdio.h>

#include "hdf5io/column.h"
#include "hdf5io/filter.h"

#define ALIGN_MOST (UINT64_C(1) << 20) /* what is said of a place at most */
#define INDENT "      "

void cmd_layout_name(hid_t set, str_buf_t *text)
{
    const hid_t list = H5Dget_create_plist(set);
    const char *name = "other layout";

    if (list >= 0)
        switch (H5Pget_layout(list)) {
        case H5D_CONTIGUOUS:
            name = "contiguous";
            break;
        case H5D_CHUNKED:
            name = H5Pget_nfilters(list) > 0 ? "chunked, filtered" : "chunked";
            break;
        case H5D_COMPACT:
            name = "compact";
            break;
        case H5D_VIRTUAL:
            name = "virtual";
            break;
        default:
            break;
        }
    str_buf_add(text, "%s", name);
    if (list >= 0)
        H5Pclose(list);
}

/* ---- chunks -------------------------------------------------------------- */

/* Append the name of filter [index], such as "gzip 4". */
static void filter_add(hid_t list, unsigned index, str_buf_t *text)
{
    unsigned values[8] = {0}, flags, config;
    size_t count = sizeof values / sizeof values[0];
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(
        list, index, &flags, &count, values, sizeof name, name, &config);

    switch (filter) {
    case H5Z_FILTER_DEFLATE:
        str_buf_add(text, "gzip %u", values[0]);
        break;
    case H5Z_FILTER_SHUFFLE:
        str_buf_add(text, "shuffle");
        break;
    case H5Z_FILTER_FLETCHER32:
        str_buf_add(text, "fletcher32");
        break;
    case H5Z_FILTER_SZIP:
        str_buf_add(text, "szip");
        break;
    default:
        name[sizeof name - 1] = '\0';
        str_buf_add(text, "%s (%d)", name[0] == '\0' ? "filter" : name, filter);
        break;
    }
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0 &&
        !hdf5io_filter_built(filter))
        str_buf_add(text, " (not installed)");
}

static void filters_add(hid_t list, str_buf_t *text)
{
    const int count = H5Pget_nfilters(list);

    for (int i = 0; i < count; i++) {
        str_buf_add(text, "%s", i == 0 ? ", " : " + ");
        filter_add(list, (unsigned)i, text);
    }
}

/* Append the number, shape and size of the chunks, and the filters. */
static void chunks_add(hid_t set, hid_t list, str_buf_t *text)
{
    hsize_t dims[H5S_MAX_RANK];
    const int ndim = H5Pget_chunk(list, H5S_MAX_RANK, dims);
    const hid_t type = H5Dget_type(set);
    double bytes = type < 0 ? 0 : (double)H5Tget_size(type);
    char size[32];

    str_buf_add(text, INDENT);
#if H5_VERSION_GE(1, 10, 5)
    {
        const hid_t space = H5Dget_space(set);
        hsize_t count = 0;

        if (space >= 0 && H5Dget_num_chunks(set, space, &count) >= 0)
            str_buf_add(text, "%llu ", (unsigned long long)count);
        if (space >= 0)
            H5Sclose(space);
    }
#endif
    str_buf_add(text, "chunks of [");
    for (int i = 0; i < ndim; i++) {
        str_buf_add(text, "%s%llu", i > 0 ? ", " : "",
                    (unsigned long long)dims[i]);
        bytes *= (double)dims[i];
    }
    str_buf_add(text, "], %s each",
                str_bytes((uint64_t)bytes, size, sizeof size));
    filters_add(list, text);
    str_buf_add(text, "\n");
    if (type >= 0)
        H5Tclose(type);
}

/* ---- reading ------------------------------------------------------------- */

/* The largest power of two, up to ALIGN_MOST, that divides [offset]. */
static uint64_t align_of(uint64_t offset)
{
    uint64_t align = 1;

    while (align < ALIGN_MOST && offset % (2 * align) == 0)
        align *= 2;
    return align;
}

/* Append how the column is read, and count its [bytes]. */
static void way_add(const hdf5io_column_t *column, uint64_t bytes,
                    cmd_layout_ways_t *ways, str_buf_t *text)
{
    const char *why = hdf5io_way_why(column->way);
    char align[32];

    if (column->located) {
        ways->located += bytes;
        str_buf_add(text, "read by pread at byte %llu (multiple of %s)",
                    (unsigned long long)column->offset,
                    str_bytes(align_of(column->offset), align, sizeof align));
        if (column->source != NULL)
            str_buf_add(text, " of %s", column->source);
    } else if (column->chunks != NULL) {
        ways->chunks += bytes;
        str_buf_add(text, column->way == HDF5IO_WAY_ROWS
                              ? "read row by row from its chunks, by pread"
                              : "read chunk by chunk, decoded outside of HDF5");
    } else {
        ways->library += bytes;
        str_buf_add(text, "read by H5Dread");
    }
    if (why != NULL)
        str_buf_add(text, ", as %s", why);
}

/* The descriptor of the open [file]; -1: it has none. */
static int descriptor_of(hid_t file)
{
    const hid_t access = H5Fget_access_plist(file);
    void *handle = NULL;
    int fd = -1;

    if (access >= 0 && H5Pget_driver(access) == H5FD_SEC2 &&
        H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0 && handle != NULL)
        fd = *(int *)handle;
    if (access >= 0)
        H5Pclose(access);
    return fd;
}

/* Append how cddp-train reads the dataset of [bytes] bytes, or why it cannot.
 */
static void reading_add(hid_t file, const char *name, const char *path,
                        uint64_t bytes, cmd_layout_ways_t *ways,
                        str_buf_t *text)
{
    column_how_t how = {.file_bytes = INT64_MAX, .fd = descriptor_of(file)};
    hdf5io_column_t column;
    err_t err = ERR_INIT;
    err_code_t rc = hdf5io_pool_open(0, &how.pool, &err);

    if (rc == ERR_OK)
        rc = hdf5io_column_open(file, name, path, &how, &column, &err);
    if (rc == ERR_OK) {
        way_add(&column, bytes, ways, text);
        hdf5io_column_close(&column);
    } else {
        ways->none += bytes;
        str_buf_add(text, "cddp-train cannot read it: %s", err.text);
    }
    hdf5io_pool_close(how.pool);
}

/* Bytes of the values of [set] in its own type; 0 if they cannot be counted. */
static uint64_t bytes_of(hid_t set)
{
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    const hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    const size_t size = type < 0 ? 0 : H5Tget_size(type);
    uint64_t bytes = 0;

    if (count < 0 || __builtin_mul_overflow((uint64_t)count, size, &bytes))
        bytes = 0;
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return bytes;
}

void cmd_layout_describe(hid_t file, const char *name, hid_t set,
                         const char *path, cmd_layout_ways_t *ways,
                         str_buf_t *text)
{
    const hid_t list = H5Dget_create_plist(set);
    const bool chunked = list >= 0 && H5Pget_layout(list) == H5D_CHUNKED;
    const uint64_t bytes = bytes_of(set);
    const hsize_t stored = H5Dget_storage_size(set);
    char size[32], held[32];

    if (chunked)
        chunks_add(set, list, text);
    str_buf_add(text, INDENT "%s, %s stored; ",
                str_bytes(bytes, size, sizeof size),
                str_bytes(stored, held, sizeof held));
    reading_add(file, name, path, bytes, ways, text);
    str_buf_add(text, "\n");
    if (list >= 0)
        H5Pclose(list);
}

void cmd_layout_sum(const cmd_layout_ways_t *ways, str_buf_t *text)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } all[] = {{"by pread", ways->located},
               {"chunk by chunk", ways->chunks},
               {"by H5Dread", ways->library},
               {"not readable", ways->none}};
    int count = 0;
    char size[32];

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].bytes > 0)
            str_buf_add(text, "%s%s %s", count++ == 0 ? "  in all: " : ", ",
                        str_bytes(all[i].bytes, size, sizeof size),
                        all[i].name);
    str_buf_add(text, "%s", count > 0 ? "\n" : "");
}
