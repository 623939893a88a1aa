/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/data_target.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/data_info.h"
#include "cmd/data_shard.h"

err_code_t cmd_target_take(cmd_target_t *target, int option, const char *text,
                           err_t *err)
{
    static const cmd_number_t shards = {"--shards", "shards", 1,
                                        IMPORT_SHARDS_MAX};
    static const cmd_number_t gzip = {"--gzip", "the level of compression", 1,
                                      IMPORT_GZIP_MAX};
    static const cmd_number_t chunk = {"--chunk", "KiB", 1, 1 << 20};

    switch (option) {
    case CMD_TARGET_OUTPUT:
        target->directory = text;
        return ERR_OK;
    case CMD_TARGET_NAME:
        target->name = text;
        return ERR_OK;
    case CMD_TARGET_SHARDS:
        return cmd_number_take(&shards, text, &target->shards, err);
    case CMD_TARGET_GZIP:
        return cmd_number_take(&gzip, text, &target->gzip, err);
    case CMD_TARGET_CHUNK:
        return cmd_number_take(&chunk, text, &target->chunk, err);
    default:
        target->force = true;
        return ERR_OK;
    }
}

err_code_t cmd_target_check(const cmd_target_t *target, const char *command,
                            err_t *err)
{
    import_field_t name;

    if (target->directory == NULL)
        return err_set(err, ERR_USAGE,
                       "%s: -o DIR is missing; try cddp-data --help", command);
    if (import_field_call(&name, target->name, err) != ERR_OK)
        return err_set(err, ERR_USAGE,
                       "--name: expected letters, digits, '_', '-' or '.', "
                       "found \"%s\"",
                       target->name);
    return ERR_OK;
}

err_code_t cmd_target_open(cmd_target_t *target, import_source_t *source,
                           int64_t rows, import_sink_t **out, err_t *err)
{
    const import_sink_config_t config = {
        .directory = target->directory,
        .name = target->name,
        .fields = source->fields,
        .field_count = source->field_count,
        .rows = rows,
        .shards = target->shards,
        .part = target->part,
        .parts = target->parts,
        .gzip = target->gzip,
        .chunk = (int64_t)target->chunk * 1024,
        .source = source,
        .tell = target->parts > 1 ? NULL : cmd_progress_tell,
        .context = &target->progress};
    import_sink_t *sink = NULL;
    err_code_t rc = import_sink_open(&config, &sink, err);

    if (rc == ERR_OK)
        rc = file_make_dirs(target->directory, err);
    if (rc == ERR_OK && target->part == 0)
        rc = cmd_shards_clear(target->directory, target->name, target->force,
                              err);
    cmd_progress_begin(&target->progress, target->name, rows);
    if (rc == ERR_OK)
        *out = sink;
    else
        import_sink_close(sink);
    return rc;
}

/* Is the file [path] in [directory], with the name of one of its shards? */
static bool shard_of(const char *path, const char *directory, const char *name)
{
    char *file = realpath(path, NULL), *base;
    char *pattern = str_printf("%s-*.h5", name);
    bool is = false;

    base = file == NULL ? NULL : strrchr(file, '/');
    if (base != NULL) {
        *base = '\0';
        is = strcmp(*file == '\0' ? "/" : file, directory) == 0 &&
             fnmatch(pattern, base + 1, 0) == 0;
    }
    free(pattern);
    free(file);
    return is;
}

err_code_t cmd_target_apart(const cmd_target_t *target, char *const *paths,
                            int count, err_t *err)
{
    char *directory = realpath(target->directory, NULL);
    err_code_t rc = ERR_OK;

    for (int i = 0; i < count && directory != NULL && rc == ERR_OK; i++)
        if (shard_of(paths[i], directory, target->name))
            rc = err_set(err, ERR_USAGE,
                         "%s is read, but would also be replaced: choose "
                         "another directory",
                         paths[i]);
    free(directory);
    return rc;
}

void cmd_target_print(const cmd_target_t *target, int64_t rows,
                      const import_sink_report_t *report, double seconds)
{
    char count[32], bytes[32];

    str_print("%s: %s samples of %s in %d shard%s (%s, %.1f s)\n",
              target->directory, str_count((uint64_t)rows, count, sizeof count),
              target->name, report->shards, report->shards == 1 ? "" : "s",
              str_bytes((uint64_t)report->bytes, bytes, sizeof bytes), seconds);
}

void cmd_target_fields(const import_source_t *source)
{
    for (int i = 0; i < source->field_count; i++) {
        const import_field_t *field = &source->fields[i];
        str_buf_t shape = {0};
        char type[32];

        for (int d = 0; d < field->ndim; d++)
            str_buf_add(&shape, "%s%lld", d > 0 ? ", " : "",
                        (long long)field->dims[d]);
        str_print("  /%-20s %-8s [%s]\n", field->name,
                  field->type == IMPORT_STORED
                      ? cmd_data_type_name(field->stored, type, sizeof type)
                      : import_type_name(field->type),
                  shape.text == NULL ? "" : shape.text);
        str_buf_free(&shape);
    }
}
