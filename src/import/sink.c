/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "import/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/h5.h"
#include "import/hdf.h"

#define SHARD_BYTES (INT64_C(256) << 20)
#define CHUNK_BYTES (INT64_C(1) << 20)
#define CHUNKED_SAMPLE_MOST (INT64_C(1) << 30) /* HDF5's limit is 4 GiB */

struct import_sink {
    import_sink_config_t config;
    import_field_t fields[IMPORT_FIELDS_MAX];
    char host[64];
    int64_t bytes;          /* of the complete shards */
    int begin;              /* the first shard of this part */
    int shard;              /* the one that is written, or comes next */
    int named;              /* shards [begin, named) have their names */
    int64_t first, end;     /* samples of [shard] */
    int64_t done;           /* number of the next sample, over all shards */
    int64_t last;           /* the number after that of the last sample */
    char *path, *temporary; /* of the open shard; NULL: none is open */
    hid_t file, sets[IMPORT_FIELDS_MAX];
    bool finished;
};

/* The name of shard [index]; the caller frees it. */
static char *shard_path(const import_sink_t *sink, int index)
{
    return str_printf("%s/%s-%02d.h5", sink->config.directory,
                      sink->config.name, index);
}

/* The temporary name of the shard with the name [path]; the caller frees it. */
static char *draft_path(const import_sink_t *sink, const char *path)
{
    return str_printf("%s.%s.%ld.tmp", path, sink->host, (long)getpid());
}

/* The first sample of shard [shard]. */
static int64_t shard_first(const import_sink_config_t *config, int64_t shard)
{
    return config->rows / config->shards * shard +
           config->rows % config->shards * shard / config->shards;
}

/* The first shard of part [part]. */
static int part_first(const import_sink_config_t *config, int64_t part)
{
    return (int)(config->shards * part / config->parts);
}

/* The samples of part [part]: [*first, *end). */
static void part_range(const import_sink_config_t *config, int part,
                       int64_t *first, int64_t *end)
{
    *first = shard_first(config, part_first(config, part));
    *end = shard_first(config, part_first(config, part + 1));
}

/* ---- opening ------------------------------------------------------------- */

/* How many shards of about 256 MiB the samples make. */
static int shards_suggest(const import_sink_config_t *config)
{
    double bytes = 0, count;

    for (int i = 0; i < config->field_count; i++)
        bytes += (double)import_field_bytes(&config->fields[i]);
    count = 1 + bytes * (double)config->rows / (double)SHARD_BYTES;
    if (count > (double)config->rows)
        count = (double)config->rows;
    return count < IMPORT_SHARDS_MAX ? (int)count : IMPORT_SHARDS_MAX;
}

err_code_t import_sink_open(const import_sink_config_t *config,
                            import_sink_t **out, err_t *err)
{
    const int shards =
        config->shards > 0 ? config->shards : shards_suggest(config);
    import_sink_t *sink;
    err_code_t rc;

    if (shards > config->rows)
        return err_set(err, ERR_USAGE,
                       "--shards: there are only %lld samples in %s for %d "
                       "shards",
                       (long long)config->rows, config->name, shards);
    for (int i = 0; i < config->field_count; i++)
        if ((config->gzip > 0 || config->chunk > 0) &&
            import_field_bytes(&config->fields[i]) > CHUNKED_SAMPLE_MOST)
            return err_set(err, ERR_USAGE,
                           "a sample of %s has more than 1 GiB, too much for "
                           "a chunk: leave out --gzip and --chunk",
                           config->fields[i].name);
    rc = mem_new(import_sink_t, 1, "a sink", &sink, err);
    if (rc != ERR_OK)
        return rc;
    sink->config = *config;
    sink->config.shards = shards;
    if (config->parts == 0)
        sink->config.parts = 1;
    sink->begin = part_first(&sink->config, config->part);
    sink->shard = sink->named = sink->begin;
    part_range(&sink->config, config->part, &sink->done, &sink->last);
    if (config->gzip > 0 && config->chunk == 0)
        sink->config.chunk = CHUNK_BYTES;
    memcpy(sink->fields, config->fields,
           (size_t)config->field_count * sizeof config->fields[0]);
    if (gethostname(sink->host, sizeof sink->host - 1) != 0)
        snprintf(sink->host, sizeof sink->host, "host");
    sink->file = H5I_INVALID_HID;
    for (int i = 0; i < IMPORT_FIELDS_MAX; i++)
        sink->sets[i] = H5I_INVALID_HID;
    *out = sink;
    return ERR_OK;
}

void import_sink_range(const import_sink_t *sink, int64_t *first, int64_t *end)
{
    part_range(&sink->config, sink->config.part, first, end);
}

int64_t import_sink_most(const import_sink_t *sink)
{
    int64_t most = 0;

    for (int part = 0; part < sink->config.parts; part++) {
        int64_t first, end;

        part_range(&sink->config, part, &first, &end);
        most = end - first > most ? end - first : most;
    }
    return most;
}

/* ---- one shard ----------------------------------------------------------- */

/* Samples of field [index] in a chunk of the open shard. */
static hsize_t chunk_rows(const import_sink_t *sink, int index)
{
    const int64_t each = (int64_t)import_field_bytes(&sink->fields[index]);
    const int64_t rows = sink->config.chunk / each;
    const int64_t most = sink->end - sink->first;

    return (hsize_t)(rows < 1 ? 1 : rows < most ? rows : most);
}

/* Set how the dataset is stored. HDF5 fills nothing in: every sample is
 * written. */
static bool layout_set(const import_sink_t *sink, int index, hid_t list,
                       hid_t access)
{
    const import_field_t *field = &sink->fields[index];
    hsize_t chunk[IMPORT_DIMS_MAX + 1] = {1};
    size_t bytes;
    bool good;

    if (H5Pset_obj_track_times(list, false) < 0 ||
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0)
        return false;
    if (sink->config.chunk == 0)
        return H5Pset_layout(list, H5D_CONTIGUOUS) >= 0 &&
               H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0;
    chunk[0] = chunk_rows(sink, index);
    for (int i = 0; i < field->ndim; i++)
        chunk[i + 1] = (hsize_t)field->dims[i];
    bytes = (size_t)chunk[0] * import_field_bytes(field);
    good = H5Pset_chunk(list, field->ndim + 1, chunk) >= 0 &&
           H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, 2 * bytes,
                              1.0) >= 0;
    if (good && sink->config.gzip > 0 && import_field_item(field) > 1)
        good = H5Pset_shuffle(list) >= 0;
    if (good && sink->config.gzip > 0)
        good = H5Pset_deflate(list, (unsigned)sink->config.gzip) >= 0;
    return good;
}

/* Create those groups on the way to [path] that do not exist. Groups keep no
 * times, so that the same samples give the same bytes. */
static bool groups_create(hid_t file, const char *path)
{
    const hid_t list = H5Pcreate(H5P_GROUP_CREATE);
    bool good = list >= 0 && H5Pset_obj_track_times(list, false) >= 0;
    char *copy = str_dup(path), *slash = copy;

    while (good && *slash != '\0' && (slash = strchr(slash + 1, '/')) != NULL) {
        htri_t there;
        hid_t group;

        *slash = '\0';
        there = H5Lexists(file, copy, H5P_DEFAULT);
        good = there > 0;
        if (there == 0) {
            group = H5Gcreate2(file, copy, H5P_DEFAULT, list, H5P_DEFAULT);
            good = group >= 0;
            if (good)
                H5Gclose(group);
        }
        *slash = '/';
    }
    if (list >= 0)
        H5Pclose(list);
    free(copy);
    return good;
}

/* Create dataset [index] in the open shard. */
static err_code_t set_create(import_sink_t *sink, int index, err_t *err)
{
    const import_field_t *field = &sink->fields[index];
    hsize_t dims[IMPORT_DIMS_MAX + 1] = {(hsize_t)(sink->end - sink->first)};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    hid_t type = import_hdf_type(field, false), space;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < field->ndim; i++)
        dims[i + 1] = (hsize_t)field->dims[i];
    space = H5Screate_simple(field->ndim + 1, dims, NULL);
    if (list >= 0 && access >= 0 && type >= 0 && space >= 0 &&
        groups_create(sink->file, field->name) &&
        layout_set(sink, index, list, access))
        sink->sets[index] = H5Dcreate2(sink->file, field->name, type, space,
                                       H5P_DEFAULT, list, access);
    if (sink->sets[index] < 0)
        rc = h5_err_set(err, ERR_IO, "cannot make dataset %s", field->name);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (access >= 0)
        H5Pclose(access);
    if (list >= 0)
        H5Pclose(list);
    return rc;
}

/* Create the file of the open shard and its datasets. HDF5 lock held. */
static err_code_t file_create(import_sink_t *sink, err_t *err)
{
    import_source_t *source = sink->config.source;
    hid_t access = h5_access_list();
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    err_code_t rc = ERR_OK;

    /* Attributes of more than 64 KiB, such as the names of many classes, need
     * the file format of HDF5 1.8 or later. */
    if (access >= 0 && create >= 0 &&
        H5Pset_obj_track_times(create, false) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110) >= 0)
        sink->file = H5Fcreate(sink->temporary, H5F_ACC_TRUNC, create, access);
    if (sink->file < 0)
        rc = h5_err_set(err, ERR_IO, "cannot create the file");
    for (int i = 0; i < sink->config.field_count && rc == ERR_OK; i++)
        rc = set_create(sink, i, err);
    if (rc == ERR_OK && source != NULL && source->kind->annotate != NULL)
        rc = source->kind->annotate(source, sink->file, sink->sets, err);
    if (create >= 0)
        H5Pclose(create);
    if (access >= 0)
        H5Pclose(access);
    return rc;
}

/* Close the file of the open shard; HDF5 writes what it still holds. HDF5 lock
 * held. */
static err_code_t file_close(import_sink_t *sink, err_t *err)
{
    bool good = true;

    for (int i = 0; i < sink->config.field_count; i++) {
        if (sink->sets[i] >= 0)
            good = H5Dclose(sink->sets[i]) >= 0 && good;
        sink->sets[i] = H5I_INVALID_HID;
    }
    if (sink->file >= 0)
        good = H5Fclose(sink->file) >= 0 && good;
    sink->file = H5I_INVALID_HID;
    return good ? ERR_OK : h5_err_set(err, ERR_IO, "cannot write the file");
}

static err_code_t shard_begin(import_sink_t *sink, err_t *err)
{
    err_code_t rc;

    sink->first = shard_first(&sink->config, sink->shard);
    sink->end = shard_first(&sink->config, sink->shard + 1);
    sink->path = shard_path(sink, sink->shard);
    sink->temporary = draft_path(sink, sink->path);
    h5_lock();
    rc = file_create(sink, err);
    h5_unlock();
    return rc == ERR_OK ? rc : err_prefix(err, "%s", sink->path);
}

static void names_free(import_sink_t *sink)
{
    free(sink->path);
    free(sink->temporary);
    sink->path = sink->temporary = NULL;
}

/* Complete the open shard, under its temporary name. */
static err_code_t shard_end(import_sink_t *sink, err_t *err)
{
    struct stat status;
    err_code_t rc;

    h5_lock();
    rc = file_close(sink, err);
    h5_unlock();
    if (rc != ERR_OK)
        return err_prefix(err, "%s", sink->path);
    rc = file_sync(sink->temporary, err);
    if (rc != ERR_OK)
        return rc;
    if (stat(sink->temporary, &status) == 0)
        sink->bytes += status.st_size;
    names_free(sink);
    sink->shard++;
    return ERR_OK;
}

/* ---- writing ------------------------------------------------------------- */

/* Write [rows] samples of field [index] to the open shard, at sample
 * sink->done. HDF5 lock held. */
static err_code_t set_write(import_sink_t *sink, int index, int64_t rows,
                            const void *data, err_t *err)
{
    const import_field_t *field = &sink->fields[index];
    hsize_t from[IMPORT_DIMS_MAX + 1] = {(hsize_t)(sink->done - sink->first)};
    hsize_t count[IMPORT_DIMS_MAX + 1] = {(hsize_t)rows};
    hid_t space = H5Dget_space(sink->sets[index]), memory;
    hid_t type = import_hdf_type(field, true);
    err_code_t rc = ERR_OK;

    for (int i = 0; i < field->ndim; i++)
        count[i + 1] = (hsize_t)field->dims[i];
    memory = H5Screate_simple(field->ndim + 1, count, NULL);
    if (space < 0 || memory < 0 || type < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL) <
            0 ||
        H5Dwrite(sink->sets[index], type, memory, space, H5P_DEFAULT, data) < 0)
        rc = h5_err_set(err, ERR_IO, "%s: cannot write dataset %s", sink->path,
                        field->name);
    if (type >= 0)
        H5Tclose(type);
    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    return rc;
}

err_code_t import_sink_write(import_sink_t *sink, int64_t rows,
                             void *const *data, err_t *err)
{
    int64_t begun = 0; /* samples of [data] that were written */
    err_code_t rc = ERR_OK;

    check(rows <= sink->last - sink->done,
          "%lld samples are written to %s after %lld of %lld", (long long)rows,
          sink->config.name, (long long)sink->done, (long long)sink->last);
    while (begun < rows && rc == ERR_OK) {
        int64_t take;

        if (sink->path == NULL)
            rc = shard_begin(sink, err);
        take = sink->end - sink->done;
        take = take < rows - begun ? take : rows - begun;
        h5_lock();
        for (int i = 0; i < sink->config.field_count && rc == ERR_OK; i++)
            rc = set_write(sink, i, take,
                           (const char *)data[i] +
                               (size_t)begun *
                                   import_field_bytes(&sink->fields[i]),
                           err);
        h5_unlock();
        begun += take;
        sink->done += take;
        if (rc == ERR_OK && sink->done == sink->end)
            rc = shard_end(sink, err);
    }
    if (rc == ERR_OK && sink->config.tell != NULL)
        sink->config.tell(sink->config.context, sink->done);
    return rc;
}

/* Rename [from] to [to], which must not exist. False: errno. */
static bool rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* Some file systems (NFS) have no such call. */
    if (link(from, to) == 0) {
        unlink(from);
        return true;
    }
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS &&
        errno != EMLINK)
        return false;
    /* Some file systems have no hard links either. */
    if (access(to, F_OK) != 0)
        return rename(from, to) == 0;
    errno = EEXIST;
    return false;
}

/* Give shard [index] its name. */
static err_code_t shard_name(const import_sink_t *sink, int index, err_t *err)
{
    char *path = shard_path(sink, index), *draft = draft_path(sink, path);
    err_code_t rc = ERR_OK;

    if (!rename_new(draft, path))
        rc = err_set(err, ERR_IO, "%s: cannot rename %s to it: %s%s", path,
                     draft, strerror(errno),
                     errno == EEXIST ? " (does another command write there, "
                                       "too?)"
                                     : "");
    free(draft);
    free(path);
    return rc;
}

err_code_t import_sink_finish(import_sink_t *sink, import_sink_report_t *out,
                              err_t *err)
{
    err_code_t rc = ERR_OK;

    check(sink->done == sink->last, "%s has samples up to %lld, not %lld",
          sink->config.name, (long long)sink->done, (long long)sink->last);
    while (sink->named < sink->shard && rc == ERR_OK) {
        rc = shard_name(sink, sink->named, err);
        if (rc == ERR_OK)
            sink->named++;
    }
    if (rc == ERR_OK)
        rc = file_sync(sink->config.directory, err);
    sink->finished = rc == ERR_OK;
    if (rc == ERR_OK)
        *out = (import_sink_report_t){.shards = sink->shard - sink->begin,
                                      .bytes = sink->bytes};
    return rc;
}

void import_sink_revoke(import_sink_t *sink)
{
    sink->finished = false;
}

void import_sink_close(import_sink_t *sink)
{
    if (sink == NULL)
        return;
    if (sink->path != NULL) {
        h5_lock();
        file_close(sink, NULL);
        h5_unlock();
        unlink(sink->temporary);
        names_free(sink);
    }
    for (int i = sink->begin; i < sink->shard && !sink->finished; i++) {
        char *path = shard_path(sink, i), *draft = draft_path(sink, path);

        unlink(i < sink->named ? path : draft);
        free(draft);
        free(path);
    }
    mem_free(sink);
}
