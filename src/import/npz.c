/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Zip files by libzip, which also compares the checksum of an array once it was
 * read to its end. */
#include "import/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/columns.h"

#define ENDING ".npy"

/* An array that is read. */
typedef struct member {
    char *path; /* FILE:ARRAY */
    zip_t *archive;
    zip_file_t *file;
} member_t;

/* Set what went wrong with [path], as [error] says; [what] leads to it. */
static err_code_t zip_fail(const char *path, const char *what,
                           zip_error_t *error, err_t *err)
{
    const int system = zip_error_system_type(error);
    const int code = zip_error_code_zip(error);
    err_code_t rc = ERR_DATA;

    if (code == ZIP_ER_MEMORY)
        rc = ERR_MEMORY;
    else if (system == ZIP_ET_SYS)
        rc = ERR_IO;
    return err_set(err, rc, "%s: %s (libzip: %s)", path, what,
                   zip_error_strerror(error));
}

static err_code_t archive_open(const char *path, zip_t **out, err_t *err)
{
    int fd = -1, fault = 0;
    zip_error_t error;
    err_code_t rc = file_open_regular(path, O_RDONLY, FILE_LINKS, &fd, err);

    if (rc != ERR_OK)
        return rc;
    *out = zip_fdopen(fd, 0, &fault);
    if (*out != NULL)
        return ERR_OK;
    close(fd);
    zip_error_init_with_code(&error, fault);
    rc = zip_fail(path, "this is no .npz file, or a damaged one", &error, err);
    zip_error_fini(&error);
    return rc;
}

/* ---- one array ----------------------------------------------------------- */

static void member_close(void *state)
{
    member_t *self = state;

    if (self->file != NULL)
        zip_fclose(self->file);
    if (self->archive != NULL)
        zip_discard(self->archive);
    free(self->path);
    mem_free(self);
}

static err_code_t member_read(void *state, void *out, size_t bytes, size_t *got,
                              err_t *err)
{
    member_t *self = state;
    zip_int64_t piece = 1;

    for (*got = 0; *got < bytes && piece > 0; *got += (size_t)piece) {
        piece = zip_fread(self->file, (char *)out + *got, bytes - *got);
        if (piece < 0)
            return zip_fail(self->path, "this array is damaged or cut",
                            zip_file_get_error(self->file), err);
    }
    return ERR_OK;
}

/* Open the array [name] of self->archive; *size: its bytes. */
static err_code_t member_find(member_t *self, const char *name, int64_t *size,
                              err_t *err)
{
    char *full = str_printf("%s" ENDING, name);
    const zip_int64_t index = zip_name_locate(self->archive, full, 0);
    zip_stat_t status;

    free(full);
    if (index < 0)
        return err_set(err, ERR_DATA, "%s: there is no array with this name",
                       self->path);
    if (zip_stat_index(self->archive, (zip_uint64_t)index, 0, &status) == 0)
        self->file = zip_fopen_index(self->archive, (zip_uint64_t)index, 0);
    if (self->file == NULL)
        return zip_fail(self->path, "this array cannot be read",
                        zip_get_error(self->archive), err);
    if ((status.valid & ZIP_STAT_SIZE) == 0 || status.size > INT64_MAX)
        return err_set(err, ERR_DATA, "%s: its size is not known", self->path);
    *size = (int64_t)status.size;
    return ERR_OK;
}

/* Open [path], FILE:ARRAY. */
static err_code_t member_open(const char *path, import_stream_t **out,
                              err_t *err)
{
    const char *colon = strrchr(path, ':');
    const import_tap_t tap = {.read = member_read, .close = member_close};
    int64_t size = 0;
    char *file;
    member_t *self;
    err_code_t rc;

    if (colon == NULL || colon == path || colon[1] == '\0')
        return err_set(err, ERR_USAGE,
                       "expected NAME=FILE:ARRAY, such as image=%s:x_train, "
                       "found \"%s\"",
                       colon == NULL ? path : "FILE", path);
    rc = mem_new(member_t, 1, "a stream", &self, err);
    if (rc != ERR_OK)
        return rc;
    self->path = str_dup(path);
    file = str_printf("%.*s", (int)(colon - path), path);
    rc = archive_open(file, &self->archive, err);
    free(file);
    if (rc == ERR_OK)
        rc = member_find(self, colon + 1, &size, err);
    if (rc == ERR_OK)
        return import_stream_wrap(path, size, &tap, self, out, err);
    member_close(self);
    return rc;
}

/* ---- all arrays of a file ------------------------------------------------ */

static err_code_t arrays_list(const char *path, import_word_take_t *take,
                              void *context, err_t *err)
{
    zip_t *archive = NULL;
    zip_int64_t count;
    int found = 0;
    err_code_t rc = archive_open(path, &archive, err);

    if (rc != ERR_OK)
        return rc;
    count = zip_get_num_entries(archive, 0);
    for (zip_int64_t i = 0; i < count && rc == ERR_OK; i++) {
        const char *name = zip_get_name(archive, (zip_uint64_t)i, 0);
        const size_t length = name == NULL ? 0 : strlen(name);
        const size_t end = sizeof ENDING - 1;
        char *word;

        if (length <= end || strcmp(name + length - end, ENDING) != 0)
            continue;
        word = str_printf("%.*s=%s:%.*s", (int)(length - end), name, path,
                          (int)(length - end), name);
        found++;
        rc = take(context, word, err);
    }
    zip_discard(archive);
    if (rc == ERR_OK && found == 0)
        rc = err_set(err, ERR_DATA, "%s: there is no array in it", path);
    return rc;
}

err_code_t import_npz_open(const import_kind_t *kind,
                           const import_config_t *config, import_source_t **out,
                           err_t *err)
{
    static const import_columns_how_t how = {.header = import_npy_header,
                                             .open = member_open,
                                             .expand = arrays_list};

    return import_columns_open(kind, &how, config, out, err);
}
