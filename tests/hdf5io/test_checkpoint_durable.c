/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Tests the order of syncs: when a checkpoint gets its name, every file in it
 * and its directory are durable; then the name becomes durable. Also tests the
 * [alive] callback. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"

#define INODES_MAX 64

/* All operations of all ranks on each inode, in order. */
typedef struct record {
    pthread_mutex_t lock;
    int clock, count;
    struct {
        ino_t inode;
        int written, synced; /* counter value of the last operation, 0: never */
    } inodes[INODES_MAX];
    int published; /* counter value of the rename to step-... */
    bool whole;    /* everything was synced before the rename */
    int entries;   /* number of files in the published directory */
} record_t;

static int inode_slot(record_t *record, ino_t inode)
{
    for (int i = 0; i < record->count; i++)
        if (record->inodes[i].inode == inode)
            return i;
    cr_assert_lt(record->count, INODES_MAX);
    record->inodes[record->count].inode = inode;
    return record->count++;
}

static void record_event(record_t *record, int fd, bool write)
{
    struct stat st;
    int slot;

    cr_assert_eq(fstat(fd, &st), 0);
    pthread_mutex_lock(&record->lock);
    slot = inode_slot(record, st.st_ino);
    record->clock++;
    if (write)
        record->inodes[slot].written = record->clock;
    else
        record->inodes[slot].synced = record->clock;
    pthread_mutex_unlock(&record->lock);
}

static ssize_t record_write_at(void *context, int fd, const void *bytes,
                               size_t count, off_t offset)
{
    record_event(context, fd, true);
    return pwrite(fd, bytes, count, offset);
}

static int record_sync(void *context, int fd)
{
    record_event(context, fd, false);
    return fsync(fd);
}

static int synced_at(record_t *record, const char *path)
{
    struct stat st;
    int slot;

    cr_assert_eq(stat(path, &st), 0, "%s", path);
    slot = inode_slot(record, st.st_ino);
    return record->inodes[slot].synced > record->inodes[slot].written
               ? record->inodes[slot].synced
               : 0;
}

/* Is every entry synced, and the directory after all of them? */
static bool tree_synced(record_t *record, const char *path)
{
    int last = synced_at(record, path);
    struct dirent *entry;
    DIR *dir = opendir(path);
    bool whole = true;

    while ((entry = readdir(dir)) != NULL) {
        char *name;
        int at;

        if (entry->d_name[0] == '.')
            continue;
        name = str_printf("%s/%s", path, entry->d_name);
        at = synced_at(record, name);
        whole = whole && at > 0 && at < last;
        record->entries++;
        free(name);
    }
    closedir(dir);
    return whole;
}

static int record_rename(void *context, const char *from, const char *to,
                         unsigned flags)
{
    record_t *record = context;

    if (strstr(to, "/step-") != NULL) {
        record->published = ++record->clock;
        record->whole = tree_synced(record, from);
    }
    return hdf5io_io_system.rename(NULL, from, to, flags);
}

static void body_write_recorded(ckpt_rank_t *rank, void *context)
{
    hdf5io_io_t io = {.context = context,
                      .write_at = record_write_at,
                      .sync = record_sync,
                      .rename = record_rename};

    rank->config.io = &io;
    ckpt_body_write(rank, NULL);
}

Test(checkpoint_durable, a_name_is_given_to_what_is_on_disk)
{
    char *home = ckpt_home_make();
    char *checkpoints = str_printf("%s/checkpoints", home);
    record_t record = {.lock = PTHREAD_MUTEX_INITIALIZER};
    ckpt_rank_t *ranks =
        ckpt_ranks_run(checkpoints, 3, 5, body_write_recorded, &record);
    int parent;

    cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
    cr_assert_gt(record.published, 0);
    cr_assert(record.whole);
    cr_assert_eq(record.entries,
                 5); /* 3 shards, checkpoint.h5 and the manifest */
    cr_assert_gt(synced_at(&record, checkpoints), record.published);
    parent = synced_at(&record, home);
    cr_assert(parent > 0 && parent < record.published);
    ckpt_ranks_free(ranks, 3);
    free(checkpoints);
    ckpt_home_remove(home);
}

/* fsync of a directory fails, as on some network file systems. */
static int sync_files_only(void *context, int fd)
{
    struct stat st;

    (void)context;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return fsync(fd);
}

static void body_write_files_only(ckpt_rank_t *rank, void *context)
{
    rank->io.table.sync = sync_files_only;
    ckpt_body_write(rank, context);
}

Test(checkpoint_durable, directories_need_not_have_a_sync)
{
    char *home = ckpt_home_make();
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, 2, 20, body_write_files_only, NULL);

    for (int r = 0; r < 2; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, 2);
    ckpt_expect(home, 2, 20);
    ckpt_home_remove(home);
}

static atomic_int signs;

static void alive(void *context)
{
    (void)context;
    atomic_fetch_add(&signs, 1);
}

static void body_write_alive(ckpt_rank_t *rank, void *context)
{
    (void)context;
    rank->votes.alive = alive;
    ckpt_body_write(rank, NULL);
}

static void body_read_alive(ckpt_rank_t *rank, void *context)
{
    (void)context;
    rank->votes.alive = alive;
    ckpt_body_read(rank, NULL);
}

Test(checkpoint_durable, moving_bytes_shows_signs_of_life)
{
    char *home = ckpt_home_make();
    int after_write;

    ckpt_ranks_free(ckpt_ranks_run(home, 2, 5, body_write_alive, NULL), 2);
    after_write = signs;
    /* Signs when the space of two shards and the view is reserved, when their
     * bytes are written, and when the manifest is written. */
    cr_assert_geq(after_write, 7);
    ckpt_ranks_free(ckpt_ranks_run(home, 2, 5, body_read_alive, NULL), 2);
    cr_assert_gt(signs, after_write + 8);
    ckpt_home_remove(home);
}
