/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/dataset_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "hdf5io/dataset_impl.h"
#include "hdf5io/descriptor.h"

void hdf5io_dataset_stage_files(const hdf5io_dataset_t *dataset,
                                stage_file_t *files)
{
    for (int i = 0; i < dataset->count; i++) {
        catalogue_facts_t facts;
        const bool known = hdf5io_catalogue_get(dataset->catalogue, i, &facts);

        check(known, "nothing is known of shard %d", i);
        files[i] =
            (stage_file_t){.path = hdf5io_catalogue_path(dataset->catalogue, i),
                           .bytes = facts.bytes,
                           .changed = facts.changed,
                           .inode = facts.inode,
                           .wanted = known && facts.rows > 0};
        for (int k = 0; k < dataset->field_count && files[i].wanted; k++)
            files[i].wanted = !facts.columns[k].linked;
    }
}

void hdf5io_dataset_stage(hdf5io_dataset_t *dataset, hdf5io_stage_t *stage,
                          int first)
{
    check(dataset->mpi == NULL, "copies are read with MPI-IO");
    dataset->stage = stage;
    dataset->stage_first = first;
}

static int copy_index(const hdf5io_dataset_t *dataset,
                      const hdf5io_shard_t *shard)
{
    return dataset->stage_first + (int)(shard - dataset->shards);
}

bool hdf5io_dataset_copy_due(const hdf5io_dataset_t *dataset,
                             const hdf5io_shard_t *shard)
{
    return dataset->stage != NULL && !shard->copied && !shard->copy_bad &&
           hdf5io_stage_there(dataset->stage, copy_index(dataset, shard));
}

/* Never use the copy of [shard] again. The log says so for the first such copy
 * of the dataset. */
static void copy_refuse(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                        const char *why)
{
    if (!dataset->stage_told)
        log_warn("hdf5io",
                 "the copy of %s in %s cannot be used (%s): a file whose copy "
                 "cannot be used is read from its own place again",
                 shard->path, hdf5io_stage_dir(dataset->stage), why);
    shard->copy_bad = true;
    dataset->stage_told = true;
}

/* Open the copy as a plain file. -1: the copy cannot be used now; it will be
 * tried again only if descriptors or memory were scarce. */
static int copy_descriptor(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    const int fd =
        hdf5io_stage_descriptor(dataset->stage, copy_index(dataset, shard));

    /* Descriptors may be free later. */
    if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
        copy_refuse(dataset, shard, strerror(errno));
    return fd;
}

/* Open the copy through HDF5. */
static bool copy_open_h5(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    char *name = hdf5io_stage_name(dataset->stage, copy_index(dataset, shard));
    hdf5io_shard_t now;
    err_t err = ERR_INIT;

    hdf5io_shard_init(&now);
    if (hdf5io_shard_open(&dataset->how, name,
                          hdf5io_dataset_owner(dataset, shard, 0), &now,
                          &err) != ERR_OK) {
        /* Descriptors may be free later. */
        if (err.code != ERR_UNAVAILABLE)
            copy_refuse(dataset, shard, err.text);
    } else if (now.rows != shard->rows || now.bytes != shard->bytes) {
        copy_refuse(dataset, shard, "it holds other samples");
    } else {
        hdf5io_shard_adopt(shard, &now);
        shard->copy = name;
        name = NULL;
    }
    hdf5io_shard_rest(&now);
    free(name);
    return shard->open;
}

bool hdf5io_dataset_copy_open(hdf5io_dataset_t *dataset,
                              const catalogue_facts_t *facts,
                              hdf5io_shard_t *shard)
{
    int fd;

    if (!hdf5io_dataset_copy_due(dataset, shard))
        return false;
    fd = copy_descriptor(dataset, shard);
    if (fd < 0)
        return false;
    if (!hdf5io_shard_reopen(&dataset->how, facts, fd, shard)) {
        close(fd);
        copy_open_h5(dataset, shard);
    }
    shard->copied = shard->open;
    return shard->open;
}

/* Read the open shard from [fd] from now on. */
static bool shard_point(hdf5io_shard_t *shard, int fd)
{
    check(shard->open && shard->fd >= 0 && shard->file < 0,
          "%s gets another descriptor than %d", shard->path, shard->fd);
    return dup3(fd, shard->fd, O_CLOEXEC) == shard->fd;
}

void hdf5io_dataset_copy_take(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard)
{
    const int fd = copy_descriptor(dataset, shard);

    if (fd < 0)
        return;
    shard->copied = shard_point(shard, fd);
    close(fd);
}

/* Is [fd] still the file of which the catalogue has the facts? */
static bool source_is_same(const hdf5io_dataset_t *dataset,
                           const hdf5io_shard_t *shard, int fd)
{
    catalogue_facts_t facts;
    struct stat status;

    return fstat(fd, &status) == 0 &&
           hdf5io_catalogue_get(dataset->catalogue,
                                (int)(shard - dataset->shards), &facts) &&
           hdf5io_shard_unchanged(&status, &facts);
}

void hdf5io_dataset_copy_leave(hdf5io_dataset_t *dataset, hdf5io_shard_t *shard,
                               const err_t *err)
{
    int fd;

    copy_refuse(dataset, shard, err->text);
    /* Other threads may read the shard, so its descriptor is exchanged. A shard
     * that HDF5 reads is closed by the next try, if no thread reads it. */
    if (!shard->open || !shard->copied || shard->file >= 0)
        return;
    fd = hdf5io_descriptor_open(shard->path);
    if (fd < 0)
        return;
    if (source_is_same(dataset, shard, fd) && shard_point(shard, fd))
        shard->copied = false;
    close(fd);
}
