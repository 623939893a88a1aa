/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Flips 200 bits in every kind of file, one at a time, at places that are the
 * same in every run. No flip may end the process; each gives a documented
 * status and a message (tests/fuzz/fuzz.h). Every flip in bytes covered by a
 * hash is detected.
 */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "comm/comm_table.h"
#include "conf/conf.h"
#include "fuzz/fuzz.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/ckpt_fixture.h"
#include "hdf5io/filter.h"
#include "obs/metrics.h"
#include "train/settings.h"

#define FLIPS 200

/* Flip a bit of the [bytes] bytes at [data], chosen by [i]. A second call
 * restores it. */
static void flip(uint8_t *data, size_t bytes, int i)
{
    const uint64_t where = hash_bytes(&i, sizeof i);

    data[(where >> 3) % bytes] ^= (uint8_t)(1 << (where & 7));
}

/* The path of [name] in the source tree, to be freed. */
static char *source_path(const char *name)
{
    const char *srcdir = getenv("srcdir");

    return str_printf("%s/%s", srcdir == NULL ? "." : srcdir, name);
}

/* Number of FLIPS flips of the file [path] that the target refuses. */
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

/* Not every flip is refused: one in a comment, or in the name of a run, is
 * harmless. */
Test(flips, of_run_files, .timeout = 300)
{
    char *pattern = source_path("examples/*.yaml");
    int refused = 0;
    glob_t found;

    cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "%s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        refused += refusals(fuzz_run_file, found.gl_pathv[i]);
    cr_assert_gt(refused, 10 * (int)found.gl_pathc);
    globfree(&found);
    free(pattern);
}

/* The manifest's hash is corrected after each flip, so a refusal is due to the
 * content. */
Test(flips, of_manifests, .timeout = 300)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/step-0000000020/" MANIFEST_NAME, home);

    ckpt_write(home, 3, 20);
    cr_assert_gt(refusals(fuzz_manifest, path), FLIPS / 4);
    free(path);
    ckpt_home_remove(home);
}

/* A flip in a name of the map is harmless. */
Test(flips, of_maps_of_safetensors, .timeout = 300)
{
    char *path = source_path("tests/fuzz/seeds/safetensors/three");

    cr_assert_gt(refusals(fuzz_safetensors, path), FLIPS / 2);
    free(path);
}

/* Flips in hashes, times and numbers of inodes are harmless. */
Test(flips, of_indexes, .timeout = 300)
{
    char *path = source_path("tests/fuzz/seeds/index/two");

    cr_assert_gt(refusals(fuzz_index, path), FLIPS / 4);
    free(path);
}

/* Files for cddp-data convert. Flips in their numbers are no errors. */
Test(flips, of_imports, .timeout = 300)
{
    char *pattern = source_path("tests/fuzz/seeds/import/*");
    glob_t found;

    cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "%s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        cr_assert_gt(refusals(fuzz_import, found.gl_pathv[i]), FLIPS / 8, "%s",
                     found.gl_pathv[i]);
    globfree(&found);
    free(pattern);
}

/* Stored chunks. Some flips are no error: those in bytes that are stored
 * without compression, and those that a filter without a checksum decodes to
 * other bytes. */
Test(flips, of_chunks, .timeout = 300)
{
    const struct {
        const char *name;
        bool built;
        int least; /* refusals */
    } seeds[] = {{"deflate", true, FLIPS / 2},
                 {"lzf", true, FLIPS / 8},
                 {"sum", true, FLIPS / 2},
                 {"zstd", hdf5io_filter_zstd_built(), FLIPS / 4},
                 {"blosc", hdf5io_filter_blosc_built(), FLIPS / 8}};

    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        char *name = str_printf("tests/fuzz/seeds/filter/%s", seeds[i].name);
        char *path = source_path(name);

        if (seeds[i].built)
            cr_expect_geq(refusals(fuzz_filter, path), seeds[i].least, "%s",
                          seeds[i].name);
        free(path);
        free(name);
    }
}

static void rewrite(const char *path, const char *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    cr_assert_not_null(file, "%s", path);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    cr_assert_eq(fclose(file), 0);
}

/* Hashes cover all bytes of a checkpoint's files. */
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

/* An accepted table is unchanged after it is printed and read again. */
Test(flips, of_tables, .timeout = 300)
{
    comm_table_t table, again;
    str_buf_t text = {0};
    int refused = 0;

    comm_table_default(&table);
    comm_table_print(&table, &text);
    for (int i = 0; i < FLIPS; i++) {
        err_t err = ERR_INIT;
        str_buf_t printed = {0};
        err_code_t code;

        flip((uint8_t *)text.text, text.length, i);
        code = comm_table_parse(text.text, "table", &table, &err);
        fuzz_check(code, &err, (const err_code_t[]){ERR_CONFIG, ERR_OK});
        refused += code != ERR_OK;
        if (code == ERR_OK) {
            comm_table_print(&table, &printed);
            cr_assert_eq(comm_table_parse(printed.text, "again", &again, &err),
                         ERR_OK, "flip %d: %s", i, err.text);
            cr_assert_eq(comm_table_hash(&again), comm_table_hash(&table),
                         "flip %d", i);
        }
        str_buf_free(&printed);
        flip((uint8_t *)text.text, text.length, i);
    }
    cr_assert_gt(refused, FLIPS / 4);
    str_buf_free(&text);
}

/* A resume keeps the rows up to its step: the kept rows are lines of the file,
 * in their order. */
Test(flips, of_metrics, .timeout = 300)
{
    char *home = ckpt_home_make();
    char *path = str_printf("%s/metrics.jsonl", home), *kept;
    str_buf_t text = {0};
    size_t bytes;
    int cut = 0;

    for (int step = 1; step <= 20; step++)
        str_buf_add(&text, "{\"event\": \"step\", \"step\": %d, \"loss\": 1}\n",
                    step);
    for (int i = 0; i < FLIPS; i++) {
        obs_metrics_t *metrics;
        err_t err = ERR_INIT;
        const char *from;

        flip((uint8_t *)text.text, text.length, i);
        rewrite(path, text.text, text.length);
        cr_assert_eq(obs_metrics_open(path, 10, &metrics, &err), ERR_OK,
                     "flip %d: %s", i, err.text);
        obs_metrics_close(metrics);
        cr_assert_eq(file_read(path, &kept, &bytes, &err), ERR_OK);
        from = text.text;
        for (char *line = kept; line < kept + bytes;) {
            const char *end = memchr(line, '\n', (size_t)(kept + bytes - line));
            const size_t length = (size_t)(end - line) + 1;

            from = memmem(from, (size_t)(text.text + text.length - from), line,
                          length);
            cr_assert_not_null(from, "flip %d", i);
            line += length;
        }
        cut += bytes < text.length;
        free(kept);
        flip((uint8_t *)text.text, text.length, i);
    }
    cr_assert_eq(cut, FLIPS);
    str_buf_free(&text);
    free(path);
    ckpt_home_remove(home);
}

/* config.yaml of an earlier start, which a resume compares with its own
 * settings: afterwards it holds the current settings, and other settings are
 * kept in another file. */
Test(flips, of_settings, .timeout = 300)
{
    char *run = source_path("examples/ising-mlp.yaml");
    char *home = ckpt_home_make();
    char *path = str_printf("%s/config.yaml", home), *good, *now;
    char *beside = str_printf("%s/config-1.yaml", home);
    train_config_t config = {0};
    err_t err = ERR_INIT;
    tree_t *tree = NULL;
    size_t bytes;

    cr_assert_eq(conf_read(run, &tree, &err), ERR_OK, "%s", err.text);
    cr_assert_eq(train_config_read(tree, NULL, &config, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(train_settings_keep(home, &config, 5, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_eq(file_read(path, &good, &bytes, &err), ERR_OK);
    for (int i = 0; i < FLIPS; i++) {
        flip((uint8_t *)good, bytes, i);
        rewrite(path, good, bytes);
        cr_assert_eq(train_settings_keep(home, &config, 7, &err), ERR_OK,
                     "flip %d: %s", i, err.text);
        flip((uint8_t *)good, bytes, i);
        cr_assert_eq(file_read(path, &now, NULL, &err), ERR_OK);
        cr_assert_str_eq(strchr(now, '\n'), strchr(good, '\n'), "flip %d", i);
        free(now);
        remove(beside);
    }
    free(good);
    train_config_free(&config);
    tree_free(tree);
    free(beside);
    free(path);
    free(run);
    ckpt_home_remove(home);
}
