/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Copies of shards on a node: which file ranks read, who makes and removes the
 * directory, and what else may be in its place. Reads of files whose names end
 * with .h5 are counted; the names of copies do not end with .h5.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chunk_files.h"
#include "hdf5io/dataset_stage.h"
#include "lib/entries.h"
#include "lib/io_count.h"
#include "open.h"

enum { SHARDS = 8, ROWS = 50, RANKS = 4 };

static char *directory, *base;
static open_setup_t setup;

static void start(void)
{
    directory = files_make();
    base = files_path(directory, "node");
    cr_assert_eq(mkdir(base, 0777), 0);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.cache_bytes = 1; /* nothing stays in memory */
}

static void stop(void)
{
    open_setup_free(&setup);
    free(base);
    files_remove(directory);
}

TestSuite(stage, .init = start, .fini = stop, .timeout = 120);

/* Write the shards; returns the bytes of all. */
static long shards_write(files_layout_t layout)
{
    long bytes = 0;
    char name[32], *path;

    open_write_parts(directory, layout, SHARDS, ROWS);
    for (int i = 0; i < SHARDS; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        path = files_path(directory, name);
        bytes += files_bytes(path);
        free(path);
    }
    return bytes;
}

/* A rank: its dataset and its stage. */
typedef struct rank {
    hdf5io_dataset_t *dataset;
    hdf5io_stage_t *stage;
} rank_t;

static err_code_t rank_stage(rank_t *rank, uint64_t key, uint64_t most,
                             err_t *err)
{
    stage_file_t files[SHARDS];
    const stage_config_t config = {.dir = base,
                                   .key = key,
                                   .files = files,
                                   .count =
                                       hdf5io_dataset_shards(rank->dataset),
                                   .most = most};
    err_code_t rc;

    hdf5io_dataset_stage_files(rank->dataset, files);
    rc = hdf5io_stage_open(&config, &rank->stage, err);
    if (rc == ERR_OK)
        hdf5io_dataset_stage(rank->dataset, rank->stage, 0);
    return rc;
}

static rank_t rank_open(uint64_t key, uint64_t most)
{
    rank_t rank = {.dataset = open_dataset(&setup)};
    err_t err = ERR_INIT;

    cr_assert_eq(rank_stage(&rank, key, most, &err), ERR_OK, "%s", err.text);
    return rank;
}

static void rank_copy(rank_t *rank)
{
    hdf5io_stage_start(rank->stage);
    hdf5io_stage_wait(rank->stage);
}

static void rank_close(rank_t *rank)
{
    hdf5io_dataset_close(rank->dataset);
    hdf5io_stage_close(rank->stage);
}

static int copies(const rank_t *rank)
{
    return hdf5io_stage_copies(rank->stage, 0, SHARDS);
}

/* Read all samples of shard [shard]; returns the number of wrong values. */
static int wrong_shard(const rank_t *rank, int shard)
{
    int64_t index[ROWS];

    for (int i = 0; i < ROWS; i++)
        index[i] = shard * ROWS + i;
    return open_wrong_samples(rank->dataset, index, ROWS);
}

static int wrong_all(const rank_t *rank)
{
    int wrong = 0;

    for (int s = 0; s < SHARDS; s++)
        wrong += wrong_shard(rank, s);
    return wrong;
}

/* One epoch: rank r reads shards r, r + RANKS, ... */
static int wrong_epoch(const rank_t *ranks)
{
    int wrong = 0;

    for (int s = 0; s < SHARDS; s++)
        wrong += wrong_shard(&ranks[s % RANKS], s);
    return wrong;
}

/* ---- what is read from where --------------------------------------------- */

static void check_epochs(files_layout_t layout)
{
    const long bytes = shards_write(layout);
    rank_t ranks[RANKS];

    for (int r = 0; r < RANKS; r++)
        ranks[r] = rank_open(1, UINT64_MAX);
    cr_assert_eq(entries_count(base), 1, "one directory for all ranks");
    io_count_begin(".h5");
    cr_expect_eq(wrong_epoch(ranks), 0);
    for (int r = 0; r < RANKS; r++)
        rank_copy(&ranks[r]);
    cr_expect_leq(io_count_bytes(), 2 * bytes);
    cr_assert_eq(copies(&ranks[RANKS - 1]), SHARDS);
    cr_expect_eq(wrong_epoch(ranks), 0);
    io_count_begin(".h5");
    cr_expect_eq(wrong_epoch(ranks), 0);
    for (int r = 0; r < RANKS; r++)
        cr_expect_eq(wrong_all(&ranks[r]), 0);
    cr_expect_eq(io_count_bytes(), 0);
    cr_expect_eq(io_count_opens(), 0);
    for (int r = 0; r < RANKS; r++) {
        cr_expect_eq(entries_count(base), 1);
        rank_close(&ranks[r]);
    }
    cr_expect_eq(entries_count(base), 0, "the last rank removes it");
}

Test(stage, of_contiguous_shards)
{
    check_epochs(FILES_CONTIGUOUS);
}

Test(stage, of_shards_after_a_user_block)
{
    check_epochs(FILES_USERBLOCK);
}

Test(stage, of_chunks)
{
    check_epochs(FILES_CHUNKED);
}

Test(stage, of_compressed_chunks)
{
    check_epochs(FILES_GZIP);
}

/* Few shards may be open at a time. When a shard is opened again, its copy is
 * opened instead. */
static void check_few_open(files_layout_t layout)
{
    rank_t rank;

    shards_write(layout);
    setup.config.open_files = 2;
    rank = rank_open(1, UINT64_MAX);
    rank_copy(&rank);
    cr_expect_eq(wrong_all(&rank), 0);
    io_count_begin(".h5");
    cr_expect_eq(wrong_all(&rank), 0);
    cr_expect_eq(io_count_opens(), 0);
    cr_expect_leq(hdf5io_dataset_open_shards(rank.dataset), 2);
    rank_close(&rank);
}

Test(stage, of_contiguous_shards_that_come_and_go)
{
    check_few_open(FILES_CONTIGUOUS);
}

Test(stage, of_compressed_shards_that_come_and_go)
{
    check_few_open(FILES_GZIP);
}

Test(stage, of_a_shard_that_hdf5_reads)
{
    const chunk_file_t file = {.ndim = 2,
                               .dims = {256, 16},
                               .chunk = {8, 16},
                               .type = H5T_IEEE_F32LE,
                               .filters = CHUNK_SHUFFLE | CHUNK_DEFLATE,
                               .more = chunk_shuffle_again};
    rank_t rank = {0};
    err_t err = ERR_INIT;

    chunk_write(directory, "part-0.h5", &file);
    rank.dataset = chunk_open(directory, "part-0.h5", &file, 1, false);
    cr_assert_eq(rank_stage(&rank, 1, UINT64_MAX, &err), ERR_OK);
    cr_expect_eq(chunk_wrong(rank.dataset, &file, 7, 32), 0);
    rank_copy(&rank);
    io_count_begin(".h5");
    cr_expect_eq(chunk_wrong(rank.dataset, &file, 7, 32), 0);
    cr_expect_eq(io_count_bytes(), 0);
    rank_close(&rank);
}

typedef struct reader {
    const rank_t *rank;
    pthread_t thread;
    int wrong;
} reader_t;

static void *reader_main(void *argument)
{
    reader_t *reader = argument;

    for (int i = 0; i < 20; i++)
        reader->wrong += wrong_all(reader->rank);
    return NULL;
}

/* Threads read shards while these are exchanged for their copies. */
Test(stage, while_threads_read)
{
    reader_t readers[3];
    rank_t rank;

    shards_write(FILES_GZIP);
    open_write(directory, "part-3.h5", FILES_CONTIGUOUS, 3 * ROWS, ROWS);
    rank = rank_open(1, UINT64_MAX);
    for (int i = 0; i < 3; i++) {
        readers[i] = (reader_t){.rank = &rank};
        cr_assert_eq(
            pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]),
            0);
    }
    rank_copy(&rank);
    for (int i = 0; i < 3; i++) {
        pthread_join(readers[i].thread, NULL);
        cr_expect_eq(readers[i].wrong, 0);
    }
    rank_close(&rank);
}

/* ---- what is not copied -------------------------------------------------- */

Test(stage, of_as_many_shards_as_may_be_copied)
{
    const long bytes = shards_write(FILES_CONTIGUOUS);
    rank_t rank = rank_open(1, (uint64_t)(3 * (bytes / SHARDS)));

    rank_copy(&rank);
    cr_expect_eq(copies(&rank), 3);
    cr_expect_eq(wrong_all(&rank), 0);
    rank_close(&rank);
}

/* All shards are copied, except the one that was changed. */
Test(stage, but_for_a_shard_that_has_changed)
{
    const struct timespec times[2] = {{1000, 0}, {1000, 0}};
    char *path;
    rank_t rank;

    shards_write(FILES_CONTIGUOUS);
    rank = rank_open(1, UINT64_MAX);
    path = files_path(directory, "part-2.h5");
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
    rank_copy(&rank);
    cr_expect_eq(copies(&rank), SHARDS - 1);
    cr_expect(!hdf5io_stage_there(rank.stage, 2));
    cr_expect_eq(wrong_all(&rank), 0);
    rank_close(&rank);
}

Test(stage, but_for_a_shard_that_refers_to_others)
{
    char *path = files_path(directory, "part-2.h5");
    hid_t file;
    rank_t rank;

    shards_write(FILES_CONTIGUOUS);
    open_write(directory, "beside.hdf", FILES_CONTIGUOUS, 2 * ROWS, ROWS);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    cr_assert_geq(H5Ldelete(file, "/spins", H5P_DEFAULT), 0);
    cr_assert_geq(H5Lcreate_external("beside.hdf", "/spins", file, "/spins",
                                     H5P_DEFAULT, H5P_DEFAULT),
                  0);
    H5Fclose(file);
    free(path);
    rank = rank_open(1, UINT64_MAX);
    rank_copy(&rank);
    cr_expect_eq(copies(&rank), SHARDS - 1);
    cr_expect(!hdf5io_stage_there(rank.stage, 2));
    cr_expect_eq(wrong_all(&rank), 0);
    rank_close(&rank);
}

/* ---- copies that are lost ------------------------------------------------ */

/* Truncate, or remove, the copy of each shard. */
static void copies_spoil(const rank_t *rank, bool removed)
{
    for (int s = 0; s < SHARDS; s++) {
        char *path = hdf5io_stage_name(rank->stage, s);

        cr_assert_eq(removed ? unlink(path) : truncate(path, 100), 0);
        free(path);
    }
}

/* Copies are removed or truncated. [taken]: before that, they are in use. */
static void check_spoilt(files_layout_t layout, bool removed, bool taken)
{
    rank_t rank;

    shards_write(layout);
    rank = rank_open(1, UINT64_MAX);
    rank_copy(&rank);
    if (taken)
        cr_expect_eq(wrong_all(&rank), 0);
    copies_spoil(&rank, removed);
    for (int turn = 0; turn < 2; turn++)
        cr_expect_eq(wrong_all(&rank), 0);
    rank_close(&rank);
    cr_expect_eq(entries_count(base), 0);
}

Test(stage, without_copies_that_disappeared)
{
    check_spoilt(FILES_CONTIGUOUS, true, false);
}

Test(stage, without_copies_that_were_truncated)
{
    check_spoilt(FILES_CONTIGUOUS, false, false);
}

Test(stage, without_copies_that_were_truncated_in_use)
{
    check_spoilt(FILES_CONTIGUOUS, false, true);
}

Test(stage, without_compressed_copies_that_were_truncated_in_use)
{
    check_spoilt(FILES_GZIP, false, true);
}

Test(stage, without_truncated_copies_of_shards_that_come_and_go)
{
    setup.config.open_files = 2;
    check_spoilt(FILES_GZIP, false, true);
}

/* ---- the directory ------------------------------------------------------- */

static mode_t mode_of(const char *path)
{
    struct stat status;

    cr_assert_eq(lstat(path, &status), 0, "%s", path);
    return status.st_mode & 0777;
}

Test(stage, is_for_its_user_alone_whatever_the_umask)
{
    char *copy;
    rank_t rank;

    shards_write(FILES_CONTIGUOUS);
    umask(0);
    rank = rank_open(1, UINT64_MAX);
    rank_copy(&rank);
    copy = hdf5io_stage_name(rank.stage, 0);
    cr_expect_eq(mode_of(copy), 0600);
    free(copy);
    cr_expect_eq(mode_of(hdf5io_stage_dir(rank.stage)), 0700);
    rank_close(&rank);
}

/* The name of the directory for key 1. */
static char *name_find(void)
{
    rank_t rank = rank_open(1, UINT64_MAX);
    const char *path = hdf5io_stage_dir(rank.stage);
    char *name = files_path(base, strrchr(path, '/') + 1);

    rank_close(&rank);
    cr_assert_eq(entries_count(base), 0);
    return name;
}

static void check_refused(void)
{
    rank_t rank = {.dataset = open_dataset(&setup)};
    err_t err = ERR_INIT;

    cr_expect_eq(rank_stage(&rank, 1, UINT64_MAX, &err), ERR_IO);
    cr_expect_not_null(strstr(err.text, base), "%s", err.text);
    cr_expect_eq(entries_count(base), 1);
    cr_expect_eq(wrong_all(&rank), 0);
    hdf5io_dataset_close(rank.dataset);
}

Test(stage, does_not_follow_a_link_in_its_place)
{
    char *name, *victim = files_path(directory, "victim");

    shards_write(FILES_CONTIGUOUS);
    name = name_find();
    cr_assert_eq(mkdir(victim, 0700), 0);
    cr_assert_eq(symlink(victim, name), 0);
    check_refused();
    cr_expect_eq(entries_count(victim), 0);
    free(name);
    free(victim);
}

/* The directory has the right name, but all users can write to it. */
Test(stage, does_not_use_what_others_can_write)
{
    char *name, *table;

    shards_write(FILES_CONTIGUOUS);
    name = name_find();
    cr_assert_eq(mkdir(name, 0700), 0);
    cr_assert_eq(chmod(name, 0777), 0);
    table = files_path(name, "table");
    files_write_text(table, "", 0);
    free(table);
    check_refused();
    free(name);
}

Test(stage, needs_its_directory)
{
    rank_t rank = {0};
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS);
    rank.dataset = open_dataset(&setup);
    cr_assert_eq(rmdir(base), 0);
    cr_expect_eq(rank_stage(&rank, 1, UINT64_MAX, &err), ERR_IO);
    cr_expect_eq(hdf5io_stage_room(base), 0);
    hdf5io_dataset_close(rank.dataset);
    cr_assert_eq(mkdir(base, 0700), 0);
}

/* Two jobs on one node have two directories. */
Test(stage, is_not_shared_by_two_jobs)
{
    rank_t one, other;

    shards_write(FILES_CONTIGUOUS);
    one = rank_open(1, UINT64_MAX);
    other = rank_open(2, UINT64_MAX);
    rank_copy(&one);
    rank_copy(&other);
    cr_expect_eq(entries_count(base), 2);
    cr_expect_eq(copies(&one) + copies(&other), 2 * SHARDS);
    rank_close(&one);
    cr_expect_eq(entries_count(base), 1);
    cr_expect_eq(wrong_all(&other), 0);
    rank_close(&other);
    cr_expect_eq(entries_count(base), 0);
}

/* ---- killed jobs --------------------------------------------------------- */

/* Start a process that copies the shards, and then waits until it is killed. */
static pid_t job_fork(uint64_t key)
{
    int ends[2];
    char ready = 0;
    pid_t child;

    cr_assert_eq(pipe(ends), 0);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        rank_t rank = rank_open(key, UINT64_MAX);

        rank_copy(&rank);
        if (write(ends[1], "", 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ends[1]);
    cr_assert_eq(read(ends[0], &ready, 1), 1, "the job ended early");
    close(ends[0]);
    return child;
}

static void job_kill(pid_t child)
{
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, NULL, 0), child);
}

Test(stage, removes_what_killed_jobs_left_and_nothing_else)
{
    char *other = files_path(base, "cddp-stage-of-somebody");
    pid_t dead, living;
    rank_t rank;

    shards_write(FILES_CONTIGUOUS);
    cr_assert_eq(mkdir(other, 0700), 0);
    dead = job_fork(1);
    living = job_fork(2);
    job_kill(dead);
    /* the directories of both jobs, and the other one */
    cr_assert_eq(entries_count(base), 3);
    rank = rank_open(3, UINT64_MAX);
    rank_copy(&rank);
    /* the directories of this rank and of the living job, and the other one */
    cr_expect_eq(entries_count(base), 3);
    cr_expect_eq(copies(&rank), SHARDS);
    rank_close(&rank);
    cr_expect_eq(entries_count(base), 2);
    job_kill(living);
    rank = rank_open(4, UINT64_MAX);
    rank_copy(&rank);
    rank_close(&rank);
    cr_expect_eq(entries_count(base), 1);
    free(other);
}
