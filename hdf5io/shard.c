/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A shard is used as a plain file, for its size, error sentences and pread; and
 * through HDF5. Handles that no column needs are closed again, so a contiguous
 * shard, and one whose chunks are decoded here, costs one descriptor and no
 * HDF5 state.
 *
 * The first look opens the file only once, through HDF5, and duplicates HDF5's
 * descriptor: a start opens all shards, and on a file system of many hosts each
 * open is a message. If HDF5 refuses the file, and whenever a shard is opened
 * again, it is opened as a plain file first: that tells why, and gives a
 * descriptor that is not stale.
 */
#include "hdf5io/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/retry.h"
#include "hdf5io/descriptor.h"
#include "hdf5io/h5.h"

/* The time of the last change of a file, in nanoseconds. */
static int64_t shard_changed(const struct stat *status)
{
    return (int64_t)status->st_mtim.tv_sec * 1000000000 +
           status->st_mtim.tv_nsec;
}

/* Check the open file shard->fd, and keep what the system says of it. */
static err_code_t shard_descriptor_check(hdf5io_shard_t *shard, err_t *err)
{
    struct stat status;

    if (shard->fd < 0 || fstat(shard->fd, &status) != 0)
        return hdf5io_descriptor_fail(shard->path, err);
    if (!S_ISREG(status.st_mode))
        return err_set(err, ERR_DATA, "%s is not a file", shard->path);
    shard->crowded = hdf5io_descriptor_crowded(shard->fd);
    shard->bytes = (uint64_t)status.st_size;
    shard->changed = shard_changed(&status);
    shard->device = (uint64_t)status.st_dev;
    shard->inode = (uint64_t)status.st_ino;
    if (shard->bytes == 0)
        return err_set(err, ERR_DATA,
                       "%s is empty (truncated to 0 bytes): copy it again",
                       shard->path);
    return ERR_OK;
}

err_code_t hdf5io_shard_plain(hdf5io_shard_t *shard, err_t *err)
{
    shard->fd = hdf5io_descriptor_open(shard->path);
    return shard_descriptor_check(shard, err);
}

err_code_t hdf5io_shard_probe(const char *path, uint64_t *bytes, err_t *err)
{
    hdf5io_shard_t shard = {.path = path, .fd = -1};
    err_code_t rc = hdf5io_shard_plain(&shard, err);

    if (shard.fd >= 0)
        close(shard.fd);
    if (rc == ERR_OK)
        *bytes = shard.bytes;
    return rc;
}

/* Does the file have HDF5's signature, at byte 0 or after a user block of 512 *
 * 2^n bytes? */
static bool shard_signed(const hdf5io_shard_t *shard)
{
    static const char signature[8] = "\211HDF\r\n\032\n";
    uint64_t at = 0;
    char there[8];

    /* A copy that was interrupted within the signature counts as signed. */
    if (shard->bytes < sizeof there)
        return pread(shard->fd, there, shard->bytes, 0) > 0 &&
               memcmp(there, signature, shard->bytes) == 0;
    while (at + sizeof there <= shard->bytes) {
        if (pread(shard->fd, there, sizeof there, (off_t)at) ==
                (ssize_t)sizeof there &&
            memcmp(there, signature, sizeof there) == 0)
            return true;
        at = at == 0 ? 512 : 2 * at;
    }
    return false;
}

/* Set the error for a file that HDF5 does not open. Lock held. */
static err_code_t shard_refused(const hdf5io_shard_t *shard, err_t *err)
{
    unsigned long long there, base, written;
    char cause[ERR_TEXT_MAX / 2];
    const char *system;

    h5_err_text(cause, sizeof cause);
    system = strstr(cause, "errno = ");
    if (system != NULL) {
        errno = atoi(system + strlen("errno = "));
        return hdf5io_descriptor_fail(shard->path, err);
    }
    if (!shard_signed(shard))
        return err_set(err, ERR_DATA,
                       "%s (%" PRIu64 " bytes) is not an HDF5 file",
                       shard->path, shard->bytes);
    if (sscanf(cause,
               "truncated file: eof = %llu, sblock->base_addr = %llu, "
               "stored_eof = %llu",
               &there, &base, &written) == 3)
        return err_set(err, ERR_DATA,
                       "%s is truncated: %llu of %llu bytes are there: copy "
                       "it again",
                       shard->path, there, written);
    return err_set(err, ERR_DATA,
                   "%s is damaged or truncated, or its writer was stopped "
                   "before closing it (HDF5: %s)",
                   shard->path, cause);
}

/* The pool shall keep a row of chunks of each column. */
static void shard_pool_allow(const hdf5io_shard_config_t *config,
                             const hdf5io_column_t *columns)
{
    size_t bytes = 0;

    for (int k = 0; k < config->count; k++)
        if (columns[k].chunks != NULL &&
            __builtin_add_overflow(bytes, hdf5io_chunks_wish(columns[k].chunks),
                                   &bytes))
            return;
    if (bytes > 0)
        hdf5io_pool_allow(config->pool, bytes);
}

/* Open the file and its columns. Lock held. */
static err_code_t shard_open_h5(const hdf5io_shard_config_t *config,
                                uint64_t owner, hdf5io_shard_t *shard,
                                err_t *err)
{
    column_how_t how = {.file_bytes = shard->bytes,
                        .fd = shard->fd,
                        .pool = config->pool,
                        .mpi = config->collective,
                        .whole = config->whole,
                        .cache_bytes = config->cache_bytes};
    hdf5io_column_t *columns = shard->columns;
    err_code_t rc = ERR_OK;

    if (shard->file < 0)
        shard->file = H5Fopen(shard->path, H5F_ACC_RDONLY, config->access);
    if (shard->file < 0)
        return shard_refused(shard, err);
    for (int k = 0; k < config->count && rc == ERR_OK; k++) {
        how.owner = owner + (uint64_t)k;
        rc = hdf5io_column_open(shard->file, shard->path, config->paths[k],
                                &how, &columns[k], err);
        for (int j = 0; j < k && rc == ERR_OK; j++)
            hdf5io_column_share(&columns[k], &columns[j]);
    }
    /* With a stream, column 0 is the tokens and column 1 the next tokens. */
    for (int k = 0; k < config->count && rc == ERR_OK; k++) {
        if (config->sequence > 0)
            rc = hdf5io_column_cut(&columns[k], config->sequence, k, err);
        else if (config->whole)
            rc = hdf5io_column_unite(&columns[k], err);
        if (rc == ERR_OK && columns[k].rows != columns[0].rows)
            rc = err_set(err, ERR_DATA,
                         "%s: %s has %" PRId64 " samples, %s has %" PRId64
                         ": expected the same number",
                         shard->path, config->paths[0], columns[0].rows,
                         config->paths[k], columns[k].rows);
    }
    if (rc != ERR_OK)
        return rc;
    shard->rows = columns[0].rows;
    shard_pool_allow(config, columns);
    return ERR_OK;
}

/* Close the handles that reading does not need. Lock held. */
static void shard_trim(hdf5io_shard_t *shard)
{
    int apart = 0, here = 0;

    for (int k = 0; k < shard->count; k++) {
        hdf5io_column_t *column = &shard->columns[k];
        const bool direct = hdf5io_column_apart(column);

        if (direct)
            hdf5io_column_trim(column);
        apart += direct;
        here += direct && column->fd < 0;
    }
    if (apart == shard->count) {
        H5Fclose(shard->file);
        shard->file = H5I_INVALID_HID;
    }
    if (here == 0) {
        close(shard->fd);
        shard->fd = -1;
    }
}

/* Are all bytes at known offsets of the file of [facts] itself? */
static bool shard_plain(const catalogue_facts_t *facts, int count)
{
    for (int k = 0; k < count; k++)
        if (!facts->columns[k].located || facts->columns[k].linked)
            return false;
    return true;
}

bool hdf5io_shard_unchanged(const struct stat *status,
                            const catalogue_facts_t *facts)
{
    return S_ISREG(status->st_mode) &&
           (uint64_t)status->st_size == facts->bytes &&
           (uint64_t)status->st_ino == facts->inode &&
           shard_changed(status) == facts->changed;
}

bool hdf5io_shard_reopen(const hdf5io_shard_config_t *config,
                         const catalogue_facts_t *facts, int copy,
                         hdf5io_shard_t *shard)
{
    struct stat status;
    int fd = copy;

    check(!shard->open && shard->fd < 0 && shard->columns == NULL, "%s is open",
          shard->path);
    if (!shard_plain(facts, config->count))
        return false;
    if (copy < 0)
        fd = hdf5io_descriptor_open(shard->path);
    if (fd < 0)
        return false;
    if ((copy < 0 && (fstat(fd, &status) != 0 ||
                      !hdf5io_shard_unchanged(&status, facts))) ||
        hdf5io_shard_columns_make(shard, config->count, NULL) != ERR_OK) {
        if (copy < 0)
            close(fd);
        return false;
    }
    hdf5io_shard_columns_fill(config, shard->path, facts, shard->columns);
    shard->fd = fd;
    shard->crowded = hdf5io_descriptor_crowded(fd);
    shard->open = true;
    return true;
}

static uint64_t shard_place(const hdf5io_shard_t *shard)
{
    hash_state_t *state = hash_state_open();
    uint64_t place;

    hash_state_add(state, &shard->device, sizeof shard->device);
    hash_state_add(state, &shard->inode, sizeof shard->inode);
    for (int k = 0; k < shard->count; k++) {
        const hdf5io_column_t *column = &shard->columns[k];

        hash_state_add(state, &column->device, sizeof column->device);
        hash_state_add(state, &column->inode, sizeof column->inode);
    }
    place = hash_state_value(state);
    hash_state_free(state);
    return place;
}

uint64_t hdf5io_shard_place(uint64_t device, uint64_t inode, int count)
{
    hdf5io_column_t columns[SHARD_COLUMNS_MAX] = {0};

    return shard_place(&(hdf5io_shard_t){
        .device = device, .inode = inode, .columns = columns, .count = count});
}

/* Open the file through HDF5, and duplicate its descriptor. If it is not *done,
 * nothing is open, and the file is to be opened as a plain file first. ERR_IO:
 * storage refuses. Lock held. */
static err_code_t shard_open_once(const hdf5io_shard_config_t *config,
                                  hdf5io_shard_t *shard, bool *done, err_t *err)
{
    struct stat status;
    void *handle = NULL;
    int number;

    *done = false;
    /* HDF5 would wait for the writer of a pipe. */
    if (H5Pget_driver(config->access) != H5FD_SEC2 ||
        stat(shard->path, &status) != 0 || !S_ISREG(status.st_mode))
        return ERR_OK;
    shard->file = H5Fopen(shard->path, H5F_ACC_RDONLY, config->access);
    number = shard->file < 0 ? h5_err_number() : 0;
    if (shard->file >= 0 &&
        H5Fget_vfd_handle(shard->file, H5P_DEFAULT, &handle) >= 0 &&
        handle != NULL)
        shard->fd = fcntl(*(int *)handle, F_DUPFD_CLOEXEC, 0);
    *done = shard->fd >= 0;
    if (*done)
        return ERR_OK;
    H5Eclear2(H5E_DEFAULT);
    if (shard->file >= 0)
        H5Fclose(shard->file);
    shard->file = H5I_INVALID_HID;
    /* Another call at once would be a try that nobody counts. */
    if (retry_cause(number) != RETRY_STORAGE || number == EMFILE)
        return ERR_OK;
    errno = number;
    return hdf5io_descriptor_fail(shard->path, err);
}

static err_code_t shard_open(const hdf5io_shard_config_t *config,
                             const char *path, uint64_t owner, bool once,
                             hdf5io_shard_t *out, err_t *err)
{
    hdf5io_shard_t shard;
    bool done = false;
    err_code_t rc;

    hdf5io_shard_init(&shard);
    errno = 0;
    shard.path = path;
    rc = hdf5io_shard_columns_make(&shard, config->count, err);
    if (rc == ERR_OK && once) {
        h5_lock();
        rc = shard_open_once(config, &shard, &done, err);
        h5_unlock();
    }
    if (rc == ERR_OK) {
        errno = 0;
        rc = done ? shard_descriptor_check(&shard, err)
                  : hdf5io_shard_plain(&shard, err);
    }
    if (rc == ERR_OK) {
        h5_lock();
        rc = shard_open_h5(config, owner, &shard, err);
        if (rc == ERR_OK)
            shard_trim(&shard);
        h5_unlock();
    }
    if (rc != ERR_OK) {
        hdf5io_shard_rest(&shard);
        return rc;
    }
    for (int k = 0; k < shard.count; k++)
        shard.cached += shard.columns[k].cached;
    shard.place = shard_place(&shard);
    shard.open = true;
    *out = shard;
    return ERR_OK;
}

err_code_t hdf5io_shard_open(const hdf5io_shard_config_t *config,
                             const char *path, uint64_t owner,
                             hdf5io_shard_t *out, err_t *err)
{
    return shard_open(config, path, owner, false, out, err);
}

err_code_t hdf5io_shard_look(const hdf5io_shard_config_t *config,
                             const char *path, uint64_t owner,
                             hdf5io_shard_t *out, err_t *err)
{
    return shard_open(config, path, owner, true, out, err);
}

/* Open the shard by MPI-IO and its collective columns. Lock held. */
static err_code_t shard_join_h5(hid_t access, hdf5io_shard_t *shard, err_t *err)
{
    err_code_t rc = ERR_OK;

    shard->joined = H5Fopen(shard->path, H5F_ACC_RDONLY, access);
    if (shard->joined < 0)
        return shard_refused(shard, err);
    for (int k = 0; k < shard->count && rc == ERR_OK; k++)
        if (shard->columns[k].collective)
            rc = hdf5io_column_join(&shard->columns[k], shard->joined, err);
    return rc;
}

err_code_t hdf5io_shard_join(hid_t access, hdf5io_shard_t *shard, err_t *err)
{
    err_code_t rc = ERR_OK;
    int together = 0, located = 0;

    for (int k = 0; k < shard->count; k++) {
        together += shard->columns[k].collective;
        located += shard->columns[k].located;
    }
    if (together == 0)
        return ERR_OK;
    h5_lock();
    rc = shard_join_h5(access, shard, err);
    if (together + located == shard->count) {
        H5Fclose(shard->file);
        shard->file = H5I_INVALID_HID;
    }
    h5_unlock();
    return rc;
}

void hdf5io_shard_rest(hdf5io_shard_t *shard)
{
    const int number = errno; /* of the error that caused the close, if any */

    h5_lock();
    for (int k = shard->count - 1; shard->columns != NULL && k >= 0; k--)
        hdf5io_column_close(&shard->columns[k]);
    if (shard->joined >= 0)
        H5Fclose(shard->joined);
    if (shard->file >= 0)
        H5Fclose(shard->file);
    h5_unlock();
    if (shard->fd >= 0)
        close(shard->fd);
    mem_free(shard->columns);
    free(shard->copy);
    shard->copy = NULL;
    shard->copied = false;
    shard->columns = NULL;
    shard->joined = H5I_INVALID_HID;
    shard->file = H5I_INVALID_HID;
    shard->fd = -1;
    shard->open = false;
    errno = number;
}

void hdf5io_shard_adopt(hdf5io_shard_t *shard, hdf5io_shard_t *from)
{
    check(!shard->open && shard->count == from->count,
          "%s: open %d, %d columns take over %d", shard->path, shard->open,
          shard->count, from->count);
    shard->columns = from->columns;
    from->columns = NULL;
    shard->fd = from->fd;
    shard->file = from->file;
    /* The size in the facts may come from a process with other caches. */
    shard->cached = from->cached;
    shard->crowded = from->crowded;
    shard->open = true;
    from->fd = -1;
    from->file = H5I_INVALID_HID;
}
