/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Copies of shards on a node whose disk fails. The disk is full, refuses a
 * call, or returns other bytes than were written. Whatever happens, the samples
 * are right, and nothing is left on the disk. More tests: the disk is slow, and
 * the data set is closed while its shards are still copied; the bytes of a copy
 * change later; hosts share a disk.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "chunk_files.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/dataset_stage.h"
#include "hdf5io/stage_dir.h"
#include "lib/entries.h"
#include "lib/io_tape.h"
#include "open.h"

enum { SHARDS = 4, ROWS = 50 };

/* global: the next [wrong_reads] reads of the file "draft" return a wrong byte
 */
static atomic_int wrong_reads;

/* global: while [slow], the next read of that file posts [reading], and then
 * waits for [go] */
static atomic_bool slow;
static sem_t reading, go;

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    const ssize_t got = syscall(SYS_pread64, fd, bytes, count, offset);
    char link[32], path[4096];
    ssize_t length;

    if ((atomic_load(&wrong_reads) == 0 && !atomic_load(&slow)) || got <= 0)
        return got;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (strstr(path, "/draft") == NULL)
        return got;
    if (atomic_exchange(&slow, false)) {
        sem_post(&reading);
        sem_wait(&go);
    }
    if (atomic_load(&wrong_reads) > 0) {
        ((unsigned char *)bytes)[got / 2] ^= 1;
        atomic_fetch_sub(&wrong_reads, 1);
    }
    return got;
}

/* global: the name of this host; NULL: its true one */
static const char *host;

int gethostname(char *name, size_t room)
{
    struct utsname own;

    if (uname(&own) != 0)
        return -1;
    snprintf(name, room, "%s", host != NULL ? host : own.nodename);
    return 0;
}

static char *directory, *base;
static open_setup_t setup;

static void start(void)
{
    directory = files_make();
    base = files_path(directory, "node");
    cr_assert_eq(mkdir(base, 0700), 0);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.cache_bytes = 1;
    open_write_parts(directory, FILES_CONTIGUOUS, SHARDS, ROWS);
}

static void stop(void)
{
    open_setup_free(&setup);
    free(base);
    files_remove(directory);
}

TestSuite(stage_fault, .init = start, .fini = stop, .timeout = 120);

/* Open the stage [key] of all shards of [dataset], and let the data set read
 * from it. */
static err_code_t copies_open(hdf5io_dataset_t *dataset, uint64_t key,
                              hdf5io_stage_t **out, err_t *err)
{
    stage_file_t files[SHARDS];
    const stage_config_t config = {.dir = base,
                                   .key = key,
                                   .files = files,
                                   .count = hdf5io_dataset_shards(dataset),
                                   .most = UINT64_MAX};
    err_code_t rc;

    hdf5io_dataset_stage_files(dataset, files);
    rc = hdf5io_stage_open(&config, out, err);
    if (rc == ERR_OK)
        hdf5io_dataset_stage(dataset, *out, 0);
    return rc;
}

/* Copy the shards, and read all samples. Returns the number of copies, -1 if
 * nothing could be copied. */
static int stage_run(uint64_t key)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);
    hdf5io_stage_t *stage = NULL;
    err_t err = ERR_INIT;
    int copies = -1;

    if (copies_open(dataset, key, &stage, &err) == ERR_OK) {
        hdf5io_stage_start(stage);
        hdf5io_stage_wait(stage);
        copies = hdf5io_stage_copies(stage, 0, SHARDS);
    } else {
        cr_expect_not_null(strstr(err.text, base), "%s", err.text);
    }
    cr_expect_eq(open_wrong_orders(dataset, SHARDS * ROWS), 0);
    hdf5io_dataset_close(dataset);
    hdf5io_stage_close(stage);
    return copies;
}

/* Run with this plan; returns the number of copies. *calls becomes the number
 * of calls of the kinds in the plan. */
static int run(io_tape_plan_t plan, long *calls)
{
    int copies;

    plan.root = base;
    io_tape_begin(&plan);
    copies = stage_run(0);
    *calls = io_tape_end();
    cr_expect_eq(entries_count(base), 0, "call %ld", plan.at);
    return copies;
}

/* The disk is full from some write on. The copies that were made before are
 * used. */
Test(stage_fault, a_full_disk_ends_copying)
{
    io_tape_plan_t plan = {
        .kinds = 1U << IO_TAPE_WRITE, .act = IO_TAPE_STAY, .error = ENOSPC};
    long calls, all;
    int before = -1;

    cr_assert_eq(run(plan, &all), SHARDS);
    for (plan.at = 1; plan.at <= all; plan.at++) {
        const int copies = run(plan, &calls);

        cr_expect_geq(copies, before);
        cr_expect_lt(copies, SHARDS);
        before = copies;
    }
    cr_expect_eq(before, SHARDS - 1);
}

/* Each call fails once. If the directory could not be removed, the next start
 * removes it. */
Test(stage_fault, no_call_that_fails_ends_a_run)
{
    io_tape_plan_t plan = {
        .root = base, .kinds = IO_TAPE_ALL, .act = IO_TAPE_FAIL, .error = EIO};
    long all;

    io_tape_begin(&plan);
    cr_assert_eq(stage_run(0), SHARDS);
    all = io_tape_end();
    cr_assert_gt(all, SHARDS * 4);
    for (plan.at = 1; plan.at <= all; plan.at++) {
        io_tape_begin(&plan);
        cr_expect_leq(stage_run((uint64_t)plan.at), SHARDS);
        io_tape_end();
        cr_expect_eq(stage_run(0), SHARDS, "after call %ld", plan.at);
        cr_expect_eq(entries_count(base), 0, "call %ld", plan.at);
    }
}

/* The first copy is read back with a wrong byte. It is not used, and nothing
 * more is copied to this disk. */
Test(stage_fault, a_copy_with_other_bytes_is_not_used)
{
    long calls;

    atomic_store(&wrong_reads, 1);
    cr_expect_eq(run((io_tape_plan_t){0}, &calls), 0);
    cr_expect_eq(atomic_load(&wrong_reads), 0);
}

/* The thread that copies must not use memory that the data set has freed. */
Test(stage_fault, copying_goes_on_after_the_data_set_is_closed)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);
    hdf5io_stage_t *stage = NULL;

    cr_assert_eq(sem_init(&reading, 0, 0), 0);
    cr_assert_eq(sem_init(&go, 0, 0), 0);
    cr_assert_eq(copies_open(dataset, 1, &stage, NULL), ERR_OK);
    atomic_store(&slow, true);
    hdf5io_stage_start(stage);
    cr_assert_eq(sem_wait(&reading), 0);
    hdf5io_dataset_close(dataset);
    sem_post(&go);
    hdf5io_stage_wait(stage);
    cr_expect_eq(hdf5io_stage_copies(stage, 0, SHARDS), SHARDS);
    hdf5io_stage_close(stage);
    cr_expect_eq(entries_count(base), 0);
}

/* ---- copies that turn out to be bad while others read them ----------------
 */

/* A read of a shard whose copy is bad. */
typedef struct bad {
    hdf5io_dataset_t *dataset;
    hdf5io_shard_t *shard;
    hdf5io_stage_t *stage;
    bool early; /* the copy is made and taken while the first try reads */
    int waits;  /* between tries */
} bad_t;

static void bad_open(bad_t *bad, hdf5io_dataset_t *dataset)
{
    *bad = (bad_t){.dataset = dataset, .shard = &dataset->shards[0]};
    cr_assert_eq(copies_open(dataset, 1, &bad->stage, NULL), ERR_OK);
}

static void bad_close(const bad_t *bad)
{
    hdf5io_dataset_close(bad->dataset);
    hdf5io_stage_close(bad->stage);
    cr_expect_eq(entries_count(base), 0);
}

static err_code_t work_nothing(void *context, err_t *err)
{
    (void)context;
    (void)err;
    return ERR_OK;
}

/* Let the data set use the copy of the shard. */
static void bad_take(const bad_t *bad)
{
    hdf5io_stage_start(bad->stage);
    hdf5io_stage_wait(bad->stage);
    cr_assert_eq(
        hdf5io_dataset_use(bad->dataset, bad->shard, work_nothing, NULL, NULL),
        ERR_OK);
    cr_assert(bad->shard->copied);
}

static err_code_t work_bad(void *context, err_t *err)
{
    bad_t *bad = context;

    if (bad->early)
        bad_take(bad);
    bad->early = false;
    return bad->shard->copied ? err_set(err, ERR_DATA, "a bad copy") : ERR_OK;
}

static void bad_read(bad_t *bad)
{
    err_t err = ERR_INIT;

    cr_expect_eq(
        hdf5io_dataset_use(bad->dataset, bad->shard, work_bad, bad, &err),
        ERR_OK, "%s", err.text);
    cr_expect(!bad->shard->copied);
}

Test(stage_fault, a_bad_copy_that_another_thread_takes_is_left)
{
    bad_t bad;

    bad_open(&bad, open_dataset(&setup));
    bad.early = true;
    bad_read(&bad);
    cr_expect(!bad.early);
    cr_expect_eq(open_wrong_orders(bad.dataset, SHARDS * ROWS), 0);
    bad_close(&bad);
}

/* Replaces the first wait between tries: the other thread ends its read. */
static void wait_leave(void *context, double seconds)
{
    bad_t *bad = context;

    (void)seconds;
    if (bad->waits++ == 0)
        bad->shard->readers--;
}

Test(stage_fault, a_bad_copy_that_hdf5_reads_is_left_when_nobody_reads_it)
{
    const chunk_file_t file = {.ndim = 2,
                               .dims = {64, 16},
                               .chunk = {8, 16},
                               .type = H5T_IEEE_F32LE,
                               .filters = CHUNK_SHUFFLE | CHUNK_DEFLATE,
                               .more = chunk_shuffle_again};
    bad_t bad;

    chunk_write(directory, "other.h5", &file);
    bad_open(&bad, chunk_open(directory, "other.h5", &file, 1, false));
    bad.dataset->retry =
        (retry_t){.seconds = 1, .wait = wait_leave, .context = &bad};
    bad_take(&bad);
    cr_assert_geq(bad.shard->file, 0);
    bad.shard->readers++; /* another thread */
    bad_read(&bad);
    cr_expect_eq(bad.waits, 1);
    cr_expect_eq(chunk_wrong(bad.dataset, &file, 7, 32), 0);
    bad_close(&bad);
}

/* ---- hosts ---------------------------------------------------------------
 */

static void host_open(const char *name, uint64_t key, stage_dir_t *dir)
{
    err_t err = ERR_INIT;

    host = name;
    cr_assert_eq(hdf5io_stage_dir_open(base, key, 1, dir, &err), ERR_OK, "%s",
                 err.text);
    cr_expect(dir->made, "%s", name);
}

/* The name of one host is the beginning of the name of the other host. */
Test(stage_fault, a_host_does_not_touch_what_another_one_has_made)
{
    stage_dir_t there, here;

    host_open("n1-2", 1, &there);
    /* Close the lock, as if this host could not see it. */
    close(there.fd);
    there.fd = -1;
    hdf5io_stage_dir_close(&there);
    host_open("n1", 1, &here);
    cr_expect_eq(entries_count(base), 2);
    cr_expect_eq(hdf5io_stage_dir_sweep(&here), 0);
    hdf5io_stage_dir_close(&here);
    cr_expect_eq(entries_count(base), 1);
    host_open("n1-2", 2, &there);
    cr_expect_eq(hdf5io_stage_dir_sweep(&there), 1);
    hdf5io_stage_dir_close(&there);
    cr_expect_eq(entries_count(base), 0);
}
