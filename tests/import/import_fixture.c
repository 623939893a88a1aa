/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/import_fixture.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/str.h"
#include "hdf5io/h5.h"
#include "import/copy.h"

enum { WORDS_MAX = 8 };

static char scratch[64];

void fixture_make(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/cddp-test-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

void fixture_remove(void)
{
    err_t err = ERR_INIT;

    cr_expect_eq(file_remove_tree(scratch, &err), ERR_OK, "%s", err.text);
}

char *fixture_path(const char *name)
{
    return str_printf("%s/%s", scratch, name);
}

void fixture_write(const char *name, const void *data, size_t bytes)
{
    char *path = fixture_path(name);
    err_t err = ERR_INIT;

    cr_assert_eq(file_publish(path, data, bytes, &err), ERR_OK, "%s", err.text);
    free(path);
}

void fixture_gzip(const char *name, const void *data, size_t bytes)
{
    char *path = fixture_path(name);
    gzFile file = gzopen(path, "wb");

    cr_assert_not_null(file);
    cr_assert_eq(gzwrite(file, data, (unsigned)bytes), (int)bytes);
    cr_assert_eq(gzclose(file), Z_OK);
    free(path);
}

void fixture_npy(const char *name, const char *header, const void *data,
                 size_t bytes)
{
    const size_t length = strlen(header);
    unsigned char *all = malloc(10 + length + bytes);

    cr_assert_not_null(all);
    memcpy(all, "\x93NUMPY\1\0", 8);
    all[8] = (unsigned char)(length & 255);
    all[9] = (unsigned char)(length >> 8);
    memcpy(all + 10, header, length);
    memcpy(all + 10 + length, data, bytes);
    fixture_write(name, all, 10 + length + bytes);
    free(all);
}

static char *word_place(const char *word)
{
    const char *equal = strchr(word, '=');

    if (equal == NULL)
        return fixture_path(word);
    return str_printf("%.*s=%s/%s", (int)(equal - word), word, scratch,
                      equal + 1);
}

/* Remove the shards of the previous conversion. */
static void shards_clear(void)
{
    DIR *list = opendir(scratch);
    struct dirent *entry;

    cr_assert_not_null(list);
    while ((entry = readdir(list)) != NULL)
        if (strncmp(entry->d_name, "train-", 6) == 0)
            cr_assert_eq(unlinkat(dirfd(list), entry->d_name, 0), 0);
    closedir(list);
}

static err_code_t source_copy(import_source_t *source,
                              const import_sink_config_t *with,
                              import_sink_report_t *report, err_t *err)
{
    import_sink_config_t config = *with;
    import_sink_t *sink = NULL;
    err_code_t rc;

    config.directory = scratch;
    config.name = "train";
    config.fields = source->fields;
    config.field_count = source->field_count;
    config.rows = source->rows;
    config.source = source;
    if (config.part == 0)
        shards_clear();
    rc = import_sink_open(&config, &sink, err);
    if (rc == ERR_OK)
        rc = import_copy(source, sink, err);
    if (rc == ERR_OK)
        rc = import_sink_finish(sink, report, err);
    import_sink_close(sink);
    return rc;
}

err_code_t fixture_convert(const char *kind, const char *const *words,
                           const import_config_t *config,
                           const import_sink_config_t *with,
                           import_sink_report_t *report, err_t *err)
{
    const import_kind_t *of = import_kind_find(kind);
    import_config_t own = *config;
    import_source_t *source = NULL;
    char *placed[WORDS_MAX];
    err_code_t rc;

    cr_assert_not_null(of, "%s", kind);
    own.word_count = 0;
    own.words = (const char *const *)placed;
    for (int i = 0; words[i] != NULL; i++) {
        cr_assert_lt(i, WORDS_MAX);
        placed[own.word_count++] = word_place(words[i]);
    }
    rc = of->open(&own, &source, err);
    if (rc == ERR_OK) {
        rc = source_copy(source, with, report, err);
        of->close(source);
    }
    for (int i = 0; i < own.word_count; i++)
        free(placed[i]);
    return rc;
}

static void no_drafts(void)
{
    DIR *list = opendir(scratch);
    struct dirent *entry;

    cr_assert_not_null(list);
    while ((entry = readdir(list)) != NULL)
        cr_expect_null(strstr(entry->d_name, ".tmp"), "%s", entry->d_name);
    closedir(list);
}

void fixture_refused(const char *kind, const char *const *words,
                     const import_config_t *config, err_code_t code,
                     const char *part, const char *other)
{
    const import_sink_config_t with = {.shards = 1};
    import_sink_report_t report;
    err_t err = ERR_INIT;

    cr_expect_eq(fixture_convert(kind, words, config, &with, &report, &err),
                 code, "%s %s: status %d: %s", kind, words[0], err.code,
                 err.text);
    cr_expect_not_null(strstr(err.text, part), "no \"%s\" in: %s", part,
                       err.text);
    cr_expect_not_null(strstr(err.text, other), "no \"%s\" in: %s", other,
                       err.text);
    no_drafts();
}

int fixture_read(const char *name, const char *set, double *out, int room)
{
    char *path = fixture_path(name);
    hid_t file, data, space;
    hssize_t count;

    h5_lock();
    file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    cr_assert(file >= 0, "%s", path);
    data = H5Dopen2(file, set, H5P_DEFAULT);
    cr_assert(data >= 0, "%s", set);
    space = H5Dget_space(data);
    count = H5Sget_simple_extent_npoints(space);
    cr_assert(count <= room, "%lld", (long long)count);
    cr_assert(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      out) >= 0);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
    h5_unlock();
    free(path);
    return (int)count;
}
