/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/loader.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "lib/alloc_count.h"
#include "open.h"

#define SAMPLES 103
#define BATCH 16

static char *directory;
static open_setup_t setup;
static hdf5io_dataset_t *dataset;
static hdf5io_units_t *units;
static int readers = 1; /* threads of the loaders that are opened next */

/* Reads wait until [together] reads have begun; 0: no read waits. */
static atomic_int together;
static atomic_int reading;

/* Replaces pread of the C library, also for libhdf5. */
ssize_t pread(int fd, void *bytes, size_t count, off_t offset)
{
    if (atomic_load(&together) > 0) {
        atomic_fetch_add(&reading, 1);
        while (atomic_load(&reading) < atomic_load(&together))
            sched_yield();
    }
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

static void start(void)
{
    int64_t rows[3];

    open_begin(&directory, &setup, "*.h5");
    open_write(directory, "0.h5", FILES_CONTIGUOUS, 0, 40);
    open_write(directory, "1.h5", FILES_GZIP, 40, 1);
    open_write(directory, "2.h5", FILES_CHUNKED, 41, SAMPLES - 41);
    dataset = open_dataset(&setup);
    hdf5io_dataset_unit_rows(dataset, rows);
    cr_assert_eq(hdf5io_dataset_units(dataset, rows, &units, NULL), ERR_OK);
}

static void stop(void)
{
    hdf5io_units_close(units);
    hdf5io_dataset_close(dataset);
    open_end(directory, &setup);
}

TestSuite(loader, .init = start, .fini = stop);

static hdf5io_sampler_t *open_sampler(int rank, int size,
                                      hdf5io_shuffle_t shuffle)
{
    hdf5io_sampler_config_t config = {.samples = SAMPLES,
                                      .batch = BATCH,
                                      .rank = rank,
                                      .size = size,
                                      .shuffle = shuffle,
                                      .seed = 5,
                                      .order = 2,
                                      .lanes = 5,
                                      .units = units};
    hdf5io_sampler_t *sampler = NULL;

    cr_assert_eq(hdf5io_sampler_open(&config, &sampler, NULL), ERR_OK);
    return sampler;
}

static hdf5io_loader_t *open_kept(hdf5io_sampler_t *sampler, int prefetch,
                                  int kept, int64_t epoch, int64_t step)
{
    hdf5io_loader_config_t config = {.dataset = dataset,
                                     .sampler = sampler,
                                     .prefetch = prefetch,
                                     .threads = readers,
                                     .kept = kept,
                                     .epoch = epoch,
                                     .step = step,
                                     .epochs = 3,
                                     .rank = 0};
    hdf5io_loader_t *loader = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_loader_open(&config, &loader, &err), ERR_OK, "%s",
                 err.text);
    return loader;
}

static hdf5io_loader_t *open_loader(hdf5io_sampler_t *sampler, int prefetch,
                                    int64_t epoch, int64_t step)
{
    return open_kept(sampler, prefetch, 0, epoch, step);
}

/* Compare a batch with the sampler's indices and the written values. */
static void check_batch(const hdf5io_batch_t *batch, hdf5io_sampler_t *plan,
                        int64_t epoch, int64_t step)
{
    hdf5io_share_t share = hdf5io_sampler_share(plan, step);
    const int64_t *target = batch->target;
    int64_t index[BATCH];

    hdf5io_sampler_epoch_set(plan, epoch);
    hdf5io_sampler_index(plan, share.first, share.count, index);
    cr_assert_eq(batch->epoch, epoch);
    cr_assert_eq(batch->step, step);
    cr_assert_eq(batch->count, share.count);
    cr_assert_eq(batch->global, share.global);
    for (int64_t i = 0; i < share.count; i++) {
        cr_assert_eq(batch->sample_ids[i], (uint64_t)index[i]);
        cr_assert_eq((double)target[i], open_phase(index[i], 0));
        for (int64_t e = 0; e < OPEN_ELEMS; e++)
            cr_assert_eq((double)((float *)batch->input)[i * OPEN_ELEMS + e],
                         open_spin(index[i], e));
    }
}

static void check_epochs(int prefetch, int rank, int size,
                         hdf5io_shuffle_t shuffle, int64_t epoch, int64_t step)
{
    hdf5io_sampler_t *sampler = open_sampler(rank, size, shuffle);
    hdf5io_sampler_t *plan = open_sampler(rank, size, shuffle);
    hdf5io_loader_t *loader = open_loader(sampler, prefetch, epoch, step);
    int64_t steps = hdf5io_sampler_steps(plan);
    hdf5io_batch_t *batch;
    err_t err = ERR_INIT;

    for (; epoch < 3; epoch++, step = 0)
        for (; step < steps; step++) {
            cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK, "%s",
                         err.text);
            cr_assert_not_null(batch);
            check_batch(batch, plan, epoch, step);
        }
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK);
        cr_assert_null(batch, "the end stays the end");
    }
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(plan);
    hdf5io_sampler_close(sampler);
}

static const int depths[] = {0, 1, 4, 30};

/* Two batches before the newest one are still what they were, and lie in the
 * loader's memory. */
static void check_kept(int prefetch)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 2, HDF5IO_SHUFFLE_FULL);
    hdf5io_sampler_t *plan = open_sampler(0, 2, HDF5IO_SHUFFLE_FULL);
    hdf5io_loader_t *loader = open_kept(sampler, prefetch, 2, 0, 0);
    const int64_t steps = hdf5io_sampler_steps(plan);
    const hdf5io_batch_t *last[3] = {NULL};
    size_t bytes;
    const char *memory = hdf5io_loader_memory(loader, &bytes);
    hdf5io_batch_t *batch;
    err_t err = ERR_INIT;

    for (int64_t n = 0; n < 3 * steps; n++) {
        cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK);
        cr_assert_not_null(batch);
        cr_assert_geq((const char *)batch->input, memory);
        cr_assert_lt((const char *)batch->sample_ids, memory + bytes);
        last[n % 3] = batch;
        for (int64_t i = 0; i < 3 && i <= n; i++)
            check_batch(last[(n - i) % 3], plan, (n - i) / steps,
                        (n - i) % steps);
    }
    cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK);
    cr_assert_null(batch);
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(plan);
    hdf5io_sampler_close(sampler);
}

Test(loader, keeps_earlier_batches)
{
    for (readers = 1; readers <= 5; readers += 2)
        for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
            check_kept(depths[d]);
}

Test(loader, delivers_every_batch_in_order)
{
    for (readers = 1; readers <= 5; readers++)
        for (int i = 0; i < 4; i++) {
            check_epochs(depths[i], 0, 1, HDF5IO_SHUFFLE_NONE, 0, 0);
            check_epochs(depths[i], 1, 3, HDF5IO_SHUFFLE_FULL, 0, 0);
            check_epochs(depths[i], 0, 2, HDF5IO_SHUFFLE_CHUNK, 0, 0);
        }
}

Test(loader, starts_anywhere)
{
    for (int i = 0; i < 4; i++) {
        check_epochs(depths[i], 0, 1, HDF5IO_SHUFFLE_FULL, 1, 3);
        check_epochs(depths[i], 0, 1, HDF5IO_SHUFFLE_FULL, 2, 6);
        check_epochs(depths[i], 0, 1, HDF5IO_SHUFFLE_FULL, 3, 0);
    }
}

/* An epoch has steps 0 to 6; a checkpoint at its end may name step 7. */
Test(loader, a_start_after_the_last_step_is_the_next_epoch)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_FULL);
    hdf5io_loader_t *loader = open_loader(sampler, 2, 0, 7);
    hdf5io_batch_t *batch;

    cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
    cr_assert_eq(batch->epoch, 1);
    cr_assert_eq(batch->step, 0);
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(sampler);
}

/* With more ranks than samples in the last step some ranks get no samples, but
 * take part. */
Test(loader, ranks_without_samples_get_empty_batches)
{
    int64_t total = 0;

    for (int rank = 0; rank < 17; rank++) {
        hdf5io_sampler_t *sampler = open_sampler(rank, 17, HDF5IO_SHUFFLE_FULL);
        hdf5io_loader_t *loader = open_loader(sampler, 2, 2, 0);
        hdf5io_batch_t *batch;

        for (int step = 0; step < 7; step++) {
            cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
            cr_assert_eq(batch->global, step < 6 ? BATCH : SAMPLES - 6 * BATCH);
            total += batch->count;
        }
        hdf5io_loader_close(loader);
        hdf5io_sampler_close(sampler);
    }
    cr_assert_eq(total, SAMPLES);
}

Test(loader, closes_early)
{
    for (int i = 0; i < 8; i++)
        for (int taken = 0; taken < 5; taken++) {
            hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_FULL);
            hdf5io_loader_t *loader;
            hdf5io_batch_t *batch;

            readers = i < 4 ? 1 : 3;
            loader = open_loader(sampler, depths[i % 4], 0, 0);
            for (int j = 0; j < taken; j++)
                cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
            hdf5io_loader_close(loader);
            hdf5io_sampler_close(sampler);
        }
    hdf5io_loader_close(NULL);
}

Test(loader, its_memory_may_stay_for_a_device_that_was_given_up)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_FULL);
    hdf5io_loader_t *loader = open_loader(sampler, 2, 0, 0);
    size_t bytes;
    void *memory = hdf5io_loader_memory(loader, &bytes);

    hdf5io_loader_memory_keep(loader);
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(sampler);
    memset(memory, 0x55, bytes); /* AddressSanitizer knows freed memory */
    mem_free(memory);
}

/* If one thread read after the other, the first one would wait for ever. */
Test(loader, threads_read_at_the_same_time, .timeout = 300)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_NONE);
    hdf5io_loader_t *loader;
    hdf5io_batch_t *batch;

    hdf5io_dataset_close(dataset);
    /* Contiguous shards, since HDF5 would read a shard under the lock of the
     * dataset. */
    open_write(directory, "1.h5", FILES_CONTIGUOUS, 40, 1);
    open_write(directory, "2.h5", FILES_CONTIGUOUS, 41, SAMPLES - 41);
    setup.config.cache_bytes = 1; /* no rows are kept */
    dataset = open_dataset(&setup);
    readers = 3;
    atomic_store(&together, 2);
    loader = open_loader(sampler, 3, 0, 0);
    cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(sampler);
}

static double bad_label(int64_t row, int64_t element)
{
    return row == 70 || row == 100 ? 99 : open_phase(row, element);
}

/* In file order row 70 belongs to step 4. The reader gets batches 0 to 3 first,
 * then the error, even if a thread has found the error of step 6 before. */
Test(loader, an_error_surfaces_in_its_place_and_stays)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_STD_I8LE, open_spin},
        {"/phase", 0, {0}, H5T_STD_I64LE, bad_label}};
    char *path = files_path(directory, "2.h5");

    hdf5io_dataset_close(dataset);
    files_write(path, FILES_CONTIGUOUS, 41, SAMPLES - 41, columns, 2);
    dataset = open_dataset(&setup);
    for (int i = 0; i < 16; i++) {
        hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_NONE);
        hdf5io_sampler_t *plan = open_sampler(0, 1, HDF5IO_SHUFFLE_NONE);
        hdf5io_loader_t *loader;
        hdf5io_batch_t *batch = NULL;
        err_t err = ERR_INIT;

        readers = 1 + i / 4 * 2;
        loader = open_loader(sampler, depths[i % 4], 0, 0);
        for (int step = 0; step < 4; step++) {
            cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_OK);
            check_batch(batch, plan, 0, step);
        }
        for (int again = 0; again < 3; again++) {
            err = (err_t)ERR_INIT;
            cr_assert_eq(hdf5io_loader_next(loader, &batch, &err), ERR_DATA);
            cr_assert_not_null(strstr(err.text, "2.h5: row 29 of /phase"), "%s",
                               err.text);
        }
        cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_DATA);
        hdf5io_loader_close(loader);
        hdf5io_sampler_close(plan);
        hdf5io_sampler_close(sampler);
    }
    free(path);
}

Test(loader, float_targets_have_their_own_width)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 1, HDF5IO_SHUFFLE_FULL);
    hdf5io_loader_config_t config = {
        .dataset = NULL, .sampler = sampler, .prefetch = 3, .epochs = 1};
    hdf5io_loader_t *loader = NULL;
    hdf5io_batch_t *batch;

    hdf5io_dataset_close(dataset);
    setup.target.path = (char *)"/temperature";
    setup.config.targets[0].as = HDF5IO_AS_REALS;
    setup.config.targets[0].elems = 2;
    dataset = open_dataset(&setup);
    config.dataset = dataset;
    cr_assert_eq(hdf5io_loader_open(&config, &loader, NULL), ERR_OK);
    for (int step = 0; step < 7; step++) {
        const float *target;

        cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
        target = batch->target;
        for (int64_t i = 0; i < batch->count; i++)
            for (int64_t e = 0; e < 2; e++)
                cr_assert_eq(
                    (double)target[2 * i + e],
                    open_temperature((int64_t)batch->sample_ids[i], e));
    }
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(sampler);
}

/* Each sample has a token, real numbers, a class and real numbers again, from
 * shards of every layout. */
Test(loader, several_inputs_and_targets_of_their_own_types)
{
    hdf5io_field_t phase = {.path = (char *)"/phase", .scale = 1, .shift = 1};
    hdf5io_field_t heat = {
        .path = (char *)"/temperature", .scale = 2, .shift = -1};
    hdf5io_loader_t *loader = NULL;
    hdf5io_batch_t *batch;

    setup.config.inputs[0] = (hdf5io_want_t){.field = &phase,
                                             .as = HDF5IO_AS_TOKENS,
                                             .limit = OPEN_CLASSES + 1,
                                             .elems = 1,
                                             .shape = "[1]",
                                             .name = "word"};
    setup.config.inputs[1] = (hdf5io_want_t){.field = &setup.input,
                                             .elems = OPEN_ELEMS,
                                             .shape = "[12]",
                                             .name = "spins"};
    setup.config.targets[1] = (hdf5io_want_t){.field = &heat, .elems = 2};
    setup.config.input_count = setup.config.target_count = 2;
    hdf5io_dataset_close(dataset);
    dataset = open_dataset(&setup);
    cr_expect_eq(hdf5io_dataset_inputs(dataset), 2);
    cr_expect_eq(hdf5io_dataset_targets(dataset), 2);
    cr_expect_eq(hdf5io_dataset_field_bytes(dataset, 0), 4);
    cr_expect_eq(hdf5io_dataset_field_bytes(dataset, 1), 4 * OPEN_ELEMS);
    cr_expect_eq(hdf5io_dataset_field_bytes(dataset, 2), 8);
    cr_expect_eq(hdf5io_dataset_field_bytes(dataset, 3), 8);
    for (int prefetch = 0; prefetch <= 3; prefetch += 3) {
        hdf5io_sampler_t *sampler = open_sampler(1, 2, HDF5IO_SHUFFLE_FULL);

        loader = open_loader(sampler, prefetch, 0, 0);
        for (int step = 0; step < 7; step++) {
            cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
            for (int64_t i = 0; i < batch->count; i++) {
                int64_t row = (int64_t)batch->sample_ids[i];
                double kind = open_phase(row, 0);

                cr_assert_eq(((int32_t *)batch->inputs[0])[i], kind + 1);
                cr_assert_eq(((int64_t *)batch->targets[0])[i], (int64_t)kind);
                for (int64_t e = 0; e < OPEN_ELEMS; e++)
                    cr_assert_eq(
                        (double)((float *)batch->inputs[1])[OPEN_ELEMS * i + e],
                        open_spin(row, e));
                for (int64_t e = 0; e < 2; e++)
                    cr_assert_eq(((float *)batch->targets[1])[2 * i + e],
                                 (float)open_temperature(row, e) * 2 - 1);
            }
        }
        hdf5io_loader_close(loader);
        hdf5io_sampler_close(sampler);
    }
}

/* Contiguous shards are read without HDF5, which allocates in each read. The
 * first batches grow the buffers to their final size. */
Test(loader, contiguous_reads_allocate_nothing_after_the_start)
{
    hdf5io_sampler_t *sampler = open_sampler(0, 2, HDF5IO_SHUFFLE_FULL);
    hdf5io_loader_t *loader;
    hdf5io_batch_t *batch;
    long before = 0;

    if (!alloc_count_works())
        cr_skip_test("this build has another malloc");
    hdf5io_dataset_close(dataset);
    free(setup.patterns[0]);
    setup.patterns[0] = files_path(directory, "plain-*.h5");
    open_write(directory, "plain-0.h5", FILES_CONTIGUOUS, 0, 40);
    open_write(directory, "plain-1.h5", FILES_CONTIGUOUS, 40, SAMPLES - 40);
    dataset = open_dataset(&setup);
    loader = open_loader(sampler, 0, 0, 0);
    for (int i = 0; i < 3 * 7 + 1; i++) {
        cr_assert_eq(hdf5io_loader_next(loader, &batch, NULL), ERR_OK);
        if (i == 0)
            before = alloc_count();
    }
    cr_assert_null(batch);
    cr_assert_eq(alloc_count(), before);
    hdf5io_loader_close(loader);
    hdf5io_sampler_close(sampler);
}
