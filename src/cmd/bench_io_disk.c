/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/bench_io_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define BLOCK ((size_t)1 << 20) /* bytes of a pread or pwrite */
/* If more of a file stays in the page cache, reads of it are not cold. */
#define STAYS_MOST 0.02

typedef struct disk {
    const bench_io_span_t *spans; /* [count] */
    int count, size;              /* [size]: threads */
    bool write;
    int *files;    /* [count] */
    int *reasons;  /* [count] errno; 0: no error */
    char *buffers; /* [size][BLOCK] */
} disk_t;

void bench_io_spans_cut(const char *path, int64_t bytes, bench_io_span_t *spans,
                        int count)
{
    for (int i = 0; i < count; i++) {
        const int64_t first = bytes / count * i, end = bytes / count * (i + 1);

        spans[i] =
            (bench_io_span_t){.path = path,
                              .first = first,
                              .bytes = (i + 1 == count ? bytes : end) - first};
    }
}

/* Move one block of span [index]; returns the bytes, or -1 with errno. */
static ssize_t block_move(const disk_t *disk, int index, char *buffer,
                          int64_t done)
{
    const bench_io_span_t *span = &disk->spans[index];
    const int64_t rest = span->bytes - done;
    const size_t bytes = rest < (int64_t)BLOCK ? (size_t)rest : BLOCK;
    ssize_t moved;

    do
        moved = disk->write
                    ? pwrite(disk->files[index], span->data + done, bytes, done)
                    : pread(disk->files[index],
                            span->to == NULL ? buffer : span->to + done, bytes,
                            span->first + done);
    while (moved < 0 && errno == EINTR);
    if (moved == 0)
        errno = EIO; /* the file is shorter than it was */
    return moved == 0 ? -1 : moved;
}

static void span_move(const disk_t *disk, int index, char *buffer)
{
    int64_t done = 0;

    while (done < disk->spans[index].bytes) {
        const ssize_t moved = block_move(disk, index, buffer, done);

        if (moved < 0) {
            disk->reasons[index] = errno;
            return;
        }
        done += moved;
    }
    if (disk->write && fsync(disk->files[index]) != 0)
        disk->reasons[index] = errno;
}

static void disk_job(void *context, int member)
{
    const disk_t *disk = context;

    for (int i = member; i < disk->count; i += disk->size)
        span_move(disk, i, disk->buffers + (size_t)member * BLOCK);
}

static err_code_t files_open(disk_t *disk, err_t *err)
{
    const int flags = disk->write ? O_WRONLY | O_CREAT | O_EXCL : O_RDONLY;

    for (int i = 0; i < disk->count; i++) {
        const err_code_t rc = file_open_regular(disk->spans[i].path, flags,
                                                FILE_OWN, &disk->files[i], err);

        if (rc != ERR_OK)
            return rc;
    }
    return ERR_OK;
}

static void files_close(disk_t *disk)
{
    for (int i = 0; i < disk->count && disk->files != NULL; i++) {
        if (disk->files[i] < 0)
            continue;
        close(disk->files[i]);
        if (disk->write)
            unlink(disk->spans[i].path);
    }
}

static err_code_t disk_open(disk_t *disk, err_t *err)
{
    const size_t count = (size_t)disk->count;
    const size_t bytes = (size_t)disk->size * BLOCK;
    err_code_t rc = mem_new(int, count, "files", &disk->files, err);

    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        disk->files[i] = -1;
    rc = mem_new(int, count, "files", &disk->reasons, err);
    if (rc == ERR_OK)
        rc = mem_new(char, bytes, "buffers", &disk->buffers, err);
    if (rc == ERR_OK)
        memset(disk->buffers, 1, bytes); /* so that the pages are there */
    return rc == ERR_OK ? files_open(disk, err) : rc;
}

static err_code_t disk_run(crew_t *crew, disk_t *disk, double *seconds,
                           err_t *err)
{
    err_code_t rc = disk_open(disk, err);
    double begin;

    if (rc == ERR_OK) {
        begin = clock_now();
        crew_run(crew, disk_job, disk);
        *seconds = clock_now() - begin;
    }
    for (int i = 0; rc == ERR_OK && i < disk->count; i++)
        if (disk->reasons[i] != 0)
            rc = err_set(err, ERR_IO, "%s: cannot %s: %s", disk->spans[i].path,
                         disk->write ? "write" : "read",
                         strerror(disk->reasons[i]));
    files_close(disk);
    mem_free(disk->buffers);
    mem_free(disk->reasons);
    mem_free(disk->files);
    return rc;
}

err_code_t bench_io_spans_read(crew_t *crew, const bench_io_span_t *spans,
                               int count, double *seconds, err_t *err)
{
    disk_t disk = {.spans = spans, .count = count, .size = crew_size(crew)};

    return disk_run(crew, &disk, seconds, err);
}

err_code_t bench_io_spans_write(crew_t *crew, const bench_io_span_t *spans,
                                int count, double *seconds, err_t *err)
{
    disk_t disk = {
        .spans = spans, .count = count, .size = crew_size(crew), .write = true};

    return disk_run(crew, &disk, seconds, err);
}

/* ---- page cache ---------------------------------------------------------- */

/* The share of the first [bytes] bytes of [file] that the page cache holds. */
static err_code_t cached_share(int file, size_t bytes, double *share,
                               err_t *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = (bytes + page - 1) / page;
    unsigned char *found = NULL;
    size_t held = 0;
    void *map;
    err_code_t rc = mem_new(unsigned char, pages, "pages", &found, err);

    if (rc != ERR_OK)
        return rc;
    map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED || mincore(map, bytes, found) != 0)
        rc = err_set(err, ERR_IO, "the page cache cannot be looked at: %s",
                     strerror(errno));
    for (size_t i = 0; rc == ERR_OK && i < pages; i++)
        held += found[i] & 1;
    if (map != MAP_FAILED)
        munmap(map, bytes);
    mem_free(found);
    if (rc == ERR_OK)
        *share = (double)held / (double)pages;
    return rc;
}

err_code_t bench_io_drop(const char *path, double *stays, err_t *err)
{
    struct stat status;
    int file = -1;
    err_code_t rc = file_sync(path, err);

    if (rc == ERR_OK)
        rc = file_open_regular(path, O_RDONLY, FILE_OWN, &file, err);
    if (rc != ERR_OK)
        return rc;
    /* Where this is refused, the pages stay, and *stays tells it. */
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    if (fstat(file, &status) != 0)
        rc = err_set(err, ERR_IO, "%s: %s", path, strerror(errno));
    else if (status.st_size == 0)
        *stays = 0;
    else
        rc = cached_share(file, (size_t)status.st_size, stays, err);
    close(file);
    return rc;
}

bool bench_io_dropped(const char *path, double stays)
{
    if (stays <= STAYS_MOST)
        return true;
    fprintf(stderr,
            "cddp-bench: %.0f %% of %s stay in the page cache, so no cold "
            "reads are measured: choose a directory on a disk\n",
            stays * 100, path);
    return false;
}
