/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/harness.h"

#include <criterion/criterion.h>
#include <hdf5.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/thread.h"
#include "conf/conf.h"
#include "hdf5io/checkpoint_read.h"

/* The model has dropout and batch norm, so that their state (random numbers,
 * running statistics) is tested as well. */
static const char run_file[] = "run: {name: test, dir: DIR/run, seed: 7}\n"
                               "data:\n"
                               "  train: DIR/train.h5\n"
                               "  valid: DIR/valid.h5\n"
                               "  input: {path: /x}\n"
                               "  target: {path: /y}\n"
                               "  shuffle: full\n"
                               "  prefetch: 2\n"
                               "model:\n"
                               "  input: [12]\n"
                               "  layers:\n"
                               "    - linear: {out: 16}\n"
                               "    - batchnorm\n"
                               "    - relu\n"
                               "    - dropout: {rate: 0.1}\n"
                               "    - linear: {out: 2}\n"
                               "loss: cross_entropy\n"
                               "optimizer: {adamw: {lr: 1.0e-2}}\n"
                               "schedule: {cosine: {warmup_steps: 5}}\n"
                               "train: {epochs: 3, batch: 24, threads: 1}\n"
                               "checkpoint: {every: never}\n"
                               "fault: {timeout: 20 s}\n";

/* ---- data -------------------------------------------------------------------
 */

static void dataset_write(hid_t file, const char *name, hid_t type, int ndim,
                          const hsize_t *dims, const void *data)
{
    hid_t space = H5Screate_simple(ndim, dims, NULL);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT,
                           H5P_DEFAULT);

    cr_assert_geq(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), 0);
    H5Dclose(set);
    H5Sclose(space);
}

/* Write the fields /w, /z, /h and /v of models with several inputs or losses.
 * They are drawn from a random stream of their own. */
static void more_write(hid_t file, int samples, const int *y, uint64_t seed)
{
    int(*w)[3] = malloc((size_t)samples * sizeof *w);
    float(*z)[2] = malloc((size_t)samples * sizeof *z);
    float(*h)[2] = malloc((size_t)samples * sizeof *h);
    hsize_t dims[2] = {(hsize_t)samples, 3};
    rng_t rng;

    rng_open(&rng, seed, RNG_INIT, 1, 0);
    for (int i = 0; i < samples; i++) {
        for (int k = 0; k < 3; k++)
            w[i][k] = (int)rng_below(&rng, 5);
        z[i][0] = (float)(w[i][0] + 0.1 * rng_normal(&rng));
        z[i][1] = (float)(y[i] + 0.1 * rng_normal(&rng));
        h[i][0] = (float)(1 - y[i]);
        h[i][1] = (float)y[i];
    }
    dataset_write(file, "/w", H5T_NATIVE_INT, 2, dims, w);
    dims[1] = 2;
    dataset_write(file, "/z", H5T_NATIVE_FLOAT, 2, dims, z);
    dataset_write(file, "/h", H5T_NATIVE_FLOAT, 2, dims, h);
    for (int i = 0; i < samples; i++)
        w[i / 3][i % 3] = i % 7 != 0;
    dataset_write(file, "/v", H5T_NATIVE_INT, 1, dims, w);
    free(h);
    free(z);
    free(w);
}

static void shard_write(const char *path, int samples, uint64_t seed)
{
    size_t count = (size_t)samples * HARNESS_FEATURES;
    float *x = malloc(count * sizeof *x);
    int *y = malloc((size_t)samples * sizeof *y);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dims[2] = {(hsize_t)samples, HARNESS_FEATURES};
    rng_t rng;

    rng_open(&rng, seed, RNG_INIT, 0, 0);
    for (int i = 0; i < samples; i++) {
        y[i] = (int)rng_below(&rng, 2);
        for (int f = 0; f < HARNESS_FEATURES; f++)
            x[i * HARNESS_FEATURES + f] =
                (float)(rng_normal(&rng) + (y[i] ? 0.8 : -0.8));
    }
    dataset_write(file, "/x", H5T_NATIVE_FLOAT, 2, dims, x);
    dataset_write(file, "/y", H5T_NATIVE_INT, 1, dims, y);
    more_write(file, samples, y, seed);
    cr_assert_geq(H5Fclose(file), 0);
    free(y);
    free(x);
}

void harness_open(harness_t *harness, int samples)
{
    const char *base = getenv("TMPDIR");
    char path[300];

    memset(harness, 0, sizeof *harness);
    snprintf(harness->dir, sizeof harness->dir, "%s/cddp-run-XXXXXX",
             base != NULL ? base : "/tmp");
    cr_assert_not_null(mkdtemp(harness->dir));
    snprintf(path, sizeof path, "%s/train.h5", harness->dir);
    shard_write(path, samples, 1);
    snprintf(path, sizeof path, "%s/valid.h5", harness->dir);
    shard_write(path, 64, 2);
}

void harness_close(harness_t *harness)
{
    err_t err = ERR_INIT;

    cr_assert_eq(file_remove_tree(harness->dir, &err), ERR_OK, "%s", err.text);
}

static void chunks_add(const char *path, const char *name, hid_t create)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t from = H5Dopen2(file, "/x", H5P_DEFAULT);
    hid_t space = H5Dget_space(from);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT,
                           create, H5P_DEFAULT);
    hssize_t count = H5Sget_simple_extent_npoints(space);
    float *x = malloc((size_t)count * sizeof *x);

    cr_assert_geq(
        H5Dread(from, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x), 0);
    cr_assert_geq(
        H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x), 0);
    free(x);
    H5Dclose(set);
    H5Sclose(space);
    H5Dclose(from);
    cr_assert_geq(H5Fclose(file), 0);
}

void harness_chunks_add(const harness_t *harness, const char *name, int rows,
                        bool h5)
{
    const hsize_t chunk[2] = {(hsize_t)rows, HARNESS_FEATURES};
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    char path[300];

    H5Pset_chunk(create, 2, chunk);
    H5Pset_shuffle(create);
    if (h5)
        H5Pset_shuffle(create);
    H5Pset_deflate(create, 1);
    snprintf(path, sizeof path, "%s/train.h5", harness->dir);
    chunks_add(path, name, create);
    snprintf(path, sizeof path, "%s/valid.h5", harness->dir);
    chunks_add(path, name, create);
    H5Pclose(create);
}

/* Read the label of [row] into *label, or write *label to [row]. */
static void label_move(const harness_t *harness, int row, bool write,
                       int *label)
{
    char path[300];
    hsize_t at = (hsize_t)row;
    hsize_t one = 1;
    hid_t file, set, space, memory;
    herr_t status;

    snprintf(path, sizeof path, "%s/train.h5", harness->dir);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "/y", H5P_DEFAULT);
    space = H5Dget_space(set);
    memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    status =
        write ? H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, label)
              : H5Dread(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, label);
    cr_assert_geq(status, 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

void harness_label_set(const harness_t *harness, int row, int label)
{
    label_move(harness, row, true, &label);
}

void harness_input_set(const harness_t *harness, int row, float value)
{
    const hsize_t at[2] = {(hsize_t)row, 0}, count[2] = {1, HARNESS_FEATURES};
    float x[HARNESS_FEATURES];
    char path[300];
    hid_t file, set, space, memory;
    herr_t status;

    for (int f = 0; f < HARNESS_FEATURES; f++)
        x[f] = value;
    snprintf(path, sizeof path, "%s/train.h5", harness->dir);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    set = H5Dopen2(file, "/x", H5P_DEFAULT);
    space = H5Dget_space(set);
    memory = H5Screate_simple(2, count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, count, NULL);
    status = H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, x);
    cr_assert_geq(status, 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

int harness_label_get(const harness_t *harness, int row)
{
    int label = -1;

    label_move(harness, row, false, &label);
    return label;
}

/* ---- running ------------------------------------------------------------ */

typedef struct rank {
    train_config_t config;
    tree_t *tree;
    train_env_t env;
    boot_t *boot;
    train_outcome_t outcome;
    err_code_t rc;
    err_t err;
} rank_t;

static slurm_signal_t no_signal(void)
{
    return SLURM_SIGNAL_NONE;
}

/* The text of run_file with every "DIR" replaced by harness->dir. */
static char *run_text(const harness_t *harness)
{
    str_buf_t text = {0};
    const char *at = run_file;
    const char *dir;

    while ((dir = strstr(at, "DIR/")) != NULL) {
        str_buf_add(&text, "%.*s%s", (int)(dir - at), at, harness->dir);
        at = dir + 3;
    }
    str_buf_add(&text, "%s", at);
    return text.text;
}

err_code_t harness_config(const harness_t *harness, tree_t **tree,
                          train_config_t *config, err_t *err)
{
    char *text = run_text(harness);
    err_code_t rc = conf_parse("run.yaml", text, tree, err);

    for (int i = 0; rc == ERR_OK && harness->settings[i] != NULL; i++)
        rc = conf_set(*tree, harness->settings[i], err);
    free(text);
    return rc == ERR_OK ? train_config_read(*tree, NULL, config, err) : rc;
}

static void rank_prepare(rank_t *rank, const harness_t *harness,
                         const slurm_job_t *job)
{
    err_t err = ERR_INIT;

    cr_assert_eq(harness_config(harness, &rank->tree, &rank->config, &err),
                 ERR_OK, "%s", err.text);
    rank->config.ddp.hooks = harness->hooks;
    rank->err = (err_t)ERR_INIT;
    rank->env = (train_env_t){
        .job = job,
        .signal = harness->signal != NULL ? harness->signal : no_signal,
        .signal_start = harness->signal_start,
        .resume = harness->resume,
        .resume_path = harness->resume_path,
        .predict = harness->predict,
        .build_hash = 1,
        .started = clock_now(),
        .backend = "threads"};
}

static void *rank_main(void *argument)
{
    rank_t *rank = argument;

    rank->rc = train_run(&rank->config, &rank->env, rank->boot, &rank->outcome,
                         &rank->err);
    return NULL;
}

err_code_t harness_run(const harness_t *harness, int ranks,
                       train_outcome_t *out, err_t *err)
{
    const slurm_job_t job = {
        .id = "7", .host = "test", .restarts = harness->restarts};
    boot_config_t config = {.timeout = 20.0};
    boot_t *boots[HARNESS_RANKS_MAX];
    rank_t all[HARNESS_RANKS_MAX] = {0};
    pthread_t threads[HARNESS_RANKS_MAX];
    int speakers = 0;

    cr_assert_eq(boot_threads_open(ranks, &config, boots, err), ERR_OK);
    for (int r = 0; r < ranks; r++) {
        rank_prepare(&all[r], harness, &job);
        all[r].boot = boots[r];
    }
    for (int r = 1; r < ranks; r++)
        cr_assert_eq(thread_start("rank", rank_main, &all[r], &threads[r], err),
                     ERR_OK);
    rank_main(&all[0]);
    for (int r = 1; r < ranks; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < ranks; r++) {
        cr_assert_eq(all[r].rc, all[0].rc,
                     "rank %d ended with %d, rank 0 "
                     "with %d: %s",
                     r, (int)all[r].rc, (int)all[0].rc, all[r].err.text);
        if (all[r].outcome.speaker) {
            if (all[r].rc != ERR_OK)
                *err = all[r].err;
            speakers++;
        }
        train_config_free(&all[r].config);
        tree_free(all[r].tree);
    }
    cr_assert_eq(speakers, 1, "%d ranks print the end", speakers);
    *out = all[0].outcome;
    return all[0].rc;
}

err_code_t harness_rank_run(const harness_t *harness, boot_t *boot,
                            const char *backend, train_outcome_t *out,
                            err_t *err)
{
    const slurm_job_t job = {
        .id = "7", .host = "test", .restarts = harness->restarts};
    rank_t rank = {.boot = boot};

    rank_prepare(&rank, harness, &job);
    rank.env.backend = backend;
    rank_main(&rank);
    *err = rank.err;
    *out = rank.outcome;
    train_config_free(&rank.config);
    tree_free(rank.tree);
    return rank.rc;
}

char *harness_listen(const harness_t *harness, int ranks)
{
    char path[] = "/tmp/cddp-run-XXXXXX";
    const int old = dup(STDERR_FILENO), catcher = mkstemp(path);
    train_outcome_t out;
    err_t err = ERR_INIT;
    err_code_t rc;
    char *text;

    dup2(catcher, STDERR_FILENO);
    rc = harness_run(harness, ranks, &out, &err);
    dup2(old, STDERR_FILENO);
    close(old);
    close(catcher);
    cr_assert_eq(rc, ERR_OK, "%s", err.text);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    unlink(path);
    return text;
}

void harness_run_ok(const harness_t *harness, int ranks, train_outcome_t *out)
{
    str_buf_t settings = {0};
    err_t err = ERR_INIT;
    err_code_t rc = harness_run(harness, ranks, out, &err);

    for (int i = 0; harness->settings[i] != NULL; i++)
        str_buf_add(&settings, ", %s", harness->settings[i]);
    cr_assert_eq(rc, ERR_OK, "%d ranks%s: %s", ranks,
                 settings.text == NULL ? "" : settings.text, err.text);
    str_buf_free(&settings);
}

/* ---- comparing ----------------------------------------------------------- */

typedef struct newest {
    char *path;
    hdf5io_manifest_t manifest;
} newest_t;

static void newest_open(const harness_t *harness, newest_t *out)
{
    char directory[300];
    char **paths = NULL;
    int count = 0;
    uint64_t hash;
    err_t err = ERR_INIT;

    snprintf(directory, sizeof directory, "%s/run/checkpoints", harness->dir);
    cr_assert_eq(hdf5io_checkpoint_list(directory, &paths, &count, &err),
                 ERR_OK, "%s", err.text);
    cr_assert_gt(count, 0);
    out->path = paths[0];
    for (int i = 1; i < count; i++)
        free(paths[i]);
    free(paths);
    cr_assert_eq(hdf5io_checkpoint_verify(out->path, NULL, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(hdf5io_manifest_load(out->path, &out->manifest, &hash, &err),
                 ERR_OK, "%s", err.text);
}

static void newest_close(newest_t *newest)
{
    hdf5io_manifest_free(&newest->manifest);
    free(newest->path);
}

static float *tensor_read(const newest_t *newest, int tensor)
{
    const int64_t elems = newest->manifest.tensors[tensor].elems;
    float *data = malloc((size_t)elems * sizeof *data + 1);
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_checkpoint_fetch(&(hdf5io_saved_t){&hdf5io_io_system,
                                                           newest->path,
                                                           &newest->manifest},
                                         tensor, data, &err),
                 ERR_OK, "%s", err.text);
    return data;
}

static void tensor_compare(const float *a, const float *b, int64_t elems,
                           double tolerance, const char *what, const char *name)
{
    if (tolerance == 0) {
        cr_assert_arr_eq(a, b, (size_t)elems * sizeof *a, "%s: %s", what, name);
        return;
    }
    for (int64_t i = 0; i < elems; i++)
        cr_assert_float_eq((double)a[i], (double)b[i],
                           tolerance * fmax(1, fabs((double)a[i])),
                           "%s: %s[%lld] is %.9g and %.9g", what, name,
                           (long long)i, (double)a[i], (double)b[i]);
}

void harness_compare(const harness_t *a, const harness_t *b, int64_t step,
                     double tolerance, const char *what)
{
    newest_t x = {0}, y = {0};

    newest_open(a, &x);
    newest_open(b, &y);
    if (step >= 0) {
        cr_assert_eq(x.manifest.progress.step, step, "%s", what);
        cr_assert_eq(y.manifest.progress.step, step, "%s", what);
    }
    cr_assert_eq(x.manifest.tensor_count, y.manifest.tensor_count);
    for (int i = 0; i < x.manifest.tensor_count; i++) {
        const hdf5io_manifest_tensor_t *tensor = &x.manifest.tensors[i];
        float *one = tensor_read(&x, i), *two = tensor_read(&y, i);

        cr_assert_str_eq(tensor->name, y.manifest.tensors[i].name);
        tensor_compare(one, two, tensor->elems, tolerance, what, tensor->name);
        free(two);
        free(one);
    }
    newest_close(&y);
    newest_close(&x);
}

int harness_values(const harness_t *harness, bool evaluations, const char *key,
                   double *values, int room)
{
    static const char eval[] = "{\"event\": \"eval\"";
    char path[300], wanted[64];
    char *text, *at, *rest = NULL;
    size_t bytes;
    int count = 0;
    err_t err = ERR_INIT;

    snprintf(path, sizeof path, "%s/run/metrics.jsonl", harness->dir);
    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    for (at = strtok_r(text, "\n", &rest); at != NULL && count < room;
         at = strtok_r(NULL, "\n", &rest)) {
        const char *found = strstr(at, wanted);

        if (evaluations ? strncmp(at, eval, sizeof eval - 1) != 0
                        : strstr(at, "\"event\"") != NULL)
            continue;
        cr_assert_not_null(found, "%s: %s", key, at);
        found += strlen(wanted);
        values[count++] =
            strncmp(found, "null", 4) == 0 ? (double)NAN : strtod(found, NULL);
    }
    free(text);
    return count;
}

int harness_events(const harness_t *harness, const char *event)
{
    char path[300], wanted[64];
    char *text;
    int count = 0;
    err_t err = ERR_INIT;

    snprintf(path, sizeof path, "%s/run/lives.jsonl", harness->dir);
    snprintf(wanted, sizeof wanted, "\"event\":\"%s\"", event);
    cr_assert_eq(file_read(path, &text, NULL, &err), ERR_OK, "%s", err.text);
    for (const char *at = text; (at = strstr(at, wanted)) != NULL; at++)
        count++;
    free(text);
    return count;
}

/* ---- interruption -------------------------------------------------------- */

/* Looks for a signal that are left; all ranks, which are threads of this
 * process, count it down. */
static atomic_int looks_left;

static slurm_signal_t signal_after_looks(void)
{
    return atomic_fetch_sub(&looks_left, 1) <= 1 ? SLURM_SIGNAL_CHECKPOINT
                                                 : SLURM_SIGNAL_NONE;
}

void harness_interrupt(harness_t *harness, int looks)
{
    atomic_store(&looks_left, looks);
    harness->signal = signal_after_looks;
}

int harness_run_interrupted(harness_t *harness, int looks, const int lives[2],
                            train_outcome_t *out)
{
    err_t err = ERR_INIT;
    err_code_t rc;
    int life = 0;

    do {
        harness_interrupt(harness, looks);
        rc = harness_run(harness, lives[life % 2], out, &err);
        cr_assert(rc == ERR_OK || rc == ERR_REQUEUE, "%s", err.text);
        life++;
        cr_assert_lt(life, 100, "no progress");
    } while (rc == ERR_REQUEUE);
    return life;
}
