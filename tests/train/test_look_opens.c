/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How often a start opens files. Ranks are threads, and all see the same files.
 * With S shards and R ranks at most S + 2 R files are opened: each shard once,
 * and what each rank needs of the first one. CDDP_LONG=1 takes 2000 shards and
 * 64 ranks.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../hdf5io/open.h"
#include "base/file.h"
#include "hdf5io/descriptor.h"
#include "lib/io_count.h"
#include "lib/ranks.h"
#include "train/look.h"
#include "train/same.h"

enum { ROWS = 4, LONG_SHARDS = 2000, SHORT_SHARDS = 300 };

static char *directory;
static int shards;
static bool keeps_index; /* rank 0 writes it */

/* Write copies of one file, which is faster than HDF5 is. */
static void start(void)
{
    char name[32], *bytes = NULL, *path;
    size_t count = 0;
    err_t err = ERR_INIT;

    shards = getenv("CDDP_LONG") == NULL ? SHORT_SHARDS : LONG_SHARDS;
    directory = files_make();
    open_write(directory, "first", FILES_CONTIGUOUS, 0, ROWS);
    path = files_path(directory, "first");
    cr_assert_eq(file_read(path, &bytes, &count, &err), ERR_OK, "%s", err.text);
    free(path);
    for (int i = 0; i < shards; i++) {
        snprintf(name, sizeof name, "part-%d.h5", i);
        path = files_path(directory, name);
        files_write_text(path, bytes, count);
        free(path);
    }
    free(bytes);
}

static void stop(void)
{
    files_remove(directory);
}

TestSuite(look_opens, .init = start, .fini = stop, .timeout = 600);

/* Read all samples; each shard has the same ones. Returns the number of wrong
 * labels, or -1. */
static int wrong_labels(hdf5io_dataset_t *dataset, err_t *err)
{
    float input[ROWS * OPEN_ELEMS];
    int64_t index[ROWS], target[ROWS];
    int wrong = 0;

    for (int s = 0; s < shards; s++) {
        for (int i = 0; i < ROWS; i++)
            index[i] = s * ROWS + i;
        if (hdf5io_dataset_read(dataset, index, ROWS, input, target, err) !=
            ERR_OK)
            return -1;
        for (int i = 0; i < ROWS; i++)
            wrong += (double)target[i] != open_phase(i, 0);
    }
    return wrong;
}

/* Open the data and compare it, as a start does. [argument]: NULL, or an int:
 * how many shards may be open; then all samples are read. */
static int start_main(const comm_oob_t *oob, void *argument)
{
    const comm_config_t config = {.backend = oob->size > 1 ? "threads" : "self",
                                  .timeout = 120};
    hdf5io_dataset_t *dataset = NULL;
    train_look_t look = {.what = "data.train", .index = keeps_index};
    train_same_t same = {.what = "data.train", .how = TRAIN_VALIDATE_QUICK};
    train_marks_t marks = {0};
    const int *open_files = argument;
    open_setup_t setup;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &look.group, &err), err);
    same.group = look.group;
    open_setup(&setup, directory, "part-*.h5");
    setup.config.digest = true;
    setup.config.open_files = open_files == NULL ? 0 : *open_files;
    RANKS_OK(train_look_open(&look, &setup.config, ERR_OK, &dataset, &err),
             err);
    RANKS_CHECK(hdf5io_dataset_shards(dataset) == shards);
    RANKS_CHECK(hdf5io_dataset_samples(dataset) == shards * ROWS);
    RANKS_OK(train_same(&same, dataset, &marks, &err), err);
    RANKS_CHECK(marks.shards == shards && marks.quick[0] == marks.quick[7]);
    if (open_files != NULL) {
        RANKS_CHECK(hdf5io_dataset_open_shards(dataset) <= *open_files);
        RANKS_CHECK(wrong_labels(dataset, &err) == 0);
        RANKS_CHECK(hdf5io_dataset_open_shards(dataset) == *open_files);
    }
    train_marks_free(&marks);
    hdf5io_dataset_close(dataset);
    open_setup_free(&setup);
    comm_group_close(look.group);
    return 0;
}

static void check_ranks(int ranks)
{
    long opens;

    io_count_begin(".h5");
    cr_assert_eq(ranks_threads(ranks, start_main, NULL), 0);
    opens = io_count_opens();
    cr_assert_geq(opens, shards, "%ld opens were counted", opens);
    cr_assert_leq(opens, shards + 2 * ranks, "%d ranks opened files %ld times",
                  ranks, opens);
}

Test(look_opens, of_one_rank)
{
    check_ranks(1);
}

Test(look_opens, of_4_ranks)
{
    check_ranks(4);
}

Test(look_opens, of_16_ranks)
{
    check_ranks(16);
}

Test(look_opens, of_many_ranks)
{
    check_ranks(getenv("CDDP_LONG") == NULL ? 24 : 64);
}

/* The first start writes an index. At later starts each rank opens the first
 * shard only, for what it needs from it. Opening .cddp-index does not count. */
Test(look_opens, with_an_index)
{
    io_count_begin(".h5");
    keeps_index = true;
    cr_assert_eq(ranks_threads(16, start_main, NULL), 0);
    cr_assert_geq(io_count_opens(), shards);
    for (int i = 0; i < 4; i++) {
        io_count_begin(".h5");
        cr_assert_eq(ranks_threads(16, start_main, NULL), 0);
        cr_assert_leq(io_count_opens(), 2 * 16);
    }
}

Test(look_opens, with_fewer_descriptors_than_shards)
{
    enum { LIMIT = 200, TEAM = 4 };
    const struct rlimit limit = {LIMIT, LIMIT};
    int open_files;

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    open_files = hdf5io_descriptor_share(2 * TEAM);
    cr_assert_eq(open_files, LIMIT / 2 / (2 * TEAM));
    cr_assert_eq(ranks_threads(TEAM, start_main, &open_files), 0);
}
