/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * How the files of a checkpoint get to storage: their space is reserved before
 * the first byte, they are written from front to back, and their hashes are
 * those of the bytes that are there.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_manifest.h"

#define RANKS 2
#define SEED 20

/* What the calls of one rank have done to its newest file. */
typedef struct storage {
    int error; /* of each reserve; 0: it works */
    bool half; /* writes are short */
    off_t reserved, at, pushed, bytes;
    int reserves, writes, early; /* early: writes before the first reserve */
    bool gaps, backwards; /* a write did not begin at the end of the last one */
    bool odd;             /* a push did not follow the last one, or was early */
} storage_t;

static int note_reserve(void *context, int fd, off_t bytes)
{
    storage_t *storage = context;

    storage->reserves++;
    storage->at = storage->pushed = 0;
    storage->reserved = bytes;
    if (storage->error == 0)
        return hdf5io_io_system.reserve(NULL, fd, bytes);
    errno = storage->error;
    return -1;
}

static ssize_t note_write_at(void *context, int fd, const void *bytes,
                             size_t count, off_t offset)
{
    storage_t *storage = context;

    if (storage->half && count > 1)
        count /= 2;
    storage->writes++;
    storage->early += storage->reserves == 0;
    storage->gaps |= offset > storage->at;
    storage->backwards |= offset < storage->at;
    storage->at = offset + (off_t)count;
    storage->bytes += (off_t)count;
    return hdf5io_io_system.write_at(NULL, fd, bytes, count, offset);
}

static void note_push(void *context, int fd, off_t first, off_t bytes)
{
    storage_t *storage = context;

    storage->odd |= first != storage->pushed || first + bytes > storage->at;
    storage->pushed = first + bytes;
    hdf5io_io_system.push(NULL, fd, first, bytes);
}

/* A tensor that has several bites of a file, and blocks of the default size. */
#define LARGE_ELEMS ((int64_t)5 << 20)

typedef struct plan {
    int error;
    bool large, half, together;
    storage_t storages[RANKS];
} plan_t;

static void body_write_noted(ckpt_rank_t *rank, void *context)
{
    plan_t *plan = context;
    storage_t *storage = &plan->storages[rank->votes.rank];
    hdf5io_io_t io = hdf5io_io_system;
    hdf5io_tensor_t *tensor = &rank->state.tensors[0];

    *storage = (storage_t){.error = plan->error, .half = plan->half};
    io.context = storage;
    io.reserve = note_reserve;
    io.write_at = note_write_at;
    io.push = note_push;
    rank->config.io = &io;
    rank->config.heads = plan->together ? ckpt_heads_together : NULL;
    if (plan->large) {
        rank->config.block_bytes = 0;
        tensor->ndim = 1;
        tensor->dims[0] = LARGE_ELEMS;
        free(tensor->data);
        tensor->data = malloc((size_t)LARGE_ELEMS * sizeof *tensor->data);
        for (int64_t i = 0; i < LARGE_ELEMS; i++)
            tensor->data[i] = (float)i;
    }
    ckpt_body_write(rank, NULL);
}

static ckpt_rank_t *write_noted(const char *home, plan_t *plan)
{
    return ckpt_ranks_run(home, RANKS, SEED, body_write_noted, plan);
}

/* The checkpoint has [shards] shards, and all files have the size and the hash
 * of the manifest. */
static void files_judge(const char *home, int shards)
{
    char *path = str_printf("%s/step-%010d", home, SEED);
    hdf5io_manifest_t m = {0};
    uint64_t hash, bytes;
    err_t err = ERR_INIT;

    cr_assert_eq(hdf5io_manifest_load(path, &m, &hash, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(m.file_count, shards + 1);
    for (int f = 0; f < m.file_count; f++) {
        char *file = str_printf("%s/%s", path, m.files[f].name);

        cr_assert_eq(hash_file(file, &hash, &bytes, &err), ERR_OK, "%s",
                     err.text);
        cr_expect_eq(m.files[f].hashed, f == shards || shards == RANKS);
        if (m.files[f].hashed)
            cr_expect_eq(hash, m.files[f].hash, "%s", m.files[f].name);
        cr_expect_eq(bytes, m.files[f].bytes, "%s", m.files[f].name);
        free(file);
    }
    hdf5io_manifest_free(&m);
    cr_expect_eq(hdf5io_checkpoint_verify(path, NULL, &err), ERR_OK, "%s",
                 err.text);
    free(path);
}

Test(checkpoint_space, space_is_reserved_before_the_first_byte)
{
    for (int large = 0; large < 2; large++) {
        plan_t plan = {.large = large != 0, .half = true};
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks = write_noted(home, &plan);

        for (int r = 0; r < RANKS; r++) {
            const storage_t *storage = &plan.storages[r];

            cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
            /* Rank 0 has the view, too. The manifest, which it writes last, is
             * not reserved. */
            cr_expect_eq(storage->reserves, r == 0 ? 2 : 1);
            cr_expect_eq(storage->early, 0);
            cr_expect_eq(storage->gaps, false);
            cr_expect_eq(storage->odd, false);
            cr_expect_eq(storage->backwards, r == 0);
            if (r > 0)
                cr_expect_eq(storage->at, storage->reserved);
            if (r > 0 && large != 0)
                cr_expect_gt(storage->pushed, 0);
        }
        ckpt_ranks_free(ranks, RANKS);
        files_judge(home, RANKS);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_space, file_systems_that_cannot_reserve_are_written_to)
{
    const int errors[] = {EOPNOTSUPP, ENOSYS, EINVAL};

    for (int e = 0; e < 3; e++) {
        plan_t plan = {.error = errors[e]};
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks = write_noted(home, &plan);

        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        ckpt_ranks_free(ranks, RANKS);
        files_judge(home, RANKS);
        ckpt_expect(home, RANKS, SEED);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_space, a_lack_of_space_is_known_before_the_first_byte)
{
    const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO};

    for (int e = 0; e < 4; e++) {
        plan_t plan = {.error = errors[e]};
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks;

        ckpt_write(home, RANKS, 10);
        ranks = write_noted(home, &plan);
        for (int r = 0; r < RANKS; r++) {
            const char *text = ranks[r].err.text;

            cr_assert_eq(ranks[r].code, ERR_IO, "%s", text);
            cr_expect(strstr(text, "/shard-") != NULL &&
                          strstr(text, "cannot reserve") != NULL &&
                          strstr(text, strerror(errors[e])) != NULL,
                      "%s", text);
            cr_expect_eq(plan.storages[r].writes, 0);
        }
        ckpt_ranks_free(ranks, RANKS);
        cr_expect_eq(ckpt_count(home, ""), 1);
        ckpt_expect(home, RANKS, 10);
        ckpt_home_remove(home);
    }
}

/* Two ranks write one shard: one of them reserves it, and each byte is written
 * once. */
Test(checkpoint_space, ranks_that_write_together_write_each_byte_once)
{
    for (int large = 0; large < 2; large++) {
        plan_t plan = {.large = large != 0, .together = true};
        char *home = ckpt_home_make();
        ckpt_rank_t *ranks = write_noted(home, &plan);
        off_t bytes = plan.storages[0].bytes + plan.storages[1].bytes;
        struct stat st;
        char *path;

        cr_assert_eq(ranks[0].code, ERR_OK, "%s", ranks[0].err.text);
        cr_expect_eq(plan.storages[0].reserves, 2);
        cr_expect_eq(plan.storages[1].reserves, 0);
        cr_expect_gt(plan.storages[1].bytes, 0);
        files_judge(home, 1);
        for (int f = 0; f < 3; f++) {
            const char *const names[] = {"shard-0.h5", MANIFEST_VIEW,
                                         MANIFEST_NAME};

            path = str_printf("%s/step-%010d/%s", home, SEED, names[f]);
            cr_assert_eq(stat(path, &st), 0);
            bytes -= st.st_size;
            free(path);
        }
        cr_expect_eq(bytes, 0);
        cr_expect_eq(ranks[0].info.bytes_written + ranks[1].info.bytes_written,
                     plan.storages[0].bytes + plan.storages[1].bytes);
        if (large == 0)
            for (int size = 1; size <= 3; size++)
                ckpt_expect(home, size, SEED);
        ckpt_ranks_free(ranks, RANKS);
        ckpt_home_remove(home);
    }
}
