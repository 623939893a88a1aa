/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* All ranks together read each byte of a checkpoint once, and each file is
 * opened once by each rank that reads from it. Damage ends the reading in the
 * turn in which it is found. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_manifest.h"
#include "lib/io_count.h"

#define WRITERS 5
#define FILES (WRITERS + 1) /* the shards and the view */

static const int readers[] = {1, 4, 16, 64};
#define READERS (sizeof readers / sizeof *readers)

/* Bytes of the files of step [step], without its manifest. */
static long stored(const char *home, int64_t step)
{
    char *path = str_printf("%s/step-%010d", home, (int)step);
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    long bytes = 0;

    cr_assert_eq(hdf5io_manifest_load(path, &m, &hash, NULL), ERR_OK);
    for (int f = 0; f < m.file_count; f++)
        bytes += (long)m.files[f].bytes;
    hdf5io_manifest_free(&m);
    free(path);
    return bytes;
}

static char *home_make(ckpt_body_t write)
{
    char *home = ckpt_home_make();
    const int64_t steps[] = {10, 20};

    for (int i = 0; i < 2; i++) {
        ckpt_rank_t *ranks =
            ckpt_ranks_run(home, WRITERS, steps[i], write, NULL);

        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        ckpt_ranks_free(ranks, WRITERS);
    }
    return home;
}

static void counts_check(ckpt_body_t write, const char *what)
{
    char *home = home_make(write);
    const long bytes = stored(home, 20);

    for (size_t i = 0; i < READERS; i++) {
        io_count_begin(".h5");
        ckpt_expect(home, readers[i], 20);
        printf("%s, %d ranks: %ld bytes of %ld, %ld opens of %d files\n", what,
               readers[i], io_count_bytes(), bytes, io_count_opens(), FILES);
        cr_expect_eq(io_count_bytes(), bytes, "%d ranks", readers[i]);
        cr_expect_lt(io_count_opens(), FILES + readers[i]);
        io_count_begin(".json");
        ckpt_expect(home, readers[i], 20);
        cr_expect_eq(io_count_opens(), 1, "%d ranks", readers[i]);
    }
    io_count_begin(NULL);
    ckpt_home_remove(home);
}

Test(checkpoint_load, each_byte_is_read_once)
{
    counts_check(ckpt_body_write, "manifest 2");
}

/* Manifest 1 has hashes of whole files only, so each file is read by one rank.
 */
Test(checkpoint_load, of_the_old_manifest_too)
{
    counts_check(ckpt_body_write_old, "manifest 1");
}

/* Ranks that can read memory of each other send no tensors. */
Test(checkpoint_load, by_ranks_of_one_process)
{
    ckpt_together = true;
    counts_check(ckpt_body_write, "one process");
}

static void byte_flip(const char *path, off_t at)
{
    const int fd = open(path, O_RDWR);
    char byte;

    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* The first block that a rank reads is damaged: before all ranks turn to the
 * older checkpoint, each rank has read at most one block in vain. */
static void damage_check(void)
{
    char *home = home_make(ckpt_body_write);
    char *path = str_printf("%s/step-0000000020/shard-0.h5", home);
    const long bytes = stored(home, 10);

    byte_flip(path, 7);
    for (size_t i = 0; i < READERS; i++) {
        io_count_begin(".h5");
        ckpt_expect(home, readers[i], 10);
        cr_expect_gt(io_count_bytes(), bytes);
        cr_expect_leq(io_count_bytes(), bytes + (long)readers[i] * CKPT_BLOCK,
                      "%d ranks", readers[i]);
    }
    io_count_begin(NULL);
    free(path);
    ckpt_home_remove(home);
}

Test(checkpoint_load, a_damaged_block_costs_a_block)
{
    damage_check();
    ckpt_together = true;
    damage_check();
}

/* ---- tensors larger than what is read at a time -------------------------- */

#define LARGE 6
static const int64_t sizes[LARGE] = {3, 150001, 1, 70000, 17, 40013};

typedef struct large {
    bool write;
    uint64_t block, window; /* 0: the default */
} large_t;

static float *filled(int64_t count, float first)
{
    float *data = calloc((size_t)count, sizeof *data);

    for (int64_t i = 0; data != NULL && i < count; i++)
        data[i] = first + (float)i;
    return data;
}

/* Write the tensors, or read and compare them; code ERR_DATA: they differ. */
static void body_large(ckpt_rank_t *rank, void *context)
{
    static const char *const names[LARGE] = {"model/a", "model/b", "model/c",
                                             "model/d", "model/e", "model/f"};
    const large_t *large = context;
    hdf5io_tensor_t tensors[LARGE];
    float *want[LARGE];

    rank->config.block_bytes = large->block;
    rank->config.window_bytes = large->window;
    for (int i = 0; i < LARGE; i++) {
        want[i] = filled(sizes[i], (float)i);
        tensors[i] = (hdf5io_tensor_t){
            .name = names[i],
            .ndim = 1,
            .dims = {sizes[i]},
            .data = large->write ? want[i] : calloc((size_t)sizes[i], 4)};
    }
    if (large->write)
        rank->code =
            hdf5io_checkpoint_write(&rank->config, &rank->state.progress,
                                    tensors, LARGE, NULL, &rank->err);
    else
        rank->code = hdf5io_checkpoint_read(&rank->config, NULL, tensors, LARGE,
                                            &rank->found, NULL, &rank->err);
    for (int i = 0; i < LARGE; i++) {
        if (rank->code == ERR_OK &&
            memcmp(tensors[i].data, want[i], (size_t)sizes[i] * 4) != 0)
            rank->code = err_set(&rank->err, ERR_DATA, "%s differs", names[i]);
        if (!large->write)
            free(tensors[i].data);
        free(want[i]);
    }
}

static void large_run(const char *home, int size, large_t large)
{
    ckpt_rank_t *ranks = ckpt_ranks_run(home, size, 20, body_large, &large);

    for (int r = 0; r < size; r++)
        cr_expect_eq(ranks[r].code, ERR_OK, "%d ranks, blocks of %d: %s", size,
                     (int)large.block, ranks[r].err.text);
    ckpt_ranks_free(ranks, size);
}

static void large_check(void)
{
    const uint64_t blocks[] = {0, 64, 100003, 1 << 16};

    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        char *home = ckpt_home_make();

        large_run(home, 2, (large_t){.write = true, .block = blocks[b]});
        for (int size = 1; size <= 3; size++)
            large_run(home, size, (large_t){.block = blocks[b]});
        /* With this window, blocks are read in slices that are shorter than
         * some tensors. */
        large_run(home, 3, (large_t){.block = blocks[b], .window = 30000});
        ckpt_home_remove(home);
    }
}

Test(checkpoint_load, large_tensors_come_to_their_place)
{
    large_check();
    ckpt_together = true;
    large_check();
}
