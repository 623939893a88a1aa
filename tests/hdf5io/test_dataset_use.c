/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Shards that are closed and reopened because caches or descriptors are scarce,
 * or because storage fails. The failures are simulated: this program defines
 * its own pread, which libhdf5 also calls.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hdf5io/attribute.h"
#include "hdf5io/descriptor.h"
#include "open.h"

#define SHARDS 12
#define ROWS 50

/* global: number of reads of the file with this inode that fail with
 * refusal_errno */
static atomic_int refusals;
static int refusal_errno;
static ino_t refused;

static bool is_refused(int fd)
{
    struct stat status;

    return atomic_load(&refusals) > 0 && fstat(fd, &status) == 0 &&
           status.st_ino == refused && atomic_fetch_sub(&refusals, 1) > 0;
}

/* global: the handle of the file with this inode becomes stale when the file is
 * read next; 0: no file. O_APPEND marks the stale handle until it is closed.
 * The number of the handle could not mark it, as a later handle may get the
 * same number. */
static pthread_mutex_t stale_lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t stale;
static bool stale_due;

static bool is_stale(int fd)
{
    struct stat status;
    int flags = 0;

    pthread_mutex_lock(&stale_lock);
    if (stale != 0 && fstat(fd, &status) == 0 && status.st_ino == stale) {
        flags = fcntl(fd, F_GETFL);
        if (stale_due) {
            flags |= O_APPEND;
            fcntl(fd, F_SETFL, flags);
        }
        stale_due = false;
    }
    pthread_mutex_unlock(&stale_lock);
    return (flags & O_APPEND) != 0;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    if (is_stale(fd)) {
        errno = ESTALE;
        return -1;
    }
    if (is_refused(fd)) {
        errno = refusal_errno;
        return -1;
    }
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

static char *directory;

static void start(void)
{
    directory = files_make();
}

static void stop(void)
{
    atomic_store(&refusals, 0);
    files_remove(directory);
}

TestSuite(use, .init = start, .fini = stop, .timeout = 120);

static void shards_write(files_layout_t layout, int count)
{
    open_write_parts(directory, layout, count, ROWS);
}

/* Read samples with jumps through all shards; returns the number of wrong
 * values. */
static int wrong_samples(hdf5io_dataset_t *dataset, int64_t first)
{
    const int64_t samples = hdf5io_dataset_samples(dataset);
    int64_t index[64], target[64];
    float input[64][OPEN_ELEMS];
    err_t err = ERR_INIT;
    int wrong = 0;

    for (int64_t k = 0; k < samples; k += 64) {
        for (int i = 0; i < 64; i++)
            index[i] = (first + k + i) * 7919 % samples;
        if (hdf5io_dataset_read(dataset, index, 64, input, target, &err) !=
            ERR_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1000;
        }
        for (int i = 0; i < 64; i++) {
            wrong += (double)target[i] != open_phase(index[i], 0);
            for (int e = 0; e < OPEN_ELEMS; e++)
                wrong += (double)input[i][e] != open_spin(index[i], e);
        }
    }
    return wrong;
}

/* ---- caches -------------------------------------------------------------- */

Test(use, caches_of_all_shards_are_bounded_together)
{
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    size_t all, bound;

    shards_write(FILES_GZIP, SHARDS);
    open_setup(&setup, directory, "part-*.h5");
    dataset = open_dataset(&setup);
    all = hdf5io_dataset_cached(dataset);
    cr_assert_gt(all, 0);
    cr_assert_eq(hdf5io_dataset_open_shards(dataset), SHARDS);
    hdf5io_dataset_close(dataset);
    bound = all / 3;
    setup.config.cache_bytes = bound;
    dataset = open_dataset(&setup);
    for (int turn = 0; turn < 3; turn++) {
        cr_assert_leq(hdf5io_dataset_cached(dataset), bound);
        cr_assert_gt(hdf5io_dataset_open_shards(dataset), 1);
        cr_assert_lt(hdf5io_dataset_open_shards(dataset), SHARDS);
        cr_assert_eq(wrong_samples(dataset, turn * 31), 0);
    }
    hdf5io_dataset_close(dataset);
    /* A single shard may exceed the cache limit. */
    setup.config.cache_bytes = 1;
    dataset = open_dataset(&setup);
    cr_assert_eq(wrong_samples(dataset, 5), 0);
    cr_assert_leq(hdf5io_dataset_open_shards(dataset), 1);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
}

typedef struct reader {
    pthread_t thread;
    hdf5io_dataset_t *dataset;
    int number, wrong;
} reader_t;

static void *reader_main(void *argument)
{
    reader_t *reader = argument;

    for (int turn = 0; turn < 4; turn++)
        reader->wrong +=
            wrong_samples(reader->dataset, reader->number * 97 + turn);
    return NULL;
}

Test(use, threads_share_shards_that_come_and_go)
{
    reader_t readers[4];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    shards_write(FILES_GZIP, SHARDS);
    open_write(directory, "part-3.h5", FILES_CONTIGUOUS, 3 * ROWS, ROWS);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.cache_bytes = 1;
    dataset = open_dataset(&setup);
    for (int i = 0; i < 4; i++) {
        readers[i] = (reader_t){.dataset = dataset, .number = i};
        cr_assert_eq(
            pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]),
            0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(readers[i].thread, NULL);
        cr_expect_eq(readers[i].wrong, 0);
    }
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
}

Test(use, a_shard_that_changed_meanwhile_is_refused)
{
    int64_t row = 0, target;
    float input[OPEN_ELEMS];
    hdf5io_dataset_t *dataset;
    open_setup_t setup;
    err_t err = ERR_INIT;

    shards_write(FILES_GZIP, 3);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.cache_bytes = 1;
    dataset = open_dataset(&setup);
    open_write(directory, "part-0.h5", FILES_GZIP, 0, ROWS - 1);
    cr_assert_eq(hdf5io_dataset_read(dataset, &row, 1, input, &target, &err),
                 ERR_DATA);
    cr_assert_not_null(strstr(err.text, "part-0.h5 was changed while it was in "
                                        "use"),
                       "%s", err.text);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
}

typedef struct waits {
    int count;
    double seconds;
} waits_t;

static void wait_count(void *context, double seconds)
{
    waits_t *waits = context;

    waits->count++;
    waits->seconds += seconds;
}

/* ---- descriptors --------------------------------------------------------- */

#define SETS 6

/* One rank that is a thread of this process. */
typedef struct opener {
    pthread_t thread;
    const hdf5io_dataset_config_t *config;
    hdf5io_dataset_t *dataset;
    waits_t waits;
    err_code_t code;
    err_t err;
} opener_t;

static void *opener_main(void *argument)
{
    opener_t *opener = argument;
    hdf5io_dataset_config_t config = *opener->config;

    config.retry =
        (retry_t){.seconds = 1, .wait = wait_count, .context = &opener->waits};
    opener->code = hdf5io_dataset_open(&config, &opener->dataset, &opener->err);
    return NULL;
}

/* Open all datasets at the same time. */
static void sets_open(const hdf5io_dataset_config_t *config,
                      hdf5io_dataset_t **sets)
{
    opener_t openers[SETS] = {{0}};

    for (int i = 0; i < SETS; i++) {
        openers[i].config = config;
        cr_assert_eq(
            pthread_create(&openers[i].thread, NULL, opener_main, &openers[i]),
            0);
    }
    for (int i = 0; i < SETS; i++) {
        pthread_join(openers[i].thread, NULL);
        cr_assert_eq(openers[i].code, ERR_OK, "set %d: %s", i,
                     openers[i].err.text);
        cr_assert_eq(openers[i].waits.count, 0, "there was one to close");
        sets[i] = openers[i].dataset;
    }
}

/* As with --local: several ranks with two datasets each in one process. */
static void check_limit(rlim_t soft, rlim_t hard, files_layout_t layout)
{
    hdf5io_dataset_t *sets[SETS];
    struct rlimit limit = {soft, hard};
    open_setup_t setup;
    int open = 0;

    shards_write(layout, 40);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    open_setup(&setup, directory, "part-*.h5");
    sets_open(&setup.config, sets);
    for (int i = 0; i < SETS; i++) {
        cr_assert_eq(wrong_samples(sets[i], i), 0);
        open += hdf5io_dataset_open_shards(sets[i]);
    }
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* Ranks share files that HDF5 has open. */
    if (layout == FILES_CONTIGUOUS)
        cr_assert_leq((rlim_t)open, limit.rlim_cur);
    if (hard > SETS * 40 * 2 + 300)
        cr_assert_eq(open, SETS * 40, "none had to be closed");
    /* Some descriptors remain for the rest of the program. */
    open = dup(0);
    cr_assert_geq(open, 0);
    close(open);
    for (int i = 0; i < SETS; i++)
        hdf5io_dataset_close(sets[i]);
    open_setup_free(&setup);
}

Test(use, the_soft_limit_is_raised_for_all_ranks_of_the_process)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 1000)
        cr_skip_test("a hard limit of 1000 open files or more");
    check_limit(64, limit.rlim_max, FILES_CONTIGUOUS);
}

Test(use, more_shards_than_descriptors_are_read_in_turn)
{
    check_limit(60, 60, FILES_CONTIGUOUS);
}

Test(use, more_shards_in_chunks_than_descriptors_are_read_in_turn)
{
    check_limit(60, 60, FILES_GZIP);
}

/* Open at most [open_files] of SHARDS shards, and read all. */
static void check_open_files(int open_files, files_layout_t layout)
{
    hdf5io_dataset_t *dataset;
    open_setup_t setup;

    shards_write(layout, SHARDS);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.open_files = open_files;
    dataset = open_dataset(&setup);
    for (int turn = 0; turn < 2; turn++) {
        cr_assert_eq(hdf5io_dataset_open_shards(dataset),
                     open_files < SHARDS ? open_files : SHARDS);
        cr_assert_eq(wrong_samples(dataset, turn), 0);
    }
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
}

Test(use, no_more_shards_are_open_than_asked_for)
{
    check_open_files(1, FILES_CONTIGUOUS);
    check_open_files(3, FILES_CONTIGUOUS);
    check_open_files(3, FILES_GZIP);
    check_open_files(SHARDS + 1, FILES_GZIP);
}

Test(use, half_of_the_descriptors_are_shared)
{
    struct rlimit limit = {100, 100};

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(hdf5io_descriptor_share(1), 50);
    cr_assert_eq(hdf5io_descriptor_share(2 * 4), 6);
    cr_assert_eq(hdf5io_descriptor_share(1000), 1);
}

/* ---- storage ------------------------------------------------------------- */

/* Let [times] reads of part-1.h5 fail, then read its last row. */
static err_code_t read_refused(files_layout_t layout, int number, int times,
                               waits_t *waits, err_t *err)
{
    char *path = files_path(directory, "part-1.h5");
    int64_t row = 2 * ROWS - 1, target = -1;
    float input[OPEN_ELEMS];
    hdf5io_dataset_t *dataset;
    struct stat status;
    open_setup_t setup;
    err_code_t code;

    shards_write(layout, 3);
    cr_assert_eq(stat(path, &status), 0);
    free(path);
    *waits = (waits_t){0};
    open_setup(&setup, directory, "part-*.h5");
    setup.config.retry =
        (retry_t){.seconds = 70, .wait = wait_count, .context = waits};
    dataset = open_dataset(&setup);
    refused = status.st_ino;
    refusal_errno = number;
    atomic_store(&refusals, times);
    code = hdf5io_dataset_read(dataset, &row, 1, input, &target, err);
    if (code == ERR_OK) {
        cr_assert_eq((double)target, open_phase(row, 0));
        cr_assert_eq((double)input[3], open_spin(row, 3));
    }
    atomic_store(&refusals, 0);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    return code;
}

Test(use, a_read_that_storage_refuses_is_tried_again)
{
    const int numbers[] = {EIO, ESTALE, ETIMEDOUT, EMFILE};
    waits_t waits;

    for (int layout = 0; layout < FILES_LAYOUTS; layout++)
        for (int i = 0; i < 4; i++) {
            err_t err = ERR_INIT;

            cr_assert_eq(read_refused((files_layout_t)layout, numbers[i], 2,
                                      &waits, &err),
                         ERR_OK, "layout %d: %s", layout, err.text);
            /* Compact data is in the header, which stays in memory. If
             * descriptors are missing, other shards are closed first. */
            if (layout != FILES_COMPACT && numbers[i] != EMFILE)
                cr_assert_eq(waits.count, 2, "layout %d", layout);
        }
}

Test(use, storage_that_stays_away_is_no_damage)
{
    const files_layout_t layouts[] = {FILES_CONTIGUOUS, FILES_GZIP};
    waits_t waits;

    for (int i = 0; i < 2; i++) {
        err_t err = ERR_INIT;

        cr_assert_eq(read_refused(layouts[i], EIO, 1000, &waits, &err), ERR_IO,
                     "%s", err.text);
        cr_assert_eq(waits.count, 3);
        cr_assert_float_eq(waits.seconds, 70, 1e-6);
        cr_assert_not_null(strstr(err.text, "part-1.h5"), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "that is storage, not damage"),
                           "%s", err.text);
    }
}

/* One of two threads, each of which reads a field of one sample. */
typedef struct half {
    pthread_t thread;
    hdf5io_dataset_t *dataset;
    int field;
    float input[OPEN_ELEMS];
    int64_t target;
    err_code_t code;
    err_t err;
} half_t;

static void *half_main(void *argument)
{
    half_t *half = argument;
    const int64_t row = 2 * ROWS - 1;
    void *const fields[] = {half->field == 0 ? half->input : NULL,
                            half->field == 1 ? &half->target : NULL};

    half->code =
        hdf5io_dataset_read_fields(half->dataset, &row, 1, fields, &half->err);
    return NULL;
}

/* A thread that has failed waits until the other one has failed, too. */
typedef struct meeting {
    pthread_barrier_t both;
    atomic_int waits;
} meeting_t;

static void wait_meet(void *context, double seconds)
{
    meeting_t *meeting = context;

    (void)seconds;
    atomic_fetch_add(&meeting->waits, 1);
    pthread_barrier_wait(&meeting->both);
}

Test(use, a_stale_handle_is_closed_although_two_threads_need_it)
{
    char *path = files_path(directory, "part-1.h5");
    half_t halves[2] = {{.field = 0}, {.field = 1}};
    meeting_t meeting = {.waits = 0};
    hdf5io_dataset_t *dataset;
    struct stat status;
    open_setup_t setup;

    shards_write(FILES_CONTIGUOUS, 3);
    cr_assert_eq(stat(path, &status), 0);
    free(path);
    cr_assert_eq(pthread_barrier_init(&meeting.both, NULL, 2), 0);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.retry =
        (retry_t){.seconds = 70, .wait = wait_meet, .context = &meeting};
    dataset = open_dataset(&setup);
    stale = status.st_ino;
    stale_due = true;
    for (int i = 0; i < 2; i++) {
        halves[i].dataset = dataset;
        cr_assert_eq(
            pthread_create(&halves[i].thread, NULL, half_main, &halves[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(halves[i].thread, NULL);
        cr_expect_eq(halves[i].code, ERR_OK, "%s", halves[i].err.text);
    }
    stale = 0;
    cr_expect_eq(atomic_load(&meeting.waits), 2);
    cr_expect_eq((double)halves[0].input[3], open_spin(2 * ROWS - 1, 3));
    cr_expect_eq((double)halves[1].target, open_phase(2 * ROWS - 1, 0));
    hdf5io_dataset_close(dataset);
    pthread_barrier_destroy(&meeting.both);
    open_setup_free(&setup);
}

Test(use, a_permission_that_is_missing_names_the_owner)
{
    const files_layout_t layouts[] = {FILES_CONTIGUOUS, FILES_GZIP};
    waits_t waits;

    for (int i = 0; i < 2; i++) {
        err_t err = ERR_INIT;

        cr_assert_eq(read_refused(layouts[i], EACCES, 1000, &waits, &err),
                     ERR_DATA, "%s", err.text);
        cr_assert_not_null(strstr(err.text, "part-1.h5"), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "belongs to"), "%s", err.text);
    }
}

/* Opening is repeated, too. */
Test(use, opening_is_tried_again)
{
    char *path = files_path(directory, "part-1.h5");
    waits_t waits = {0};
    hdf5io_dataset_t *dataset = NULL;
    struct stat status;
    open_setup_t setup;
    err_t err = ERR_INIT;

    shards_write(FILES_GZIP, 3);
    cr_assert_eq(stat(path, &status), 0);
    free(path);
    open_setup(&setup, directory, "part-*.h5");
    setup.config.retry =
        (retry_t){.seconds = 7, .wait = wait_count, .context = &waits};
    refused = status.st_ino;
    refusal_errno = EIO;
    for (int times = 2; times < 1000; times += 900) {
        atomic_store(&refusals, times);
        waits.count = 0;
        cr_assert_eq(hdf5io_dataset_open(&setup.config, &dataset, &err),
                     times == 2 ? ERR_OK : ERR_IO, "%s", err.text);
        cr_assert_eq(waits.count, times == 2 ? 2 : 3);
        if (times == 2)
            hdf5io_dataset_close(dataset);
    }
    cr_assert_not_null(strstr(err.text, "part-1.h5"), "%s", err.text);
    open_setup_free(&setup);
}

/* Reading an attribute is repeated, too. */
Test(use, attributes_are_tried_again)
{
    char *path;
    waits_t waits = {0};
    const retry_t retry = {.seconds = 7, .wait = wait_count, .context = &waits};
    struct stat status;
    double number;
    err_t err = ERR_INIT;

    shards_write(FILES_CONTIGUOUS, 1);
    path = files_path(directory, "part-0.h5");
    cr_assert_eq(stat(path, &status), 0);
    refused = status.st_ino;
    refusal_errno = EIO;
    for (int times = 2; times < 1000; times += 900) {
        atomic_store(&refusals, times);
        waits.count = 0;
        number = 0;
        cr_assert_eq(hdf5io_attribute_read(path, "none", &retry, &number, &err),
                     times == 2 ? ERR_OK : ERR_IO, "%s", err.text);
        cr_assert_eq(waits.count, times == 2 ? 2 : 3);
        cr_assert_eq(isnan(number), times == 2);
    }
    cr_assert_not_null(strstr(err.text, "that is storage, not damage"), "%s",
                       err.text);
    free(path);
}
