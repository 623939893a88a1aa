/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/thread.h"
#include "hdf5io/descriptor.h"
#include "hdf5io/stage_copy.h"
#include "hdf5io/stage_dir.h"

/* 1 / STAGE_FREE_PART of a file system stays free, but at most STAGE_FREE_MOST
 * bytes: other programs need space, too, for example UCX in /dev/shm. */
#define STAGE_FREE_PART 16
#define STAGE_FREE_MOST (UINT64_C(1) << 30)

/* An entry of the table that all ranks of the node map: 1 if the file has a
 * copy. */
typedef _Atomic unsigned char stage_flag_t;

struct hdf5io_stage {
    stage_dir_t dir;
    stage_file_t *files; /* [count] */
    char **paths;        /* [count], those of [files] */
    int count, first;
    uint64_t most;
    int rank;            /* for the log */
    stage_flag_t *there; /* [count], the table */
    bool started;
    pthread_t thread;
    atomic_bool stop;
};

/* What the thread that copies has done. */
typedef struct stage_sum {
    int files, wanted; /* files that were copied; that are to be copied */
    uint64_t bytes, wanted_bytes;
    int skipped; /* files that cannot be copied */
    err_t why;   /* why the first of them was skipped, or copying ended early */
} stage_sum_t;

/* ---- opening ------------------------------------------------------------- */

/* A number that depends on the key of the job and on its files. */
static uint64_t key_of(const stage_config_t *config)
{
    hash_state_t *state = hash_state_open();
    uint64_t key;

    hash_state_add(state, &config->key, sizeof config->key);
    for (int i = 0; i < config->count; i++) {
        const stage_file_t *file = &config->files[i];
        const uint64_t facts[] = {file->bytes, (uint64_t)file->changed,
                                  file->inode, file->wanted};

        hash_state_add(state, file->path, strlen(file->path) + 1);
        hash_state_add(state, facts, sizeof facts);
    }
    key = hash_state_value(state);
    hash_state_free(state);
    return key;
}

/* Map the table. Ranks that do not copy only read it. */
static err_code_t table_map(hdf5io_stage_t *stage, err_t *err)
{
    const size_t bytes = (size_t)stage->count;
    const bool made = stage->dir.made;
    const int fd = openat(stage->dir.fd, STAGE_TABLE,
                          (made ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    void *map = MAP_FAILED;

    if (fd >= 0)
        errno = EINVAL;
    if (fd >= 0 && fstat(fd, &status) == 0 && (size_t)status.st_size == bytes)
        map = mmap(NULL, bytes, made ? PROT_READ | PROT_WRITE : PROT_READ,
                   MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        err_set(err, ERR_IO, "cannot use the table in %s: %s", stage->dir.path,
                strerror(errno));
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return ERR_IO;
    stage->there = map;
    return ERR_OK;
}

/* Copy the list of files. The thread that copies may need their paths after the
 * caller has freed its own. */
static err_code_t files_take(hdf5io_stage_t *stage, const stage_file_t *files,
                             err_t *err)
{
    const size_t count = (size_t)stage->count;
    err_code_t rc = mem_new(stage_file_t, count, "staging", &stage->files, err);

    if (rc == ERR_OK)
        rc = mem_new(char *, count, "staging", &stage->paths, err);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        stage->paths[i] = str_dup(files[i].path);
        stage->files[i] = files[i];
        stage->files[i].path = stage->paths[i];
    }
    return rc;
}

err_code_t hdf5io_stage_open(const stage_config_t *config, hdf5io_stage_t **out,
                             err_t *err)
{
    hdf5io_stage_t *stage = NULL;
    err_code_t rc;

    check(config->count > 0, "%d files are staged", config->count);
    rc = mem_new(hdf5io_stage_t, 1, "staging", &stage, err);
    if (rc != ERR_OK)
        return rc;
    stage->dir = (stage_dir_t){.fd = -1, .base = -1};
    stage->count = config->count;
    stage->first = config->first % config->count;
    stage->most = config->most;
    stage->rank = log_rank_get();
    rc = files_take(stage, config->files, err);
    if (rc == ERR_OK)
        rc = hdf5io_stage_dir_open(config->dir, key_of(config),
                                   (size_t)config->count, &stage->dir, err);
    if (rc == ERR_OK)
        rc = table_map(stage, err);
    if (rc == ERR_OK)
        *out = stage;
    else
        hdf5io_stage_close(stage);
    return rc;
}

void hdf5io_stage_wait(hdf5io_stage_t *stage)
{
    if (stage->started)
        pthread_join(stage->thread, NULL);
    stage->started = false;
}

void hdf5io_stage_close(hdf5io_stage_t *stage)
{
    if (stage == NULL)
        return;
    atomic_store(&stage->stop, true);
    hdf5io_stage_wait(stage);
    if (stage->there != NULL)
        munmap((void *)stage->there, (size_t)stage->count);
    hdf5io_stage_dir_close(&stage->dir);
    for (int i = 0; i < stage->count && stage->paths != NULL; i++)
        free(stage->paths[i]);
    mem_free(stage->paths);
    mem_free(stage->files);
    mem_free(stage);
}

/* ---- copies -------------------------------------------------------------- */

bool hdf5io_stage_there(const hdf5io_stage_t *stage, int index)
{
    check(index >= 0 && index < stage->count, "file %d of %d", index,
          stage->count);
    return atomic_load_explicit(&stage->there[index], memory_order_acquire);
}

int hdf5io_stage_copies(const hdf5io_stage_t *stage, int first, int count)
{
    int copies = 0;

    for (int i = first; i < first + count; i++)
        copies += hdf5io_stage_there(stage, i);
    return copies;
}

/* The name of a copy in its directory. It does not end as the names of HDF5
 * files do, so that nobody takes a copy for a shard of a data set. */
static void copy_name(int index, char out[32])
{
    snprintf(out, 32, "%d.copy", index);
}

int hdf5io_stage_descriptor(const hdf5io_stage_t *stage, int index)
{
    char *name = hdf5io_stage_name(stage, index);
    struct stat status;
    int fd;

    fd = hdf5io_descriptor_open(name);
    free(name);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size == stage->files[index].bytes)
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

char *hdf5io_stage_name(const hdf5io_stage_t *stage, int index)
{
    char name[32];

    copy_name(index, name);
    return str_printf("/proc/self/fd/%d/%s", stage->dir.fd, name);
}

const char *hdf5io_stage_dir(const hdf5io_stage_t *stage)
{
    return stage->dir.path;
}

/* ---- copying ------------------------------------------------------------- */

uint64_t hdf5io_stage_room(const char *dir)
{
    struct statvfs system;
    uint64_t spare, there;

    if (statvfs(dir, &system) != 0)
        return 0;
    spare = (uint64_t)system.f_blocks * system.f_frsize / STAGE_FREE_PART;
    if (spare > STAGE_FREE_MOST)
        spare = STAGE_FREE_MOST;
    there = (uint64_t)system.f_bavail * system.f_frsize;
    return there > spare ? there - spare : 0;
}

/* Is there room for [bytes] more? ERR_MEMORY: no. */
static err_code_t room_check(const hdf5io_stage_t *stage, uint64_t copied,
                             uint64_t bytes, err_t *err)
{
    char most[32];

    if (bytes > stage->most - copied)
        return err_set(err, ERR_MEMORY, "copies may take at most %s",
                       str_bytes(stage->most, most, sizeof most));
    if (bytes > hdf5io_stage_room(stage->dir.path))
        return err_set(err, ERR_MEMORY, "%s has no room for more",
                       stage->dir.path);
    return ERR_OK;
}

static err_code_t file_copy(hdf5io_stage_t *stage, int index,
                            unsigned char *buffer, stage_sum_t *sum, err_t *err)
{
    const stage_file_t *file = &stage->files[index];
    char name[32];
    const stage_copy_t copy = {.file = file,
                               .dir = stage->dir.fd,
                               .path = stage->dir.path,
                               .name = name,
                               .buffer = buffer,
                               .stop = &stage->stop};
    err_code_t rc;

    copy_name(index, name);
    rc = room_check(stage, sum->bytes, file->bytes, err);
    if (rc == ERR_OK)
        rc = hdf5io_stage_copy(&copy, err);
    if (rc != ERR_OK)
        return rc;
    atomic_store_explicit(&stage->there[index], 1, memory_order_release);
    sum->files++;
    sum->bytes += file->bytes;
    return ERR_OK;
}

/* Copy all files, until there is no room. */
static void files_copy(hdf5io_stage_t *stage, unsigned char *buffer,
                       stage_sum_t *sum)
{
    for (int i = 0; i < stage->count; i++) {
        const int index = (stage->first + i) % stage->count;
        err_t err = ERR_INIT;
        err_code_t rc;

        if (!stage->files[index].wanted)
            continue;
        rc = file_copy(stage, index, buffer, sum, &err);
        if (rc == ERR_OK)
            continue;
        if (rc != ERR_DATA || sum->skipped == 0)
            sum->why = err;
        if (rc != ERR_DATA)
            return;
        sum->skipped++;
    }
}

/* Write one line to the log that tells what was copied. */
static void sum_tell(const hdf5io_stage_t *stage, const stage_sum_t *sum,
                     double seconds)
{
    const bool all = sum->files == sum->wanted;
    char bytes[32], wanted[32];

    str_bytes(sum->bytes, bytes, sizeof bytes);
    str_bytes(sum->wanted_bytes, wanted, sizeof wanted);
    if (all)
        log_info("hdf5io",
                 "data.io: stage: all %d files (%s) are copied to %s, in %.1f "
                 "s",
                 sum->files, bytes, stage->dir.path, seconds);
    else
        log_print(sum->why.code == ERR_MEMORY ? LOG_INFO : LOG_WARN, "hdf5io",
                  "data.io: stage: %d of %d files (%s of %s) are copied to %s, "
                  "in %.1f s; the others are read from their own place: %s",
                  sum->files, sum->wanted, bytes, wanted, stage->dir.path,
                  seconds, sum->why.text);
}

static void *stage_main(void *argument)
{
    hdf5io_stage_t *stage = argument;
    const double begin = clock_now();
    stage_sum_t sum = {.why = ERR_INIT};
    unsigned char *buffer = NULL;
    int dead;

    log_rank_set(stage->rank);
    thread_stand_back();
    dead = hdf5io_stage_dir_sweep(&stage->dir);
    if (dead > 0)
        log_info("hdf5io",
                 "data.io: stage: removed the copies of %d job%s that %s "
                 "killed, beside %s",
                 dead, dead == 1 ? "" : "s", dead == 1 ? "was" : "were",
                 stage->dir.path);
    for (int i = 0; i < stage->count; i++)
        if (stage->files[i].wanted) {
            sum.wanted++;
            sum.wanted_bytes += stage->files[i].bytes;
        }
    if (mem_new(unsigned char, STAGE_BLOCK, "staging", &buffer, &sum.why) ==
        ERR_OK)
        files_copy(stage, buffer, &sum);
    mem_free(buffer);
    if (!atomic_load(&stage->stop))
        sum_tell(stage, &sum, clock_now() - begin);
    return NULL;
}

void hdf5io_stage_start(hdf5io_stage_t *stage)
{
    err_t err = ERR_INIT;

    if (!stage->dir.made)
        return;
    stage->started = thread_start("stage", stage_main, stage, &stage->thread,
                                  &err) == ERR_OK;
    if (!stage->started)
        log_warn("hdf5io",
                 "data.io: stage: nothing is copied to %s, and the files are "
                 "read from their own place: %s",
                 stage->dir.path, err.text);
}
