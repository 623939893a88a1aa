/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "open.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double open_spin(int64_t row, int64_t element)
{
    return (double)((row * 7 + element * 3) % 251 % 120);
}

double open_phase(int64_t row, int64_t element)
{
    return (double)((row + element) % OPEN_CLASSES);
}

double open_temperature(int64_t row, int64_t element)
{
    return 1.0 + 0.25 * (double)row + 1000.0 * (double)element;
}

void open_setup(open_setup_t *setup, const char *directory, const char *pattern)
{
    *setup = (open_setup_t){.input = {.path = (char *)"/spins", .scale = 1},
                            .target = {.path = (char *)"/phase", .scale = 1}};
    setup->patterns[0] = files_path(directory, pattern);
    setup->shards = (opt_texts_t){.count = 1, .items = setup->patterns};
    setup->config =
        (hdf5io_dataset_config_t){.shards = &setup->shards,
                                  .inputs[0] = {.field = &setup->input,
                                                .elems = OPEN_ELEMS,
                                                .shape = "[12]"},
                                  .targets[0] = {.field = &setup->target,
                                                 .as = HDF5IO_AS_CLASSES,
                                                 .limit = OPEN_CLASSES,
                                                 .elems = 1}};
}

void open_setup_stream(open_setup_t *setup, int length, const char *shape,
                       int limit)
{
    setup->input.path = (char *)"/tokens";
    setup->target.path = (char *)"";
    setup->config.sequence = length;
    setup->config.targets[0].limit = limit;
    setup->config.inputs[0].elems = length;
    setup->config.targets[0].elems = length;
    setup->config.inputs[0].shape = shape;
}

void open_setup_free(open_setup_t *setup)
{
    for (int i = 0; i < 4; i++)
        free(setup->patterns[i]);
}

void open_begin(char **directory, open_setup_t *setup, const char *pattern)
{
    *directory = files_make();
    open_setup(setup, *directory, pattern);
}

void open_end(char *directory, open_setup_t *setup)
{
    open_setup_free(setup);
    files_remove(directory);
}

char *open_directory;
open_setup_t open_all;

void open_start(void)
{
    open_begin(&open_directory, &open_all, "*.h5");
}

void open_stop(void)
{
    open_end(open_directory, &open_all);
}

void open_write(const char *directory, const char *name, files_layout_t layout,
                int64_t first, int64_t rows)
{
    const files_column_t columns[] = {
        {"/spins", 2, {3, 4}, H5T_STD_I8LE, open_spin},
        {"/phase", 0, {0}, H5T_STD_I64LE, open_phase},
        {"/temperature", 1, {2}, H5T_IEEE_F64LE, open_temperature}};
    char *path = files_path(directory, name);

    files_write(path, layout, first, rows, columns, 3);
    free(path);
}

void open_write_parts(const char *directory, files_layout_t layout, int count,
                      int64_t rows)
{
    char name[32];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        open_write(directory, name, layout, i * rows, rows);
    }
}

hdf5io_dataset_t *open_dataset(const open_setup_t *setup)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_open(&setup->config, &dataset, &err), ERR_OK,
                 "%s", err.text);
    return dataset;
}

void open_refused(const open_setup_t *setup, err_code_t code,
                  const char *const *texts)
{
    hdf5io_dataset_t *dataset = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_dataset_open(&setup->config, &dataset, &err), code,
                 "%s", err.text);
    cr_assert_null(dataset);
    for (; *texts != NULL; texts++)
        cr_assert_not_null(strstr(err.text, *texts), "\"%s\" lacks \"%s\"",
                           err.text, *texts);
}

int open_wrong_samples(hdf5io_dataset_t *dataset, const int64_t *index,
                       int64_t count)
{
    float *input = calloc((size_t)count * OPEN_ELEMS, sizeof *input);
    int64_t *target = calloc((size_t)count, sizeof *target);
    err_t err = ERR_INIT;
    int wrong = 0;

    if (hdf5io_dataset_read(dataset, index, count, input, target, &err) !=
        ERR_OK) {
        fprintf(stderr, "%s\n", err.text);
        wrong = 1;
    }
    for (int64_t i = 0; i < count && wrong == 0; i++) {
        wrong += (double)target[i] != open_phase(index[i], 0);
        for (int64_t e = 0; e < OPEN_ELEMS; e++)
            wrong +=
                (double)input[i * OPEN_ELEMS + e] != open_spin(index[i], e);
    }
    free(target);
    free(input);
    return wrong;
}

int open_wrong_orders(hdf5io_dataset_t *dataset, int64_t samples)
{
    int64_t *index = calloc((size_t)samples * 2, sizeof *index);
    int wrong = 0;

    for (int64_t i = 0; i < samples; i++)
        index[i] = i;
    wrong += open_wrong_samples(dataset, index, samples);
    for (int64_t i = 0; i < samples; i++)
        index[i] = samples - 1 - i;
    wrong += open_wrong_samples(dataset, index, samples);
    for (int64_t i = 0; i < 2 * samples; i++)
        index[i] = i * 7919 % samples;
    wrong += open_wrong_samples(dataset, index, 2 * samples);
    wrong += open_wrong_samples(dataset, index, 1);
    wrong += open_wrong_samples(dataset, index, 0);
    free(index);
    return wrong;
}
