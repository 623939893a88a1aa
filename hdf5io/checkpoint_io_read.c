/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The reading part of checkpoint_io. Each call opens, reads and closes the
 * file, except those of hdf5io_io_file_t. If storage refuses, all three are
 * repeated, since the open file itself may be stale. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_io.h"

/* Bytes per call, as in checkpoint_io.c. */
#define BITE_MAX ((size_t)16 << 20)
/* Bytes that are hashed at a time. After a larger block is freed, malloc keeps
 * it, and the peak of a small run would grow by it. */
#define HASH_BITE ((size_t)256 << 10)
/* Maximum bytes of a manifest. A manifest of 1,000,000 tensors has a tenth of
 * this. */
#define LOAD_MAX ((uint64_t)1 << 30)

/* One call, with all its tries. */
typedef struct reading {
    const hdf5io_io_t *io;
    const char *path;
    /* Called with the open file; NULL: nothing to do. */
    err_code_t (*work)(struct reading *reading, err_t *err);
    bool keep;      /* the file stays open if the try succeeds */
    int fd, number; /* descriptor and errno of the current try */
    uint64_t size;  /* bytes of the file */
    void *bytes; /* for work_read: destination; [count] and [offset] belong to
                    it */
    size_t count;
    off_t offset;
    char *text; /* result of work_load; freed by the caller of retry_run */
    hdf5io_sums_t sums; /* result of work_hash; the caller frees its blocks */
    const hdf5io_io_blocks_t *blocks; /* for work_blocks */
    bool disk;   /* for work_blocks: compare with the hashes */
    bool differ; /* result of work_blocks: a hash differs */
} reading_t;

retry_t hdf5io_io_retry(const hdf5io_io_t *io)
{
    return (retry_t){.seconds = io->retry_seconds,
                     .alive = io->alive,
                     .context = io->alive_context};
}

/* Read [count] bytes at [offset] into [bytes]. */
static err_code_t take(reading_t *r, void *bytes, size_t count, off_t offset,
                       err_t *err)
{
    char *next = bytes;

    while (count > 0) {
        size_t bite = count < BITE_MAX ? count : BITE_MAX;
        ssize_t done =
            r->io->read_at(r->io->context, r->fd, next, bite, offset);
        const int reason = errno;

        if (r->io->alive != NULL)
            r->io->alive(r->io->alive_context);
        if (done < 0 && reason == EINTR)
            continue;
        if (done == 0)
            return err_set(err, ERR_DATA,
                           "%s: read failed: the file is too short", r->path);
        if (done < 0) {
            r->number = reason;
            return err_set(err, ERR_IO, "%s: read failed: %s", r->path,
                           strerror(reason));
        }
        next += done;
        offset += done;
        count -= (size_t)done;
    }
    return ERR_OK;
}

static err_code_t file_open(reading_t *r, err_t *err)
{
    struct stat st;

    /* Non-blocking, so that opening a pipe of this name does not block. Links
     * are not followed: checkpoints contain none. */
    r->fd = r->io->open(r->io->context, r->path,
                        O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (r->fd < 0 || fstat(r->fd, &st) != 0) {
        r->number = errno;
        return err_set(
            err, retry_cause(r->number) == RETRY_ABSENT ? ERR_DATA : ERR_IO,
            "%s: %s%s", r->path,
            r->number == ENOENT || r->number == ELOOP ? "" : "cannot open: ",
            r->number == ENOENT  ? "it is missing"
            : r->number == ELOOP ? "it is a symbolic link, not a regular file"
                                 : strerror(r->number));
    }
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_DATA, "%s: it is not a regular file", r->path);
    r->size = (uint64_t)st.st_size;
    return ERR_OK;
}

/* One try, see retry.h. */
static err_code_t attempt(void *context, int *number, err_t *err)
{
    reading_t *r = context;
    err_code_t rc = ERR_OK;

    r->number = 0;
    if (!r->keep || r->fd < 0)
        rc = file_open(r, err);
    if (rc == ERR_OK && r->work != NULL)
        rc = r->work(r, err);
    if (r->fd >= 0 && (rc != ERR_OK || !r->keep)) {
        close(r->fd);
        r->fd = -1;
    }
    *number = r->number;
    return rc;
}

static err_code_t reading_run(reading_t *r, retry_cause_t *cause, err_t *err)
{
    const retry_t retry = hdf5io_io_retry(r->io);

    return retry_run(&retry, r->path, attempt, r, cause, err);
}

static err_code_t work_read(reading_t *r, err_t *err)
{
    return take(r, r->bytes, r->count, r->offset, err);
}

err_code_t hdf5io_io_read(const hdf5io_io_t *io, const char *path, void *bytes,
                          size_t count, off_t offset, err_t *err)
{
    reading_t r = {.io = io,
                   .path = path,
                   .work = work_read,
                   .bytes = bytes,
                   .count = count,
                   .offset = offset};

    return reading_run(&r, NULL, err);
}

err_code_t hdf5io_io_file_open(const hdf5io_io_t *io, const char *path,
                               hdf5io_io_file_t *out, retry_cause_t *cause,
                               err_t *err)
{
    reading_t r = {.io = io, .path = path, .keep = true, .fd = -1};
    err_code_t rc = reading_run(&r, cause, err);

    *out = (hdf5io_io_file_t){io, path, r.fd, r.size};
    return rc;
}

err_code_t hdf5io_io_file_read(hdf5io_io_file_t *file, void *bytes,
                               size_t count, off_t offset, retry_cause_t *cause,
                               err_t *err)
{
    reading_t r = {.io = file->io,
                   .path = file->path,
                   .work = work_read,
                   .keep = true,
                   .fd = file->fd,
                   .bytes = bytes,
                   .count = count,
                   .offset = offset};
    err_code_t rc = reading_run(&r, cause, err);

    file->fd = r.fd;
    return rc;
}

void hdf5io_io_file_close(hdf5io_io_file_t *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static err_code_t work_load(reading_t *r, err_t *err)
{
    free(r->text);
    r->text = NULL;
    if (r->size > LOAD_MAX)
        return err_set(err, ERR_DATA,
                       "%s: it has %llu bytes, expected at most %llu: it is no "
                       "manifest",
                       r->path, (unsigned long long)r->size,
                       (unsigned long long)LOAD_MAX);
    r->text = malloc((size_t)r->size + 1);
    if (r->text == NULL)
        return err_set(err, ERR_MEMORY, "%s: no memory for its %llu bytes",
                       r->path, (unsigned long long)r->size);
    r->text[r->size] = '\0';
    return take(r, r->text, (size_t)r->size, 0, err);
}

err_code_t hdf5io_io_load(const hdf5io_io_t *io, const char *path, char **text,
                          size_t *bytes, retry_cause_t *cause, err_t *err)
{
    reading_t r = {.io = io, .path = path, .work = work_load};
    err_code_t rc = reading_run(&r, cause, err);

    if (rc != ERR_OK) {
        free(r.text);
        return rc;
    }
    *text = r.text;
    *bytes = (size_t)r.size;
    return ERR_OK;
}

static err_code_t work_hash(reading_t *r, err_t *err)
{
    hdf5io_summing_t *summing = NULL;
    void *buffer = NULL;
    err_code_t rc =
        hdf5io_summing_open(r->size, r->sums.block_bytes, &summing, err);

    if (rc == ERR_OK)
        rc = mem_alloc(HASH_BITE, "hashing", &buffer, err);
    for (uint64_t at = 0; at < r->size && rc == ERR_OK; at += HASH_BITE) {
        uint64_t left = r->size - at;
        size_t bite = left < HASH_BITE ? (size_t)left : HASH_BITE;

        rc = take(r, buffer, bite, (off_t)at, err);
        if (rc == ERR_OK)
            hdf5io_summing_add(summing, buffer, bite);
    }
    if (rc == ERR_OK)
        hdf5io_summing_end(summing, &r->sums);
    mem_free(buffer);
    hdf5io_summing_close(summing);
    return rc;
}

err_code_t hdf5io_io_hash(const hdf5io_io_t *io, const char *path,
                          hdf5io_sums_t *sums, retry_cause_t *cause, err_t *err)
{
    reading_t r = {.io = io,
                   .path = path,
                   .work = work_hash,
                   .sums = {.block_bytes = sums->block_bytes}};
    err_code_t rc = reading_run(&r, cause, err);

    if (rc == ERR_OK)
        *sums = r.sums;
    return rc;
}

static err_code_t work_compare(reading_t *r, err_t *err)
{
    r->io->forget(r->io->context, r->fd);
    return work_hash(r, err);
}

err_code_t hdf5io_io_compare(const hdf5io_io_t *io, const char *path,
                             uint64_t hash, err_t *err)
{
    reading_t r = {.io = io, .path = path, .work = work_compare};
    retry_cause_t cause = RETRY_STORAGE;
    char there[HASH_TEXT_MAX], wanted[HASH_TEXT_MAX];
    err_t why = ERR_INIT;
    err_code_t rc = reading_run(&r, &cause, &why);

    if (rc == ERR_DATA)
        return err_set(err, ERR_IO, "%s, right after it was written", why.text);
    if (rc != ERR_OK)
        return err_copy(err, &why);
    if (r.sums.hash == hash)
        return ERR_OK;
    return err_set(err, ERR_IO,
                   "%s: storage gives back other bytes than were written: they "
                   "have the hash %s instead of %s",
                   path, hash_format(r.sums.hash, there),
                   hash_format(hash, wanted));
}

/* ---- blocks -------------------------------------------------------------- */

/* Hash block number [number]. [buffer] has HASH_BITE bytes. */
static err_code_t block_hash(reading_t *r, size_t number, void *buffer,
                             hash_state_t *state, err_t *err)
{
    const uint64_t each = r->blocks->block_bytes;
    uint64_t at = number * each;
    const uint64_t end = at + each < r->size ? at + each : r->size;
    err_code_t rc = ERR_OK;

    hash_state_reset(state);
    while (at < end && rc == ERR_OK) {
        const size_t bite =
            end - at < HASH_BITE ? (size_t)(end - at) : HASH_BITE;

        rc = take(r, buffer, bite, (off_t)at, err);
        if (rc == ERR_OK)
            hash_state_add(state, buffer, bite);
        at += bite;
    }
    return rc;
}

static err_code_t work_blocks(reading_t *r, err_t *err)
{
    const hdf5io_io_blocks_t *blocks = r->blocks;
    hash_state_t *state = hash_state_open();
    void *buffer = NULL;
    err_code_t rc = mem_alloc(HASH_BITE, "hashing", &buffer, err);

    if (r->disk)
        r->io->forget(r->io->context, r->fd);
    r->differ = false;
    for (size_t b = blocks->first; b < blocks->last && rc == ERR_OK; b++) {
        uint64_t *hash = &blocks->hashes[b - blocks->first];

        rc = block_hash(r, b, buffer, state, err);
        if (rc == ERR_OK && r->disk)
            r->differ |= *hash != hash_state_value(state);
        else if (rc == ERR_OK)
            *hash = hash_state_value(state);
    }
    mem_free(buffer);
    hash_state_free(state);
    return rc;
}

err_code_t hdf5io_io_blocks(const hdf5io_io_t *io, const char *path, bool disk,
                            const hdf5io_io_blocks_t *blocks, err_t *err)
{
    reading_t r = {
        .io = io, .path = path, .work = work_blocks, .blocks = blocks};
    err_t why = ERR_INIT;
    err_code_t rc = reading_run(&r, NULL, &why);

    if (rc == ERR_OK && disk) {
        r.disk = true;
        rc = reading_run(&r, NULL, &why);
    }
    if (rc == ERR_DATA)
        return err_set(err, ERR_IO, "%s, right after it was written", why.text);
    if (rc != ERR_OK)
        return err_copy(err, &why);
    if (!r.differ)
        return ERR_OK;
    return err_set(err, ERR_IO,
                   "%s: storage gives back other bytes than were written, in "
                   "some of the blocks %zu to %zu",
                   path, blocks->first, blocks->last - 1);
}
