/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/dataset_index.h"

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/filter.h"
#include "hdf5io/index.h"

/* A larger file is no index, and none is written. The facts of 10^6 shards take
 * some 200 MB, so an index has room for a few datasets of that size. */
#define INDEX_BYTES_MAX ((off_t)1 << 30)

/* The length of the directory in [path], with its slash. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* The name of the index, which the caller frees; NULL: the shards are in
 * several directories. */
static char *index_name(const hdf5io_dataset_t *dataset)
{
    const char *first = hdf5io_catalogue_path(dataset->catalogue, 0);
    const size_t length = directory_length(first);

    for (int i = 1; i < dataset->count; i++) {
        const char *path = hdf5io_catalogue_path(dataset->catalogue, i);

        if (directory_length(path) != length ||
            memcmp(path, first, length) != 0)
            return NULL;
    }
    return str_printf("%.*s%s", (int)length, first, INDEX_NAME);
}

/* A hash of everything on which the facts depend, except the bytes of the
 * shards: the names of the shards, the fields, and the versions of cddp and
 * HDF5. */
static uint64_t index_key(const hdf5io_dataset_t *dataset)
{
    hash_state_t *state = hash_state_open();
    /* HDF5 refuses to run with another version than that of its headers. The
     * way in which chunks are read depends on the decoders. */
    const int64_t numbers[] = {dataset->count,
                               dataset->field_count,
                               dataset->how.sequence,
                               dataset->how.whole,
                               HDF5IO_WAYS,
                               H5_VERS_MAJOR,
                               H5_VERS_MINOR,
                               H5_VERS_RELEASE,
                               hdf5io_filter_zstd_built(),
                               hdf5io_filter_blosc_built()};
    uint64_t key;

    hash_state_add(state, PACKAGE_VERSION, sizeof PACKAGE_VERSION);
    hash_state_add(state, numbers, sizeof numbers);
    for (int k = 0; k < dataset->field_count; k++) {
        const char *path = dataset->fields[k].path;

        path += path[0] == '/'; /* "x" is "/x" */
        hash_state_add(state, path, strlen(path) + 1);
    }
    for (int i = 0; i < dataset->count; i++) {
        const char *path = hdf5io_catalogue_path(dataset->catalogue, i);
        const char *name = path + directory_length(path);

        hash_state_add(state, name, strlen(name) + 1);
    }
    key = hash_state_value(state);
    hash_state_free(state);
    return key;
}

/* Read the file [name] and find its sections, which point into *data. The
 * caller frees *data. *data is NULL if there is no such file. */
static err_code_t sections_read(const char *name, char **data,
                                hdf5io_index_t *out, err_t *err)
{
    struct stat status;
    char *read = NULL;
    size_t bytes = 0;
    err_code_t rc;

    *data = NULL;
    if (stat(name, &status) != 0)
        return ERR_OK;
    if (!S_ISREG(status.st_mode) || status.st_size > INDEX_BYTES_MAX)
        return err_set(err, ERR_DATA, "it is no index");
    rc = file_read(name, &read, &bytes, err);
    if (rc == ERR_OK)
        rc = hdf5io_index_parse(read, bytes, out, err);
    if (rc == ERR_OK)
        *data = read;
    else
        free(read);
    return rc;
}

/* Make a catalogue of the section of this dataset. If there is no such section,
 * *out does not change. */
static err_code_t section_take(const hdf5io_dataset_t *dataset,
                               const hdf5io_index_t *index,
                               hdf5io_catalogue_t **out, err_t *err)
{
    const index_section_t *section =
        hdf5io_index_find(index, index_key(dataset));
    hdf5io_catalogue_t *catalogue = NULL;
    char **paths = NULL;
    err_code_t rc;

    if (section == NULL)
        return ERR_OK;
    rc =
        mem_new(char *, (size_t)dataset->count, "names of shards", &paths, err);
    for (int i = 0; i < dataset->count && rc == ERR_OK; i++)
        paths[i] =
            (char *)(uintptr_t)hdf5io_catalogue_path(dataset->catalogue, i);
    if (rc == ERR_OK)
        rc = hdf5io_catalogue_open(paths, dataset->count, dataset->field_count,
                                   &catalogue, err);
    if (rc == ERR_OK)
        rc = hdf5io_catalogue_merge(catalogue, section->packed, section->bytes,
                                    err);
    mem_free(paths);
    if (rc == ERR_OK)
        *out = catalogue;
    else
        hdf5io_catalogue_close(catalogue);
    return rc;
}

void hdf5io_dataset_index_read(hdf5io_dataset_t *dataset, bool says)
{
    char *name = dataset->mpi != NULL ? NULL : index_name(dataset);
    hdf5io_index_t index = {0};
    char *data = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = ERR_OK;

    if (name != NULL)
        rc = sections_read(name, &data, &index, &err);
    if (rc == ERR_OK && data != NULL)
        rc = section_take(dataset, &index, &dataset->index, &err);
    if (rc != ERR_OK && says)
        log_warn("data", "%s is not used: %s", name, err.text);
    free(data);
    free(name);
}

void hdf5io_dataset_index_forget(hdf5io_dataset_t *dataset)
{
    hdf5io_catalogue_close(dataset->index);
    dataset->index = NULL;
}

bool hdf5io_dataset_index_facts(const hdf5io_dataset_t *dataset, int shard,
                                catalogue_facts_t *out)
{
    const char *path = hdf5io_catalogue_path(dataset->catalogue, shard);
    catalogue_facts_t facts;
    struct stat status;

    if (dataset->index == NULL ||
        !hdf5io_catalogue_get(dataset->index, shard, &facts) ||
        (dataset->config->digest && !facts.digested))
        return false;
    for (int k = 0; k < dataset->field_count; k++)
        if (facts.columns[k].linked)
            return false;
    if (stat(path, &status) != 0 || !hdf5io_shard_unchanged(&status, &facts))
        return false;
    facts.place = hdf5io_shard_place((uint64_t)status.st_dev, facts.inode,
                                     dataset->field_count);
    *out = facts;
    return true;
}

/* Does the index that was read have the facts of all shards as they are now? */
static bool index_complete(const hdf5io_dataset_t *dataset)
{
    catalogue_facts_t now, then;

    for (int i = 0; i < dataset->count; i++)
        if (dataset->index == NULL ||
            !hdf5io_catalogue_get(dataset->catalogue, i, &now) ||
            !hdf5io_catalogue_get(dataset->index, i, &then) ||
            now.bytes != then.bytes || now.changed != then.changed ||
            now.inode != then.inode || (now.digested && !then.digested))
            return false;
    return true;
}

bool hdf5io_dataset_index_due(const hdf5io_dataset_t *dataset)
{
    bool due = dataset->mpi == NULL && dataset->count >= DATASET_INDEX_LEAST &&
               !index_complete(dataset);
    char *name = due ? index_name(dataset) : NULL;
    size_t length;

    if (name == NULL)
        return false;
    length = directory_length(name);
    name[length] = '\0';
    due = access(length == 0 ? "." : name, W_OK) == 0;
    free(name);
    return due;
}

err_code_t hdf5io_dataset_index_write(hdf5io_dataset_t *dataset, err_t *err)
{
    index_section_t section = {.key = index_key(dataset)};
    char *name = index_name(dataset), *data = NULL;
    void *packed = NULL, *bytes = NULL;
    hdf5io_index_t index = {0};
    size_t count = 0;
    err_code_t rc;

    if (name == NULL)
        return err_set(err, ERR_DATA,
                       "%s and the other shards are in several directories: "
                       "an index is for the shards of one directory",
                       hdf5io_catalogue_path(dataset->catalogue, 0));
    /* An index that cannot be read is replaced. */
    if (sections_read(name, &data, &index, NULL) != ERR_OK)
        index = (hdf5io_index_t){0};
    rc = hdf5io_catalogue_pack(dataset->catalogue, 0, 1, &packed,
                               &section.bytes, err);
    if (rc == ERR_OK) {
        section.packed = packed;
        hdf5io_index_put(&index, &section);
        hdf5io_index_shorten(&index, (size_t)INDEX_BYTES_MAX);
        if (index.count == 0)
            rc = err_set(err, ERR_DATA,
                         "%s: the facts of %d shards take %zu bytes, and an "
                         "index has at most %lld: each start opens the shards",
                         name, dataset->count, section.bytes,
                         (long long)INDEX_BYTES_MAX);
    }
    if (rc == ERR_OK)
        rc = hdf5io_index_print(&index, &bytes, &count, err);
    if (rc == ERR_OK)
        rc = file_publish(name, bytes, count, err);
    mem_free(bytes);
    mem_free(packed);
    free(data);
    free(name);
    return rc;
}
