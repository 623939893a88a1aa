/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Copies of shards on a node whose disk fails: it is full, refuses a call, or
 * returns other bytes than were written. Whatever happens, the samples are
 * right, and nothing is left. Also a disk that is slow: the data set is closed
 * while its shards are still copied.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hdf5io/dataset_stage.h"
#include "lib/io_tape.h"
#include "open.h"

enum { SHARDS = 4, ROWS = 50 };

/* global: the number of reads of the file called "draft" that return a wrong
 * byte */
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

static char *directory, *base;
static open_setup_t setup;

static void start(void)
{
    char name[32];

    directory = files_make();
    base = files_path(directory, "node");
    cr_assert_eq(mkdir(base, 0700), 0);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.cache_bytes = 1;
    for (int i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        open_write(directory, name, FILES_CONTIGUOUS, i * ROWS, ROWS);
    }
}

static void stop(void)
{
    open_setup_free(&setup);
    free(base);
    files_remove(directory);
}

TestSuite(stage_fault, .init = start, .fini = stop, .timeout = 120);

static int entries(void)
{
    DIR *list = opendir(base);
    const struct dirent *entry;
    int count = 0;

    cr_assert_not_null(list);
    while ((entry = readdir(list)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* Copy the shards, and read all samples. Returns the number of copies, -1 if
 * nothing could be copied. */
static int stage_run(uint64_t key)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);
    stage_file_t files[SHARDS];
    const stage_config_t config = {.dir = base,
                                   .key = key,
                                   .files = files,
                                   .count = SHARDS,
                                   .most = UINT64_MAX};
    hdf5io_stage_t *stage = NULL;
    err_t err = ERR_INIT;
    int copies = -1;

    hdf5io_dataset_stage_files(dataset, files);
    if (hdf5io_stage_open(&config, &stage, &err) == ERR_OK) {
        hdf5io_dataset_stage(dataset, stage, 0);
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

/* Run with this plan; returns the copies. *calls: of the kinds of the plan. */
static int run(io_tape_plan_t plan, long *calls)
{
    int copies;

    plan.root = base;
    io_tape_begin(&plan);
    copies = stage_run(0);
    *calls = io_tape_end();
    cr_expect_eq(entries(), 0, "call %ld", plan.at);
    return copies;
}

/* The disk is full from some write on: what was copied before is used. */
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

/* Any one call fails. If the directory could not be removed, the next start
 * does it. */
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
        cr_expect_eq(entries(), 0, "call %ld", plan.at);
    }
}

/* The bytes of the first copy come back changed: it is not used, and nothing
 * more is written to this disk. */
Test(stage_fault, a_copy_with_other_bytes_is_not_used)
{
    long calls;

    atomic_store(&wrong_reads, 1);
    cr_expect_eq(run((io_tape_plan_t){0}, &calls), 0);
    cr_expect_eq(atomic_load(&wrong_reads), 0);
}

/* What the data set has freed is not used by the thread that copies. */
Test(stage_fault, copying_goes_on_after_the_data_set_is_closed)
{
    hdf5io_dataset_t *dataset = open_dataset(&setup);
    stage_file_t files[SHARDS];
    const stage_config_t config = {.dir = base,
                                   .key = 1,
                                   .files = files,
                                   .count = SHARDS,
                                   .most = UINT64_MAX};
    hdf5io_stage_t *stage = NULL;

    cr_assert_eq(sem_init(&reading, 0, 0), 0);
    cr_assert_eq(sem_init(&go, 0, 0), 0);
    hdf5io_dataset_stage_files(dataset, files);
    cr_assert_eq(hdf5io_stage_open(&config, &stage, NULL), ERR_OK);
    hdf5io_dataset_stage(dataset, stage, 0);
    atomic_store(&slow, true);
    hdf5io_stage_start(stage);
    cr_assert_eq(sem_wait(&reading), 0);
    hdf5io_dataset_close(dataset);
    sem_post(&go);
    hdf5io_stage_wait(stage);
    cr_expect_eq(hdf5io_stage_copies(stage, 0, SHARDS), SHARDS);
    hdf5io_stage_close(stage);
    cr_expect_eq(entries(), 0);
}
