/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The two versions of a manifest list the same files. Version 2 also has a hash
 * of each block of these files. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "hdf5io/checkpoint_blocks.h"

#define RANKS 3

/* Write the state [seed] in format 1. */
static void old_write(const char *home, int64_t seed)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(home, RANKS, seed, ckpt_body_write_old, NULL);

    for (int r = 0; r < RANKS; r++)
        cr_assert_eq(ranks[r].code, ERR_OK, "%s", ranks[r].err.text);
    ckpt_ranks_free(ranks, RANKS);
}

/* The manifest of step 20, parsed; [text] is to be freed. */
static hdf5io_manifest_t manifest_of(const char *home, char **text)
{
    char *path = str_printf("%s/step-0000000020/" MANIFEST_NAME, home);
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    size_t bytes;

    cr_assert_eq(file_read(path, text, &bytes, NULL), ERR_OK);
    cr_assert_eq(hdf5io_manifest_parse(*text, bytes, &m, &hash, NULL), ERR_OK);
    free(path);
    return m;
}

/* The content of file number [file] of step 20, to be freed. */
static char *content(const char *home, const hdf5io_manifest_t *m, int file)
{
    char *path = str_printf("%s/step-0000000020/%s", home, m->files[file].name);
    char *data;
    size_t bytes;

    cr_assert_eq(file_read(path, &data, &bytes, NULL), ERR_OK);
    cr_assert_eq(bytes, m->files[file].bytes);
    free(path);
    return data;
}

Test(checkpoint_format, files_do_not_depend_on_it)
{
    char *homes[] = {ckpt_home_make(), ckpt_home_make()};
    char *texts[2];
    hdf5io_manifest_t m[2];

    ckpt_write(homes[1], RANKS, 20);
    old_write(homes[0], 20);
    for (int i = 0; i < 2; i++) {
        m[i] = manifest_of(homes[i], &texts[i]);
        cr_expect_eq(m[i].version, i + 1);
        cr_expect_eq(strstr(texts[i], "\"block") != NULL, i == 1);
        for (int readers = 1; readers <= 4; readers++)
            ckpt_expect(homes[i], readers, 20);
    }
    cr_assert_eq(m[0].file_count, RANKS + 1);
    cr_assert_eq(m[1].file_count, RANKS + 1);
    for (int f = 0; f < RANKS; f++) {
        char *old = content(homes[0], &m[0], f);
        char *new = content(homes[1], &m[1], f);

        cr_expect_arr_eq(old, new, m[0].files[f].bytes);
        cr_expect_eq(m[0].files[f].hash, m[1].files[f].hash);
        free(old);
        free(new);
    }
    for (int i = 0; i < 2; i++) {
        hdf5io_manifest_free(&m[i]);
        free(texts[i]);
        ckpt_home_remove(homes[i]);
    }
}

Test(checkpoint_format, each_block_has_its_hash)
{
    char *home = ckpt_home_make(), *text;
    hdf5io_manifest_t m;

    ckpt_write(home, RANKS, 20);
    m = manifest_of(home, &text);
    for (int f = 0; f < m.file_count; f++) {
        char *data = content(home, &m, f);
        const size_t count = hdf5io_blocks_count(&m, f);
        const uint64_t bytes = m.files[f].bytes;

        cr_expect_gt(count, 2, "%s has several blocks", m.files[f].name);
        cr_expect_eq(count, (bytes + CKPT_BLOCK - 1) / CKPT_BLOCK);
        cr_expect_eq(m.files[f].hash, hash_bytes(data, bytes));
        for (size_t b = 0; b < count; b++) {
            const uint64_t at = b * CKPT_BLOCK, left = bytes - at;

            cr_expect_eq(
                m.files[f].blocks[b],
                hash_bytes(data + at, left < CKPT_BLOCK ? left : CKPT_BLOCK),
                "block %zu of %s", b, m.files[f].name);
        }
        free(data);
    }
    hdf5io_manifest_free(&m);
    free(text);
    ckpt_home_remove(home);
}

/* A change of any byte of any file is found. Here it is the last byte of the
 * last file. */
Test(checkpoint_format, damage_is_found_in_the_old_one_too)
{
    char *home = ckpt_home_make(), *text, *data, *path;
    hdf5io_manifest_t m;
    FILE *file;

    old_write(home, 10);
    old_write(home, 20);
    m = manifest_of(home, &text);
    data = content(home, &m, RANKS);
    data[m.files[RANKS].bytes - 1] ^= 1;
    path = str_printf("%s/step-0000000020/%s", home, m.files[RANKS].name);
    file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, m.files[RANKS].bytes, file),
                 m.files[RANKS].bytes);
    cr_assert_eq(fclose(file), 0);
    ckpt_expect(home, 2, 10);
    hdf5io_manifest_free(&m);
    free(path);
    free(data);
    free(text);
    ckpt_home_remove(home);
}

/* The hash of a whole file may be absent in version 2 only. */
Test(checkpoint_format, blocks_suffice)
{
    for (int format = 1; format <= 2; format++) {
        char *home = ckpt_home_make(), *text, *path;
        hdf5io_manifest_t m;
        err_t err = ERR_INIT;

        if (format == 1)
            old_write(home, 20);
        else
            ckpt_write(home, RANKS, 20);
        m = manifest_of(home, &text);
        cr_expect(m.files[0].hashed);
        hdf5io_manifest_free(&m);
        free(text);
        path = str_printf("%s/step-0000000020", home);
        ckpt_manifest_edit(path, "\"xxh3\"", "\"xxh\"");
        cr_expect_eq(hdf5io_checkpoint_verify(path, NULL, &err),
                     format == 1 ? ERR_DATA : ERR_OK, "%s", err.text);
        free(path);
        ckpt_home_remove(home);
    }
}

Test(checkpoint_format, a_shard_of_several_ranks_has_hashes_of_its_blocks)
{
    char *home = ckpt_home_make(), *text, *data;
    hdf5io_manifest_t m;

    ckpt_ranks_free(
        ckpt_ranks_run(home, RANKS, 20, ckpt_body_write_together, NULL), RANKS);
    m = manifest_of(home, &text);
    cr_assert_eq(m.file_count, 2);
    cr_expect_eq(m.files[0].hashed, false);
    cr_expect(m.files[1].hashed);
    cr_expect_eq(m.world_size, RANKS);
    for (int i = 0; i < m.tensor_count; i++)
        cr_expect_leq(m.tensors[i].pieces, 1, "%s", m.tensors[i].name);
    data = content(home, &m, 0);
    for (size_t b = 0; b < hdf5io_blocks_count(&m, 0); b++) {
        const uint64_t at = b * CKPT_BLOCK, left = m.files[0].bytes - at;

        cr_expect_eq(
            m.files[0].blocks[b],
            hash_bytes(data + at, left < CKPT_BLOCK ? left : CKPT_BLOCK));
    }
    free(data);
    hdf5io_manifest_free(&m);
    free(text);
    ckpt_home_remove(home);
}
