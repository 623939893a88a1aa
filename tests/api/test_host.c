/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * libcddp in a host program with its own settings: the program has a locale,
 * uses HDF5 itself, wants no output on its terminal, and has slow storage.
 * This program replaces fsync and H5Dread by its own.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "cddp/cddp.h"
#include "hdf5io/checkpoint_manifest.h"
#include "lib/german.h"

#define ROWS 600

/* global, because functions that libraries call use them */
static atomic_int slow_syncs, reads, inside_host, inside_library, meetings;
static char directory[] = "/tmp/cddp-host-XXXXXX";

/* Seconds: of the group, and of a slow call. */
static double timeout = 60, slow;

int fsync(int fd)
{
    if (atomic_fetch_sub(&slow_syncs, 1) == 1)
        usleep((useconds_t)(1e6 * slow)); /* time itself is what is tested */
    return (int)syscall(SYS_fsync, fd);
}

typedef herr_t (*read_t)(hid_t, hid_t, hid_t, hid_t, hid_t, void *);

herr_t H5Dread(hid_t dataset, hid_t type, hid_t memory, hid_t file, hid_t list,
               void *out)
{
    read_t read;
    herr_t status;
    void *found = dlsym(RTLD_NEXT, "H5Dread");

    memcpy(&read, &found, sizeof read);
    atomic_fetch_add(&reads, 1);
    atomic_store(&inside_library, 1);
    atomic_fetch_add(&meetings, atomic_load(&inside_host));
    status = read(dataset, type, memory, file, list, out);
    atomic_store(&inside_library, 0);
    return status;
}

static void setup(void)
{
    cr_assert_not_null(mkdtemp(directory));
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(directory, NULL), ERR_OK);
}

TestSuite(host, .init = setup, .fini = teardown, .timeout = 120);

/* ---- checkpoints --------------------------------------------------------- */

typedef struct plan {
    cddp_checkpoint_config_t config;
    int64_t step; /* step to write; 0: read the newest checkpoint */
    int found;
    float data[8]; /* data that rank 0 read */
} plan_t;

static cddp_code_t checkpoint_main(cddp_group_t *group, void *context,
                                   cddp_error_t *error)
{
    plan_t *plan = context;
    float data[8] = {0};
    const cddp_tensor_t tensor = {
        .name = "model/w", .ndim = 1, .dims = {8}, .data = data};
    cddp_progress_t progress = {.step = plan->step};
    int found = 0;

    if (plan->step > 0) {
        for (int i = 0; i < 8; i++)
            data[i] = (float)plan->step + 0.5F;
        return cddp_checkpoint_write(group, &plan->config, &progress, &tensor,
                                     1, error);
    }
    OK(cddp_checkpoint_read(group, &plan->config, &tensor, 1, &found, &progress,
                            error));
    if (cddp_group_rank(group) == 0) {
        plan->found = found;
        memcpy(plan->data, data, sizeof data);
    }
    return CDDP_OK;
}

static cddp_code_t checkpoint(plan_t *plan, int64_t step, cddp_error_t *error)
{
    const cddp_run_config_t config = {.local = 2, .timeout = timeout};

    plan->step = step;
    return cddp_run(&config, checkpoint_main, plan, error);
}

static void checkpoint_ok(plan_t *plan, int64_t step)
{
    cddp_error_t error;

    cr_assert_eq(checkpoint(plan, step, &error), CDDP_OK, "%s", error.text);
}

/* From here on a slow call takes much longer than the timeout, which is several
 * times the duration of a whole checkpoint on this machine. */
static void storage_slow(void)
{
    plan_t plan = {.config = {.directory = directory}};
    double begin = clock_now();

    checkpoint_ok(&plan, 5);
    timeout = fmax(1, 6 * (clock_now() - begin));
    slow = 4 * timeout;
    atomic_store(&slow_syncs, 2);
}

Test(host, a_shard_may_take_longer_than_the_timeout)
{
    plan_t plan = {.config = {.directory = directory}};

    storage_slow();
    checkpoint_ok(&plan, 10);
    cr_assert_leq(atomic_load(&slow_syncs), 0);
    checkpoint_ok(&plan, 0);
    cr_assert(plan.found);
    cr_assert_eq(plan.data[7], 10.5F);
}

Test(host, patience_with_storage_ends)
{
    plan_t plan = {.config = {.directory = directory, .io_timeout = 0.2}};
    cddp_error_t error;

    storage_slow();
    cr_assert_eq(checkpoint(&plan, 10, &error), CDDP_PEER);
    cr_assert(strstr(error.text, "showed no progress"), "%s", error.text);
}

Test(host, another_model_is_refused)
{
    plan_t plan = {.config = {.directory = directory, .model = 7}};
    cddp_error_t error;

    checkpoint_ok(&plan, 10);
    plan.config.model = 8;
    cr_assert_eq(checkpoint(&plan, 0, &error), CDDP_CONFIG);
    cr_assert(strstr(error.text, "is of another model"), "%s", error.text);
    cr_assert(strstr(error.text, "0x7"), "%s", error.text);
    cr_assert(strstr(error.text, "0x8"), "%s", error.text);
    cr_assert_not(plan.found);
    plan.config.model = 7;
    checkpoint_ok(&plan, 0);
    cr_assert(plan.found);
}

/* ---- log ----------------------------------------------------------------- */

/* Counts the log lines of the library. */
typedef struct lines {
    int count, warnings;
    char last[512];
} lines_t;

static void take_line(void *context, cddp_level_t level, int rank,
                      const char *module, const char *text)
{
    lines_t *lines = context;

    lines->count++;
    if (level != CDDP_LOG_WARN || rank != 0)
        return;
    lines->warnings++;
    snprintf(lines->last, sizeof lines->last, "%s: %s", module, text);
}

/* Write two checkpoints and damage the newer one. */
static void damage(plan_t *plan)
{
    char *path =
        str_printf("%s/step-0000000020/shard-0.h5", plan->config.directory);

    checkpoint_ok(plan, 10);
    checkpoint_ok(plan, 20);
    cr_assert_eq(truncate(path, 99), 0);
    free(path);
}

Test(host, nothing_is_printed_and_a_function_gets_the_lines)
{
    char *out = str_printf("%s/out", directory);
    char *checkpoints = str_printf("%s/checkpoints", directory);
    plan_t plan = {.config = {.directory = checkpoints}};
    lines_t lines = {0};
    struct stat st;
    int fd, kept[2];

    damage(&plan);
    fd = open(out, O_RDWR | O_CREAT, 0666);
    cr_assert_geq(fd, 0);
    kept[0] = dup(STDOUT_FILENO);
    kept[1] = dup(STDERR_FILENO);
    cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    checkpoint_ok(&plan, 0);
    cddp_log_set(CDDP_LOG_WARN, take_line, &lines);
    checkpoint_ok(&plan, 0);
    cddp_log_set(CDDP_LOG_WARN, NULL, NULL);
    checkpoint_ok(&plan, 0);
    fflush(NULL);
    dup2(kept[0], STDOUT_FILENO);
    dup2(kept[1], STDERR_FILENO);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_expect_eq(st.st_size, 0, "%lld bytes were printed",
                 (long long)st.st_size);
    cr_expect_eq(lines.count, 1);
    cr_expect_eq(lines.warnings, 1);
    cr_expect(strstr(lines.last, "hdf5io: a checkpoint is damaged"), "%s",
              lines.last);
    cr_expect_eq(plan.data[0], 10.5F);
    close(fd);
    free(checkpoints);
    free(out);
}

/* ---- locale -------------------------------------------------------------- */

static const char model_text[] =
    "model: {input: [4], layers: [{dropout: {rate: 0.25}}, {linear: {out: "
    "2}}]}\nloss: mse\n";

static cddp_code_t ddp_main(cddp_group_t *group, void *context,
                            cddp_error_t *error)
{
    const cddp_view_t view = {"w", 0, 4};
    const cddp_ddp_config_t config = {
        .views = &view,
        .view_count = 1,
        .elems = 4,
        .options = "{first_bucket_mb: 0.001, bucket_cap_mb: 0.5}"};
    cddp_ddp_t *ddp = NULL;
    cddp_model_t *model = NULL;

    (void)context;
    OK(cddp_ddp_open(group, &config, &ddp, error));
    cddp_ddp_close(ddp);
    OK(cddp_model_open("text", model_text, &model, error));
    cddp_model_close(model);
    return CDDP_OK;
}

/* The text of a manifest that contains numbers with a decimal point. */
static str_buf_t manifest_print(double sum)
{
    const hdf5io_votes_t votes = {.size = 1};
    const hdf5io_checkpoint_config_t config = {.votes = &votes};
    const hdf5io_progress_t progress = {.loss_sum = sum, .best = -1};
    hdf5io_manifest_t m = {0};
    str_buf_t text = {0};

    cr_assert_eq(hdf5io_manifest_build(&config, &progress, NULL, 0, &m, NULL),
                 ERR_OK);
    free(m.created);
    m.created = str_dup("now");
    cr_assert_eq(hdf5io_manifest_print(&m, &text, NULL), ERR_OK);
    hdf5io_manifest_free(&m);
    return text;
}

Test(host, a_german_locale_changes_no_number)
{
    const cddp_run_config_t config = {.local = 2, .timeout = 30};
    char *checkpoints = str_printf("%s/checkpoints", directory);
    plan_t plan = {.config = {.directory = checkpoints}};
    str_buf_t before = manifest_print(0.1), after;
    hdf5io_manifest_t m = {0};
    cddp_error_t error;
    uint64_t hash;
    err_t err = ERR_INIT;

    checkpoint_ok(&plan, 10);
    german_begin(directory);
    checkpoint_ok(&plan, 0);
    cr_expect_eq(plan.data[3], 10.5F);
    checkpoint_ok(&plan, 20);
    cr_expect_eq(cddp_run(&config, ddp_main, NULL, &error), CDDP_OK, "%s",
                 error.text);
    after = manifest_print(0.1);
    cr_expect_str_eq(after.text, before.text);
    cr_assert_eq(
        hdf5io_manifest_parse(before.text, before.length, &m, &hash, &err),
        ERR_OK, "%s", err.text);
    cr_expect_eq(m.progress.loss_sum, 0.1);
    hdf5io_manifest_free(&m);
    str_buf_free(&after);
    str_buf_free(&before);
    free(checkpoints);
}

/* ---- HDF5 ---------------------------------------------------------------- */

/* Write a dataset with a filter that only HDF5 decodes, so that its rows are
 * read through HDF5. */
static void data_write(const char *path)
{
    const hsize_t extent[2] = {ROWS, 3}, chunk[2] = {7, 3};
    static float x[ROWS][3];
    hid_t file = H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, extent, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset;

    H5Pset_chunk(list, 2, chunk);
    H5Pset_nbit(list);
    dataset = H5Dcreate2(file, "/x", H5T_IEEE_F32LE, space, H5P_DEFAULT, list,
                         H5P_DEFAULT);
    cr_assert_geq(dataset, 0);
    cr_assert_geq(
        H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x),
        0);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Fclose(file);
}

/* A thread of the program that uses HDF5 until [stop] is set. It has a file of
 * its own: HDF5 refuses a file that is open with other access properties. */
typedef struct busy {
    atomic_int stop, rounds;
    sem_t round; /* posted after each round */
    char *path, *own;
} busy_t;

static void *busy_main(void *argument)
{
    busy_t *busy = argument;

    while (!atomic_load(&busy->stop)) {
        hid_t file;

        cddp_hdf5_lock();
        atomic_store(&inside_host, 1);
        atomic_fetch_add(&meetings, atomic_load(&inside_library));
        file = H5Fopen(busy->own, H5F_ACC_RDONLY, H5P_DEFAULT);
        atomic_fetch_add(&busy->rounds, file >= 0);
        if (file >= 0)
            H5Fclose(file);
        atomic_store(&inside_host, 0);
        cddp_hdf5_unlock();
        sem_post(&busy->round);
    }
    return NULL;
}

/* Wait until the thread has made one more round. */
static void busy_await(busy_t *busy)
{
    while (sem_trywait(&busy->round) == 0)
        continue;
    sem_wait(&busy->round);
}

static cddp_code_t data_main(cddp_group_t *group, void *context,
                             cddp_error_t *error)
{
    busy_t *busy = context;
    const char *const files[] = {busy->path, NULL};
    const cddp_data_config_t config = {.files = files,
                                       .input = "/x",
                                       .target = "/x",
                                       .input_elems = 3,
                                       .target_elems = 3,
                                       .batch = 6,
                                       .shuffle = "full",
                                       .epochs = 1,
                                       .prefetch = 2};
    const cddp_batch_t *batch;
    cddp_data_t *data;

    OK(cddp_data_open(group, &config, &data, error));
    do {
        OK(cddp_data_next(data, &batch, error));
        busy_await(busy); /* the data is read while the thread uses HDF5 */
    } while (batch != NULL);
    cddp_data_close(data);
    return CDDP_OK;
}

static herr_t own_print(hid_t stack, void *context)
{
    (void)stack;
    (void)context;
    return 0;
}

Test(host, hdf5_is_used_by_one_at_a_time)
{
    const cddp_run_config_t config = {.local = 2, .timeout = 30};
    busy_t busy = {.path = str_printf("%s/x.h5", directory),
                   .own = str_printf("%s/own.h5", directory)};
    cddp_error_t error;
    H5E_auto2_t print = NULL;
    pthread_t thread;
    void *context;
    cddp_code_t code;

    cr_assert_eq(sem_init(&busy.round, 0, 0), 0);
    data_write(busy.path);
    data_write(busy.own);
    H5Eset_auto2(H5E_DEFAULT, own_print, &busy);
    cr_assert_eq(pthread_create(&thread, NULL, busy_main, &busy), 0);
    code = cddp_run(&config, data_main, &busy, &error);
    atomic_store(&busy.stop, 1);
    pthread_join(thread, NULL);
    cr_assert_eq(code, CDDP_OK, "%s", error.text);
    cr_expect_gt(atomic_load(&reads), ROWS / 7);
    cr_expect_gt(atomic_load(&busy.rounds), 0);
    cr_expect_eq(atomic_load(&meetings), 0);
    cr_expect_geq(H5Eget_auto2(H5E_DEFAULT, &print, &context), 0);
    cr_expect_eq(print, own_print, "its error printing was changed");
    cr_expect_eq(context, &busy);
    free(busy.path);
    free(busy.own);
}
