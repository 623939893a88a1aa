/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Two hundred bits flipped in every kind of file, one at a time, at places that
 * are the same in every run. No flip may end the process; each one has a status
 * and a sentence (tests/fuzz/fuzz.h). Whatever a hash covers is found.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/ckpt_fixture.h"

#define FLIPS 200

/* Flip bit number [i] of the [bytes] at [data]; twice is none. */
static void flip(uint8_t *data, size_t bytes, int i)
{
    const uint64_t where = hash_bytes(&i, sizeof i);

    data[(where >> 3) % bytes] ^= (uint8_t)(1 << (where & 7));
}

/* How many of FLIPS flips of the file [path] the target refuses. */
static int refusals(fuzz_target_t *target, const char *path)
{
    err_t err = ERR_INIT;
    size_t bytes;
    int refused = 0;
    char *text;

    cr_assert_eq(file_read(path, &text, &bytes, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(target((uint8_t *)text, bytes), ERR_OK, "%s", path);
    for (int i = 0; i < FLIPS; i++) {
        flip((uint8_t *)text, bytes, i);
        refused += target((uint8_t *)text, bytes) != ERR_OK;
        flip((uint8_t *)text, bytes, i);
    }
    free(text);
    return refused;
}

/* A flip in a comment or in the name of a run changes nothing that matters. */
Test(flips, of_run_files, .timeout = 300)
{
    const char *srcdir = getenv("srcdir");
    char *pattern =
        str_printf("%s/examples/*.yaml", srcdir == NULL ? "." : srcdir);
    int refused = 0;
    glob_t found;

    cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "%s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        refused += refusals(fuzz_run_file, found.gl_pathv[i]);
    cr_assert_gt(refused, 10 * (int)found.gl_pathc);
    globfree(&found);
    free(pattern);
}

/* The hash at the end is made right after each flip, so what is refused is
 * refused for what the text says. */
Test(flips, of_manifests, .timeout = 300)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-0000000020/" MANIFEST_NAME, home);

    ckpt_write(home, 3, 20);
    cr_assert_gt(refusals(fuzz_manifest, path), FLIPS / 4);
    free(path);
    ckpt_home_remove(home);
}

static void rewrite(const char *path, const char *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    cr_assert_eq(fclose(file), 0);
}

/* All bytes of a checkpoint's files are under a hash. */
Test(flips, of_checkpoints_are_all_found, .timeout = 300)
{
    static const char *const names[] = {"shard-1.h5", "checkpoint.h5",
                                        MANIFEST_NAME};
    char *home = ckpt_home_make();
    char *directory = str_printf("%s/step-0000000020", home);

    ckpt_write(home, 3, 20);
    for (int f = 0; f < 3; f++) {
        char *path = str_printf("%s/%s", directory, names[f]);
        err_t err = ERR_INIT;
        size_t bytes;
        char *data;

        cr_assert_eq(file_read(path, &data, &bytes, &err), ERR_OK);
        for (int i = 0; i < FLIPS; i++) {
            flip((uint8_t *)data, bytes, i);
            rewrite(path, data, bytes);
            cr_expect_eq(hdf5io_checkpoint_verify(directory, NULL, &err),
                         ERR_DATA, "flip %d of %s", i, names[f]);
            flip((uint8_t *)data, bytes, i);
        }
        rewrite(path, data, bytes);
        free(data);
        free(path);
    }
    cr_assert_eq(hdf5io_checkpoint_verify(directory, NULL, NULL), ERR_OK);
    free(directory);
    ckpt_home_remove(home);
}
