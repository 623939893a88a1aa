/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * HDF5 makes the headers of a shard in memory, under its lock. Then the headers
 * and the data are written without the lock: ranks that are threads write in
 * parallel, and write errors are reported here.
 *
 * Several ranks may write a shard together, each one its own bytes. The head of
 * the file makes the headers and reserves the space. A block may have bytes of
 * several ranks. So, when all bytes are written, each block is read back and
 * hashed by one of these ranks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_body.h"
#include "hdf5io/checkpoint_files.h"
#include "hdf5io/h5.h"

char *hdf5io_files_path(const hdf5io_files_t *files, int file)
{
    return str_printf("%s/%s", files->directory,
                      files->manifest->files[file].name);
}

void hdf5io_files_empty(const char *path)
{
    if (truncate(path, 0) != 0 && errno != ENOENT)
        log_debug("hdf5io", "%s: cannot truncate: %s", path, strerror(errno));
}

hid_t hdf5io_files_layout(void)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    if (list >= 0 && (H5Pset_layout(list, H5D_CONTIGUOUS) < 0 ||
                      H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0 ||
                      H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0 ||
                      H5Pset_obj_track_times(list, false) < 0)) {
        H5Pclose(list);
        return H5I_INVALID_HID;
    }
    return list;
}

hid_t hdf5io_files_create(const char *path, hid_t access)
{
    h5_lock_check();
    if (access < 0)
        return access;
    return H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, access);
}

err_code_t hdf5io_files_close(hid_t file, const char *path, err_code_t rc,
                              err_t *err)
{
    h5_lock_check();
    if (file >= 0 && H5Fclose(file) < 0 && rc == ERR_OK)
        rc = h5_err_set(err, ERR_IO, "%s: cannot close", path);
    return rc;
}

hid_t hdf5io_files_dataset(hid_t file, const char *name, hid_t space,
                           hid_t layout)
{
    hid_t dataset = H5I_INVALID_HID, link = H5Pcreate(H5P_LINK_CREATE);

    if (link < 0)
        return link;
    if (H5Pset_create_intermediate_group(link, 1) >= 0)
        dataset = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, link, layout,
                             H5P_DEFAULT);
    H5Pclose(link);
    return dataset;
}

err_code_t hdf5io_files_locate(hid_t dataset, const char *path,
                               const char *name, int64_t *offset, err_t *err)
{
    H5D_space_status_t status;
    haddr_t address;

    h5_lock_check();
    if (H5Dget_space_status(dataset, &status) < 0 ||
        status != H5D_SPACE_STATUS_ALLOCATED)
        return h5_err_set(err, ERR_IO, "%s: %s has no space allocated", path,
                          name);
    address = H5Dget_offset(dataset);
    if (address == HADDR_UNDEF)
        return h5_err_set(err, ERR_IO, "%s: %s has no offset", path, name);
    *offset = (int64_t)address;
    return ERR_OK;
}

/* Create the 1-dimensional dataset of a piece. Lock held. */
static err_code_t piece_create(hid_t file, hid_t layout, const char *path,
                               const char *name, hdf5io_manifest_piece_t *piece,
                               err_t *err)
{
    hsize_t extent = (hsize_t)piece->count;
    hid_t space = H5Screate_simple(1, &extent, NULL);
    hid_t dataset = hdf5io_files_dataset(file, name, space, layout);
    err_code_t rc;

    if (dataset < 0)
        rc =
            h5_err_set(err, ERR_IO, "%s: cannot create dataset %s", path, name);
    else
        rc = hdf5io_files_locate(dataset, path, name, &piece->offset, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

/* Make the datasets of all pieces of file [number] in the memory of [header].
 * Lock held. */
static err_code_t shard_layout(const hdf5io_details_t *details, int number,
                               const char *path, hdf5io_header_t *header,
                               err_t *err)
{
    hdf5io_manifest_t *m = details->manifest;
    hid_t layout = hdf5io_files_layout();
    err_code_t rc = hdf5io_header_open(path, header, err);

    if (rc == ERR_OK && layout < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot make its headers", path);
    for (int i = details->pieces[number];
         i < details->pieces[number + 1] && rc == ERR_OK; i++) {
        const int piece = details->order[i];
        char *name = hdf5io_manifest_piece_name(m, piece);

        rc = piece_create(header->file, layout, path, name, &m->pieces[piece],
                          err);
        free(name);
    }
    rc = hdf5io_header_end(header, rc, err);
    if (layout >= 0)
        H5Pclose(layout);
    return rc;
}

err_code_t hdf5io_files_head(hdf5io_files_t *files, err_t *err)
{
    const hdf5io_details_t *details = files->details;
    const int number = hdf5io_details_file(details);
    char *path;
    err_code_t rc;

    if (number < 0 || hdf5io_details_head(details, number) != files->rank)
        return ERR_OK;
    path = hdf5io_files_path(files, number);
    h5_lock();
    rc = shard_layout(details, number, path, &files->header, err);
    h5_unlock();
    if (rc == ERR_OK)
        rc = hdf5io_body_create(files->io, path, files->header.bytes, err);
    if (rc == ERR_OK)
        files->manifest->files[number].bytes = files->header.bytes;
    free(path);
    return rc;
}

/* ---- data ---------------------------------------------------------------- */

/* The place in the file of the bytes of [run], which is a part of [piece]. */
static hdf5io_span_t run_span(const hdf5io_files_t *files,
                              const hdf5io_manifest_piece_t *piece,
                              const hdf5io_run_t *run)
{
    const int64_t skip = run->first - piece->first;

    check(run->tensor == piece->tensor && skip >= 0 &&
              skip + run->count <= piece->count,
          "rank %d: elements %lld to %lld of tensor %d are planned, its share "
          "has %lld elements from %lld on of tensor %d",
          files->rank, (long long)piece->first,
          (long long)(piece->first + piece->count), piece->tensor,
          (long long)run->count, (long long)run->first, run->tensor);
    check(run->data != NULL,
          "rank %d has no elements from %lld on of tensor %d", files->rank,
          (long long)run->first, run->tensor);
    check(piece->offset > 0, "tensor %d has no place in file %d", piece->tensor,
          piece->file);
    return (hdf5io_span_t){
        .at = (uint64_t)(piece->offset + skip * (int64_t)sizeof(float)),
        .bytes = (uint64_t)run->count * sizeof(float),
        .data = (const char *)run->data};
}

/* List the places in file [number] of the runs of this rank's share. Runs and
 * pieces are in the order of the tensors, and each run is in one piece. */
static void runs_place(const hdf5io_files_t *files, int number,
                       hdf5io_span_t *spans)
{
    const hdf5io_details_t *details = files->details;
    const int runs = hdf5io_share_runs(files->share);
    int i = details->pieces[number];

    for (int n = 0; n < runs; n++) {
        const hdf5io_run_t run = hdf5io_share_run(files->share, n);
        const hdf5io_manifest_piece_t *piece =
            &files->manifest->pieces[details->order[i]];

        while (i + 1 < details->pieces[number + 1] &&
               (piece->tensor < run.tensor ||
                (piece->tensor == run.tensor &&
                 piece->first + piece->count <= run.first)))
            piece = &files->manifest->pieces[details->order[++i]];
        spans[n] = run_span(files, piece, &run);
    }
}

/* List the bytes of file [number] that are in the headers. [out] has room for
 * 2n + 1 spans, where n is the number of pieces of the file. Returns their
 * number. */
static size_t gaps_list(const hdf5io_files_t *files, int number,
                        hdf5io_span_t *out)
{
    const hdf5io_details_t *details = files->details;
    const int first = details->pieces[number];
    const size_t count = (size_t)(details->pieces[number + 1] - first);
    hdf5io_span_t *data = out + count + 1;

    for (size_t i = 0; i < count; i++) {
        const hdf5io_manifest_piece_t *piece =
            &files->manifest->pieces[details->order[(size_t)first + i]];

        data[i] =
            (hdf5io_span_t){.at = (uint64_t)piece->offset,
                            .bytes = (uint64_t)piece->count * sizeof(float)};
    }
    hdf5io_spans_sort(data, count);
    return hdf5io_spans_gaps(data, count, files->manifest->files[number].bytes,
                             out);
}

/* List what this rank writes of file [number]: its share and, on the head of
 * the file, the headers. The caller frees *out. */
static err_code_t spans_list(const hdf5io_files_t *files, int number,
                             hdf5io_span_t **out, size_t *count, err_t *err)
{
    const hdf5io_details_t *details = files->details;
    const size_t runs = (size_t)hdf5io_share_runs(files->share);
    const size_t pieces =
        (size_t)(details->pieces[number + 1] - details->pieces[number]);
    hdf5io_span_t *spans = NULL;
    err_code_t rc = mem_new(hdf5io_span_t, runs + 2 * pieces + 1,
                            "writing a checkpoint", &spans, err);

    if (rc != ERR_OK)
        return rc;
    runs_place(files, number, spans);
    *count = runs;
    if (files->header.fd >= 0)
        *count += gaps_list(files, number, spans + runs);
    hdf5io_spans_sort(spans, *count);
    *out = spans;
    return ERR_OK;
}

static void sums_enter(hdf5io_files_t *files, int file,
                       const hdf5io_sums_t *sums)
{
    hdf5io_manifest_file_t *entry = &files->manifest->files[file];

    entry->hash = sums->hash;
    entry->bytes = sums->bytes;
    entry->blocks = sums->blocks;
}

/* Write [body], which is the whole file number [file], and enter its hashes. */
static err_code_t whole_write(hdf5io_files_t *files, int file,
                              const hdf5io_body_t *body, err_t *err)
{
    hdf5io_sums_t sums = {.bytes = files->manifest->files[file].bytes,
                          .block_bytes = files->manifest->block_bytes};
    err_code_t rc = hdf5io_body_write(body, &sums, err);

    if (rc == ERR_OK)
        sums_enter(files, file, &sums);
    if (rc == ERR_OK && files->disk)
        rc = hdf5io_io_compare(files->io, body->path, sums.hash, err);
    return rc;
}

err_code_t hdf5io_files_shard(hdf5io_files_t *files, err_t *err)
{
    const int number = hdf5io_details_file(files->details);
    hdf5io_body_t body = {.io = files->io, .header = &files->header};
    hdf5io_span_t *spans = NULL;
    char *path;
    err_code_t rc;

    if (number < 0)
        return ERR_OK;
    path = hdf5io_files_path(files, number);
    rc = spans_list(files, number, &spans, &body.count, err);
    body.path = path;
    body.spans = spans;
    if (rc == ERR_OK)
        rc = hdf5io_details_writers(files->details, number) == 1
                 ? whole_write(files, number, &body, err)
                 : hdf5io_body_write(&body, NULL, err);
    for (size_t i = 0; i < body.count && rc == ERR_OK; i++)
        files->bytes += (int64_t)spans[i].bytes;
    mem_free(spans);
    free(path);
    return rc;
}

err_code_t hdf5io_files_sums(hdf5io_files_t *files, err_t *err)
{
    hdf5io_manifest_t *m = files->manifest;
    const int number = hdf5io_details_file(files->details);
    hdf5io_io_blocks_t blocks = {.block_bytes = m->block_bytes};
    char *path;
    err_code_t rc;

    if (number < 0 || hdf5io_details_writers(files->details, number) == 1)
        return ERR_OK;
    rc = hdf5io_blocks_open(m, number, err);
    hdf5io_details_blocks(files->details, &blocks.first, &blocks.last);
    if (rc != ERR_OK || blocks.first == blocks.last)
        return rc;
    blocks.hashes = m->files[number].blocks + blocks.first;
    path = hdf5io_files_path(files, number);
    rc = hdf5io_io_blocks(files->io, path, files->disk, &blocks, err);
    free(path);
    return rc;
}

/* ---- other files --------------------------------------------------------- */

err_code_t hdf5io_files_write(hdf5io_files_t *files, int file,
                              const hdf5io_header_t *header, err_t *err)
{
    hdf5io_span_t all;
    const hdf5io_body_t body = {
        .io = files->io,
        .path = header->path,
        .header = header,
        .spans = &all,
        .count = hdf5io_spans_gaps(NULL, 0, header->bytes, &all)};
    err_code_t rc =
        hdf5io_body_create(files->io, header->path, header->bytes, err);

    files->manifest->files[file].bytes = header->bytes;
    if (rc == ERR_OK)
        rc = whole_write(files, file, &body, err);
    if (rc == ERR_OK)
        files->bytes += (int64_t)header->bytes;
    return rc;
}

err_code_t hdf5io_files_hash(hdf5io_files_t *files, int file, err_t *err)
{
    hdf5io_sums_t sums = {.block_bytes = files->manifest->block_bytes};
    char *path = hdf5io_files_path(files, file);
    err_code_t rc = hdf5io_io_hash(files->io, path, &sums, NULL, err);

    if (rc == ERR_OK)
        sums_enter(files, file, &sums);
    if (rc == ERR_OK && files->disk)
        rc = hdf5io_io_compare(files->io, path, sums.hash, err);
    free(path);
    return rc;
}
