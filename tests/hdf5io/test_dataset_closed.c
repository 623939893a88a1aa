/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The decoded chunks of shards that were closed stay in memory. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "hdf5io/dataset_tell.h"
#include "open.h"

#define ROWS 50

TestSuite(closed, .init = open_start, .fini = open_stop, .timeout = 120);

/* Replace a shard by a new file with samples from row [first] on. The new file
 * has as many bytes. */
static void shard_replace(const char *name, int64_t first)
{
    char *from = files_path(open_directory, "new"),
         *to = files_path(open_directory, name);

    open_write(open_directory, "new", FILES_CHUNKED, first, ROWS);
    cr_assert_eq(rename(from, to), 0);
    free(from);
    free(to);
}

/* The shards are read in turn, and only one is open at a time. */
Test(closed, chunks_stay_decoded_when_their_shard_is_closed)
{
    hdf5io_dataset_t *dataset;
    int64_t bytes;

    open_write_parts(open_directory, FILES_GZIP, 3, ROWS);
    open_all.config.open_files = 1;
    dataset = open_dataset(&open_all);
    cr_assert_eq(open_wrong_orders(dataset, 3 * ROWS), 0);
    bytes = hdf5io_dataset_reads(dataset).bytes;
    cr_assert_gt(bytes, 0);
    for (int turn = 1; turn < 4; turn++)
        cr_assert_eq(open_wrong_orders(dataset, 3 * ROWS), 0);
    cr_assert_eq(hdf5io_dataset_reads(dataset).bytes, bytes);
    cr_assert_eq(hdf5io_dataset_open_shards(dataset), 1);
    hdf5io_dataset_close(dataset);
}

/* There are no digests, so the dataset accepts the other numbers. */
Test(closed, chunks_of_a_shard_that_was_replaced_are_read_again)
{
    const int64_t rows[] = {0, ROWS, 0};
    const double labels[] = {open_phase(0, 0), open_phase(ROWS, 0),
                             open_phase(1, 0)};
    float input[OPEN_ELEMS];
    hdf5io_dataset_t *dataset;
    err_t err = ERR_INIT;
    int64_t target;

    cr_assert_neq(labels[0], labels[2]);
    open_write_parts(open_directory, FILES_CHUNKED, 2, ROWS);
    open_all.config.open_files = 1;
    dataset = open_dataset(&open_all);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(
            hdf5io_dataset_read(dataset, &rows[i], 1, input, &target, &err),
            ERR_OK, "%s", err.text);
        cr_expect_eq((double)target, labels[i], "read %d", i);
        if (i == 1)
            shard_replace("part-0.h5", 1);
    }
    hdf5io_dataset_close(dataset);
}
