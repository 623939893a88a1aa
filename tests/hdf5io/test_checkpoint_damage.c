/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Every kind of damage to every file of a checkpoint: reading falls back to the
 * previous checkpoint. If there is none, the error names the damage. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "lib/facts.h"

#define NEWEST "step-0000000020"

typedef enum damage { FLIP, TRUNCATE, EXTEND, EMPTY, DELETE, DAMAGES } damage_t;

/* Apply the damage; flips are at byte [at]. */
static void damage_do(const char *path, damage_t damage, off_t at)
{
    int fd = open(path, O_RDWR);
    struct stat st;
    char byte;

    cr_assert_geq(fd, 0, "%s", path);
    cr_assert_eq(fstat(fd, &st), 0);
    switch (damage) {
    case FLIP:
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
        break;
    case TRUNCATE:
        cr_assert_eq(ftruncate(fd, st.st_size - 1), 0);
        break;
    case EXTEND:
        cr_assert_eq(ftruncate(fd, st.st_size + 1), 0);
        break;
    case EMPTY:
        cr_assert_eq(ftruncate(fd, 0), 0);
        break;
    default:
        cr_assert_eq(unlink(path), 0);
    }
    close(fd);
}

static const char *const files[] = {"shard-0.h5", "shard-1.h5", "shard-2.h5",
                                    "checkpoint.h5", "MANIFEST.json"};
#define FILES (int)(sizeof files / sizeof *files)

/* Read with 2 ranks; all must fail with ERR_DATA and a message that contains
 * [file]. */
static void expect_damaged(const char *home, const char *path, const char *file)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, 2, 20, ckpt_body_read, (void *)path);

    for (int r = 0; r < 2; r++) {
        cr_assert_eq(ranks[r].code, ERR_DATA, "%s", file);
        cr_assert(strstr(ranks[r].err.text, file), "%s: %s", file,
                  ranks[r].err.text);
        if (path == NULL)
            cr_assert(strstr(ranks[r].err.text, "--fresh"));
    }
    ckpt_ranks_free(ranks, 2);
}

Test(checkpoint_damage, any_damage_to_any_file_is_found)
{
    for (int f = 0; f < FILES; f++)
        for (int d = 0; d < DAMAGES; d++) {
            char *home = ckpt_home_make();
            char *newest = str_printf("%s/" NEWEST, home);
            char *path = str_printf("%s/%s", newest, files[f]);
            err_t err = ERR_INIT;

            ckpt_write(home, 2, 10);
            ckpt_write(home, 3, 20);
            ckpt_expect(home, 2, 20);
            damage_do(path, (damage_t)d, 300);
            ckpt_expect(home, 2, 10);
            expect_damaged(home, newest, files[f]);
            cr_assert_eq(hdf5io_checkpoint_verify(newest, NULL, &err),
                         ERR_DATA);
            cr_assert(strstr(err.text, files[f]), "%s", err.text);
            free(path);
            free(newest);
            ckpt_home_remove(home);
        }
}

/* A sparse file larger than memory: it must not be read. */
Test(checkpoint_damage, a_manifest_without_bounds_is_not_read)
{
    char *home = ckpt_home_make();
    char *newest = str_printf("%s/" NEWEST, home);
    char *path = str_printf("%s/MANIFEST.json", newest);
    err_t err = ERR_INIT;

    ckpt_write(home, 2, 20);
    cr_assert_eq(truncate(path, (off_t)1 << 40), 0);
    cr_assert_eq(hdf5io_checkpoint_verify(newest, NULL, &err), ERR_DATA);
    cr_assert(strstr(err.text, "it is no manifest"), "%s", err.text);
    free(path);
    free(newest);
    ckpt_home_remove(home);
}

Test(checkpoint_damage, every_byte_of_the_manifest_counts)
{
    char *home = ckpt_home_make();
    char *newest = str_printf("%s/" NEWEST, home);
    char *path = str_printf("%s/MANIFEST.json", newest);
    struct stat st;

    ckpt_write(home, 3, 20);
    cr_assert_eq(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at++) {
        damage_do(path, FLIP, at);
        cr_assert_eq(hdf5io_checkpoint_verify(newest, NULL, NULL), ERR_DATA,
                     "byte %ld", (long)at);
        damage_do(path, FLIP, at);
    }
    cr_assert_eq(hdf5io_checkpoint_verify(newest, NULL, NULL), ERR_OK);
    free(path);
    free(newest);
    ckpt_home_remove(home);
}

Test(checkpoint_damage, all_damaged_stops_and_lists_them)
{
    char *home = ckpt_home_make();
    char *a = str_printf("%s/step-0000000010/shard-0.h5", home);
    char *b = str_printf("%s/" NEWEST "/checkpoint.h5", home);

    ckpt_write(home, 2, 10);
    ckpt_write(home, 2, 20);
    damage_do(a, FLIP, 2000);
    damage_do(b, DELETE, 0);
    expect_damaged(home, NULL, a);
    expect_damaged(home, NULL, b);
    free(a);
    free(b);
    ckpt_home_remove(home);
}

/* The last warning of rank 0, which alone warns. */
static char warning[600];

static void warning_take(void *context, log_level_t level, int rank,
                         const char *module, const char *text)
{
    (void)context;
    (void)rank;
    (void)module;
    if (level == LOG_WARN)
        snprintf(warning, sizeof warning, "%s", text);
}

Test(checkpoint_damage, training_goes_on_after_a_fall_back)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/" NEWEST "/shard-1.h5", home);

    ckpt_write(home, 2, 10);
    ckpt_write(home, 2, 20);
    damage_do(path, FLIP, 500);
    log_level_set(LOG_WARN);
    log_sink_set(warning_take, NULL);
    ckpt_expect(home, 2, 10);
    log_sink_set(NULL, NULL);
    FACTS(warning, "a checkpoint is damaged, trying the previous: rank ", path,
          ": its content from byte 0 on, block 0 of ", ", has the hash ",
          ", so it is damaged");
    ckpt_write(home, 2, 15);
    ckpt_expect(home, 2, 15);
    ckpt_write(home, 2, 20);
    ckpt_expect(home, 2, 20);
    free(path);
    ckpt_home_remove(home);
}

/* Read [path], or the newest one, with 3 ranks: all end with 78 and the same
 * sentence, which names [manifest], [what] and what the user can do. */
static void expect_later(const char *home, const char *path,
                         const char *manifest, const char *what)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, 3, 20, ckpt_body_read, (void *)path);

    for (int r = 0; r < 3; r++) {
        cr_expect_eq(ranks[r].code, ERR_CONFIG, "rank %d: %s", r,
                     ranks[r].err.text);
        cr_expect_str_eq(ranks[r].err.text, ranks[0].err.text);
        FACTS(ranks[r].err.text, "rank 0 on ", manifest, what, "--resume PATH");
    }
    ckpt_ranks_free(ranks, 3);
}

/* A checkpoint that a later version of cddp wrote is not damaged. No rank
 * continues with an older checkpoint, as the next save could then replace the
 * newer one. What an interrupted save of the later version left is not deleted.
 */
Test(checkpoint_damage, what_a_later_version_wrote_is_not_passed_over)
{
    static const char *const edits[][3] = {
        {"\"version\": 2", "\"version\": 3", "version 3, this cddp reads"},
        {"\"step\"", "\"requires\": [\"zstd\"], \"step\"",
         "it requires \"zstd\" of its reader"},
        {"\"type\": \"float32\"", "\"type\": \"bfloat16\"", "only float32"}};
    static const char *const names[] = {NEWEST,
                                        ".tmp-" NEWEST "-00000000000000aa"};

    for (int i = 0; i < 6; i++) {
        const char *const *edit = edits[i / 2];
        char *home = ckpt_home_make();
        char *newest = str_printf("%s/" NEWEST, home);
        char *path = str_printf("%s/%s", home, names[i % 2]);
        char *manifest = str_printf("%s/MANIFEST.json: ", path);
        char *older = str_printf("%s/step-0000000010", home);
        ckpt_rank_t *ranks;

        ckpt_write(home, 2, 10);
        ckpt_write(home, 2, 20);
        ckpt_manifest_edit(newest, edit[0], edit[1]);
        cr_assert_eq(rename(newest, path), 0);
        expect_later(home, NULL, manifest, edit[2]);
        expect_later(home, path, manifest, edit[2]);
        ranks = ckpt_ranks_run(home, 2, 30, ckpt_body_write, NULL);
        cr_expect_eq(ranks[1].code, i % 2 == 0 ? ERR_OK : ERR_CONFIG);
        ckpt_ranks_free(ranks, 2);
        cr_expect_eq(ckpt_count(home, names[i % 2]), 1);
        ranks = ckpt_ranks_run(home, 2, 10, ckpt_body_read, older);
        cr_expect_eq(ranks[1].code, ERR_OK, "%s", ranks[1].err.text);
        ckpt_ranks_free(ranks, 2);
        free(older);
        free(manifest);
        free(path);
        free(newest);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_damage, a_file_in_place_of_the_directory_is_passed_over)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/" NEWEST, home);
    int fd;

    ckpt_write(home, 2, 10);
    fd = open(path, O_CREAT | O_WRONLY, 0666);
    cr_assert_geq(fd, 0);
    close(fd);
    ckpt_expect(home, 2, 10);
    free(path);
    ckpt_home_remove(home);
}

/* Rank 1 sees another directory under the same name. */
static void body_read_elsewhere(ckpt_rank_t *rank, void *context)
{
    if (rank->votes.rank == 1)
        rank->config.directory = context;
    ckpt_body_read(rank, NULL);
}

Test(checkpoint_damage, ranks_that_see_different_files_refuse)
{
    char *home = ckpt_home_make(), *other = ckpt_home_make();
    ckpt_rank_t *ranks;

    ckpt_write(home, 2, 20);
    ckpt_write(other, 3, 20);
    ranks = ckpt_ranks_run(home, 2, 20, body_read_elsewhere, other);
    for (int r = 0; r < 2; r++) {
        cr_assert_eq(ranks[r].code, ERR_DATA);
        cr_assert(strstr(ranks[r].err.text, "rank 1 on "), "%s",
                  ranks[r].err.text);
        cr_assert(strstr(ranks[r].err.text, other), "%s", ranks[r].err.text);
    }
    ckpt_ranks_free(ranks, 2);
    ckpt_home_remove(other);
    ckpt_home_remove(home);
}
