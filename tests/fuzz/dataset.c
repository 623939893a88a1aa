/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Fuzzes datasets. The input is not random bytes in an HDF5 file, since the
 * library itself crashes on those (1.10 and older have known bugs of that kind,
 * and no program can check a file before the library reads it). Instead HDF5
 * writes files as the fuzzer's bytes choose. What the opener then reports and
 * reads is compared with the model of dataset_case.h.
 *
 * Excluded, since the library fails on its own files there:
 * - random bytes in headers, see above; changed bytes in chunks are only made
 * where a checksum of the library covers them;
 * - mappings with a stride of more than 4096 rows: their blocks are stored one
 *   by one, and HDF5 needs quadratic time in their number;
 * - the filter scaleoffset on integers of odd widths, which it changes;
 * - chunks of more than 1 MiB that have filters or are written to, since any
 * reader has to hold a whole chunk in memory; and more than 65536 chunks if one
 * is written, since the newer formats then store an index of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "fuzz/dataset_target.h"
#include "fuzz/fuzz.h"
#include "hdf5io/attribute.h"
#include "hdf5io/digest.h"
#include "hdf5io/h5.h"

/* Maximum processor time in seconds for opening and reading a case. */
#define TARGET_SECONDS 2.0
#define TARGET_READS 24

static const err_code_t allowed[] = {ERR_DATA, ERR_UNAVAILABLE, ERR_MEMORY,
                                     ERR_OK};
static const err_code_t allowed_later[] = {ERR_DATA, ERR_UNAVAILABLE, ERR_IO,
                                           ERR_MEMORY, ERR_OK};

static void target_fail(const target_t *target, const char *what,
                        const char *text)
{
    fprintf(stderr, "fuzz: %s: %s (model: %s)\n", what, text,
            target->why == NULL ? "all is well" : target->why);
    for (int i = 0; i < target->shards.count; i++)
        fprintf(stderr, "fuzz: shard %s\n", target->paths[i]);
    for (int k = 0; k < TARGET_FIELDS; k++)
        fprintf(stderr, "fuzz: field %s\n", target->fields[k].path);
    abort();
}

/* ---- a private directory ------------------------------------------------- */

static char target_home[CASE_TEXT / 2]; /* "" until it is made */

static void target_home_remove(void)
{
    file_remove_tree(target_home, NULL);
}

/* Make a directory in memory, unless TMPDIR names another place. It is removed
 * when the process ends; `make fuzz` sets TMPDIR to a directory of its own and
 * removes it, so nothing is left after a crash. */
static void target_home_make(void)
{
    const char *parent = getenv("TMPDIR");
    char below[CASE_TEXT];

    if (target_home[0] == '\0') {
        if (parent == NULL)
            parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(target_home, sizeof target_home, "%s/cddp-fuzz-XXXXXX",
                 parent);
        if (mkdtemp(target_home) == NULL)
            abort();
        atexit(target_home_remove);
    }
    snprintf(below, sizeof below, "%s/sub", target_home);
    if (mkdir(below, 0700) != 0 && errno != EEXIST)
        abort();
}

static void target_files_remove(const target_t *target)
{
    for (int i = 0; i < target->model.file_count; i++)
        if (remove(target->model.files[i].path) != 0 && errno != ENOENT)
            abort();
    for (int s = 0; s < target->model.set_count; s++)
        for (int r = 0; r < target->model.sets[s].raw_count; r++)
            if (remove(target->model.sets[s].raws[r]) != 0 && errno != ENOENT)
                abort();
}

/* ---- what is asked for --------------------------------------------------- */

static int64_t target_elems(const target_t *target, int field)
{
    const int found = case_find(&target->model, 0, target->fields[field].path);
    const uint64_t elems =
        found < 0 ? 1 : case_elements(&target->model.sets[found], 1);

    if (target->config.sequence > 0)
        return target->config.sequence;
    return elems > INT32_MAX || elems == 0 ? 1 : (int64_t)elems;
}

static void target_ask(target_t *target)
{
    static const char *const names[] = {"/a",   "/b",   "/c",   "/d",
                                        "/g/a", "/g/b", "/h/a", "/h/b",
                                        "a",    "/g",   "/",    "/none"};
    static const int64_t limits[] = {CASE_VALUES, 50, 1, 1000};
    case_bytes_t *bytes = &target->bytes;
    hdf5io_dataset_config_t *config = &target->config;
    unsigned choice = case_pick(bytes, 36);

    target->fields[0] =
        (hdf5io_field_t){.path = (char *)names[choice < 12 ? choice : 0],
                         .cast = HDF5IO_CAST_FLOAT32,
                         .scale = 1};
    choice = case_pick(bytes, 36);
    target->fields[1] = (hdf5io_field_t){
        .path = (char *)names[choice < 12 ? (choice + 1) % 12 : 1],
        .cast = HDF5IO_CAST_FLOAT32,
        .scale = 1};
    if (case_pick(bytes, 8) == 7) {
        config->sequence = 1 + case_pick(bytes, 5);
        target->fields[1].path = target->fields[0].path;
    }
    config->shards = &target->shards;
    config->cache_bytes = case_pick(bytes, 3) * (size_t)5000;
    config->inputs[0] = (hdf5io_want_t){
        .field = &target->fields[0],
        .as = case_pick(bytes, 4) == 3 ? HDF5IO_AS_TOKENS : HDF5IO_AS_REALS,
        .limit = limits[case_pick(bytes, 4)],
        .elems = target_elems(target, 0),
        .shape = "[?]"};
    config->targets[0] = (hdf5io_want_t){
        .field = &target->fields[1],
        .as = case_pick(bytes, 2) == 1 ? HDF5IO_AS_REALS : HDF5IO_AS_CLASSES,
        .limit = limits[case_pick(bytes, 4)],
        .elems = target_elems(target, 1)};
    for (int i = 0; i < target->model.shard_count; i++)
        target->paths[i] = target->model.files[i].path;
    target->shards = (opt_texts_t){.count = target->model.shard_count,
                                   .items = target->paths};
}

/* ---- reading ------------------------------------------------------------- */

/* Shard and row of a sample, in the order of the dataset. */
static void target_place(const target_t *target,
                         const hdf5io_dataset_t *dataset, int64_t sample,
                         int *shard, uint64_t *row)
{
    int place = 0;

    while (sample >= hdf5io_dataset_shard_samples(dataset, place))
        sample -= hdf5io_dataset_shard_samples(dataset, place++);
    *row = (uint64_t)sample;
    for (int s = 0; s < target->model.shard_count; s++)
        if (strcmp(target->paths[s], hdf5io_dataset_shard(dataset, place)) == 0)
            *shard = s;
}

/* Expected number [element] of a field of a sample; false: unknown. */
static bool target_value(const target_t *target,
                         const hdf5io_dataset_t *dataset, int64_t sample,
                         int field, int64_t element, double *out)
{
    const int64_t length = target->config.sequence;
    int shard = 0;
    uint64_t row = 0;

    target_place(target, dataset, sample, &shard, &row);
    if (length > 0) {
        row = row * (uint64_t)length + (uint64_t)(element + field);
        element = 0;
    }
    return case_value(&target->model, target->sets[shard][field], row,
                      (uint64_t)element, out);
}

static const hdf5io_want_t *target_want(const target_t *target, int field)
{
    return field == 0 ? &target->config.inputs[0] : &target->config.targets[0];
}

/* Sample indices of a batch, and its buffers. */
typedef struct target_batch {
    int64_t samples[TARGET_READS];
    int count;
    void *fields[TARGET_FIELDS];
} target_batch_t;

static double target_got(const target_t *target, const target_batch_t *batch,
                         int field, int64_t at)
{
    switch (target_want(target, field)->as) {
    case HDF5IO_AS_TOKENS:
        return ((const int32_t *)batch->fields[field])[at];
    case HDF5IO_AS_CLASSES:
        return (double)((const int64_t *)batch->fields[field])[at];
    default:
        return (double)((const float *)batch->fields[field])[at];
    }
}

/* Does the batch contain a number outside the range of its field? Then it must
 * be refused. */
static bool target_out_of_range(const target_t *target,
                                const hdf5io_dataset_t *dataset,
                                const target_batch_t *batch)
{
    for (int k = 0; k < TARGET_FIELDS; k++) {
        const hdf5io_want_t *want = target_want(target, k);

        for (int i = 0; i < batch->count && want->as != HDF5IO_AS_REALS; i++)
            for (int64_t e = 0; e < want->elems; e++) {
                double value;

                if (target_value(target, dataset, batch->samples[i], k, e,
                                 &value) &&
                    !(value < (double)want->limit))
                    return true;
            }
    }
    return false;
}

/* Compare all numbers of the batch with the model. */
static void target_compare(const target_t *target,
                           const hdf5io_dataset_t *dataset,
                           const target_batch_t *batch)
{
    char text[128];

    for (int k = 0; k < TARGET_FIELDS; k++) {
        const int64_t elems = target_want(target, k)->elems;

        for (int64_t at = 0; at < batch->count * elems; at++) {
            const int64_t sample = batch->samples[at / elems];
            const double got = target_got(target, batch, k, at);
            double want;

            if (!target_value(target, dataset, sample, k, at % elems, &want) ||
                got == want || (isnan(got) && isnan(want)))
                continue;
            snprintf(text, sizeof text,
                     "sample %lld, element %lld: %g instead of %g",
                     (long long)sample, (long long)(at % elems), got, want);
            target_fail(target, "wrong data", text);
        }
    }
}

/* Does the model predict that the dataset can be read? */
static bool target_readable(const target_t *target)
{
    bool readable = target->verdict == CASE_GOOD;

    for (int s = 0; s < target->model.shard_count; s++)
        for (int k = 0; k < TARGET_FIELDS; k++)
            readable =
                readable && case_readable(&target->model, target->sets[s][k]);
    return readable;
}

/* Does the model know all values of the batch? If not, a refusal may be
 * correct. */
static bool target_known(const target_t *target,
                         const hdf5io_dataset_t *dataset,
                         const target_batch_t *batch)
{
    double value;

    for (int k = 0; k < TARGET_FIELDS; k++)
        for (int i = 0; i < batch->count; i++)
            for (int64_t e = 0; e < target_want(target, k)->elems; e++)
                if (!target_value(target, dataset, batch->samples[i], k, e,
                                  &value))
                    return false;
    return true;
}

static void target_read(target_t *target, hdf5io_dataset_t *dataset,
                        target_batch_t *batch)
{
    err_t err = ERR_INIT;
    err_code_t rc = hdf5io_dataset_read_fields(
        dataset, batch->samples, batch->count, batch->fields, &err);
    const bool out = target_out_of_range(target, dataset, batch);

    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK && out)
        target_fail(target, "accepted", "a number out of range");
    if (rc == ERR_OK)
        target_compare(target, dataset, batch);
    else if (!out && target_readable(target) &&
             target_known(target, dataset, batch))
        target_fail(target, "not read", err.text);
}

/* Choose samples near both ends of the dataset and in between. */
static void target_choose(target_t *target, int64_t samples,
                          target_batch_t *batch)
{
    batch->count = 1 + (int)case_pick(&target->bytes, TARGET_READS);
    for (int i = 0; i < batch->count; i++) {
        const int64_t at = case_pick(&target->bytes, 255);

        batch->samples[i] =
            at >= 128 ? samples - 1 - (at - 128) % samples : (i + at) % samples;
    }
}

static void target_digest(target_t *target, hdf5io_dataset_t *dataset)
{
    const bool small =
        hdf5io_dataset_samples(dataset) <
        (1 << 20) / (1 + (int64_t)hdf5io_dataset_sample_bytes(dataset));
    const hdf5io_digest_how_t how = {.full = small &&
                                             case_pick(&target->bytes, 2) == 1};

    hdf5io_dataset_place(dataset);
    for (int s = 0; s < hdf5io_dataset_shards(dataset); s++) {
        hdf5io_dataset_shape(dataset, s);
        for (int k = 0; k < TARGET_FIELDS; k++) {
            err_t err = ERR_INIT;
            uint64_t digest;
            err_code_t rc =
                hdf5io_dataset_digest(dataset, s, k, &how, &digest, &err);

            fuzz_check(rc, &err, allowed);
            if (rc != ERR_OK && target_readable(target))
                target_fail(target, "no digest", err.text);
        }
    }
}

/* Change files while they are in use, and read again: any documented status is
 * allowed. */
static void target_later(target_t *target, hdf5io_dataset_t *dataset,
                         target_batch_t *batch)
{
    const case_model_t *model = &target->model;
    const char *path =
        model->files[case_pick(&target->bytes, (unsigned)model->file_count)]
            .path;
    err_t err = ERR_INIT;
    err_code_t rc;

    switch (case_pick(&target->bytes, 8)) {
    case 5:
        unlink(path);
        break;
    case 6:
        (void)!truncate(path, case_pick(&target->bytes, 250) * 8);
        break;
    case 7:
        for (int s = 0; s < model->set_count; s++)
            for (int r = 0; r < model->sets[s].raw_count; r++)
                (void)!truncate(model->sets[s].raws[r], 1);
        break;
    default:
        return;
    }
    rc = hdf5io_dataset_read_fields(dataset, batch->samples, batch->count,
                                    batch->fields, &err);
    fuzz_check(rc, &err, allowed_later);
}

static void target_use(target_t *target, hdf5io_dataset_t *dataset)
{
    const int64_t samples = hdf5io_dataset_samples(dataset);
    target_batch_t batch = {.count = 0};

    if (target->verdict == CASE_GOOD && (uint64_t)samples != target->rows)
        target_fail(target, "wrong structure", "number of samples");
    target_digest(target, dataset);
    if (target->config.inputs[0].elems > CASE_SMALL ||
        target->config.targets[0].elems > CASE_SMALL)
        return;
    for (int k = 0; k < TARGET_FIELDS; k++) {
        batch.fields[k] =
            calloc(TARGET_READS, hdf5io_dataset_field_bytes(dataset, k));
        if (batch.fields[k] == NULL)
            abort();
    }
    for (int i = 0; i < 2; i++) {
        target_choose(target, samples, &batch);
        target_read(target, dataset, &batch);
    }
    target_later(target, dataset, &batch);
    for (int k = 0; k < TARGET_FIELDS; k++)
        free(batch.fields[k]);
}

/* ---- the target ---------------------------------------------------------- */

static void target_bound(const target_t *target)
{
    const case_model_t *model = &target->model;
    err_t err = ERR_INIT;
    double bound = 0;
    err_code_t rc =
        hdf5io_attribute_read(model->files[0].path, "bound_accuracy",
                              &target->config.retry, &bound, &err);

    fuzz_check(rc, &err, allowed);
    if ((rc == ERR_OK) !=
        (model->bound_verdict == CASE_GOOD && !model->files[0].broken))
        target_fail(target, "bound_accuracy", err.text);
    if (rc == ERR_OK && bound != model->bound &&
        !(isnan(bound) && isnan(model->bound)))
        target_fail(target, "bound_accuracy", "another value");
}

static double target_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static err_code_t target_open(target_t *target)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = hdf5io_dataset_open(&target->config, &dataset, &err);

    fuzz_check(rc, &err, allowed);
    if (rc == ERR_OK && target->verdict == CASE_BAD)
        target_fail(target, "accepted", "what must be refused");
    if (rc != ERR_OK && target->verdict == CASE_GOOD)
        target_fail(target, "refused", err.text);
    if (rc == ERR_OK)
        target_use(target, dataset);
    hdf5io_dataset_close(dataset);
    return rc;
}

err_code_t fuzz_dataset(const uint8_t *data, size_t bytes)
{
    target_t *target = calloc(1, sizeof *target);
    double begin;
    ssize_t left;
    err_code_t rc;

    if (target == NULL)
        abort();
    target->bytes = (case_bytes_t){data, bytes};
    target_home_make();
    h5_lock();
    case_write(&target->bytes, target_home, &target->model);
    h5_unlock();
    target_ask(target);
    fuzz_dataset_judge(target);
    begin = target_clock();
    target_bound(target);
    rc = target_open(target);
    if (target_clock() - begin > TARGET_SECONDS)
        target_fail(target, "slow", "more than two seconds");
    h5_lock();
    left = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
    h5_unlock();
    if (left != 0)
        target_fail(target, "left open", "objects of HDF5");
    target_files_remove(target);
    free(target);
    return rc;
}
