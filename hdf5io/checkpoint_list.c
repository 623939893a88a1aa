/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * checkpoint_list: lists a directory of checkpoints, and finds debris that is
 * an intact checkpoint. Where a file system cannot exchange two names, a
 * process killed between the two renames of a replacement leaves no published
 * checkpoint of that step; both intact checkpoints then have names of debris.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_load.h"
#include "hdf5io/checkpoint_read.h"

/* ---- listing ------------------------------------------------------------- */

/* The listing of a directory, with all its tries. */
typedef struct listing {
    const hdf5io_io_t *io;
    const char *directory;
    bool all; /* superseded checkpoints, too */
    hdf5io_entry_t *entries;
    int count;
} listing_t;

static const char *const prefixes[] = {[HDF5IO_PUBLISHED] = "",
                                       [HDF5IO_TMP] = ".tmp-",
                                       [HDF5IO_TRASH] = ".trash-",
                                       [HDF5IO_SUPERSEDED] = "superseded-"};

/* Parse 16 hexadecimal digits that are not all 0. */
static bool nonce_parse(const char *text, uint64_t *out)
{
    if (strspn(text, "0123456789abcdef") != 16 || text[16] != '\0')
        return false;
    *out = strtoull(text, NULL, 16);
    return *out != 0;
}

/* Parse the file name [name]; false: not a name of checkpoint_dir.h. */
static bool entry_parse(const char *name, hdf5io_entry_t *out)
{
    char text[sizeof out->name];
    const char *nonce;

    if (snprintf(out->name, sizeof out->name, "%s", name) >=
        (int)sizeof out->name)
        return false;
    out->kind = HDF5IO_PUBLISHED;
    out->nonce = 0;
    out->later = false;
    if (hdf5io_dir_step(name, &out->step))
        return true;
    for (hdf5io_kind_t kind = HDF5IO_TMP; kind <= HDF5IO_SUPERSEDED; kind++) {
        const size_t length = strlen(prefixes[kind]);

        nonce = strrchr(name, '-');
        if (strncmp(name, prefixes[kind], length) != 0 ||
            nonce < name + length || !nonce_parse(nonce + 1, &out->nonce))
            continue;
        snprintf(text, sizeof text, "%.*s", (int)(nonce - name - (long)length),
                 name + length);
        out->kind = kind;
        return hdf5io_dir_step(text, &out->step);
    }
    return false;
}

char *hdf5io_dir_entry(const char *directory, hdf5io_kind_t kind, int64_t step,
                       uint64_t nonce)
{
    return hdf5io_dir_path(directory, prefixes[kind], step,
                           kind == HDF5IO_PUBLISHED ? 0 : nonce);
}

static err_code_t listing_add(listing_t *listing, const hdf5io_entry_t *entry,
                              err_t *err)
{
    hdf5io_entry_t *more =
        realloc(listing->entries,
                (size_t)(listing->count + 1) * sizeof *listing->entries);

    if (more == NULL)
        return err_set(err, ERR_MEMORY, "%s: no memory to list it",
                       listing->directory);
    listing->entries = more;
    listing->entries[listing->count++] = *entry;
    return ERR_OK;
}

/* One try, see retry.h. A missing directory is an empty list; any other failure
 * is an error, since then nothing is known about the names. */
static err_code_t listing_attempt(void *context, int *number, err_t *err)
{
    listing_t *listing = context;
    const char *path = listing->directory;
    int fd = listing->io->open(listing->io->context, path,
                               O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    hdf5io_entry_t entry;
    struct dirent *next;
    DIR *dir = NULL;
    err_code_t rc = ERR_OK;

    listing->count = 0;
    if (fd < 0 && errno == ENOENT)
        return ERR_OK;
    if (fd >= 0)
        dir = fdopendir(fd);
    if (dir == NULL)
        goto fail;
    while (rc == ERR_OK && (errno = 0, next = readdir(dir)) != NULL)
        if (entry_parse(next->d_name, &entry) &&
            (listing->all || entry.kind != HDF5IO_SUPERSEDED))
            rc = listing_add(listing, &entry, err);
    if (rc == ERR_OK && errno != 0)
        goto fail;
    closedir(dir);
    return rc;
fail:
    *number = errno;
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return err_set(err,
                   retry_cause(*number) == RETRY_ABSENT ? ERR_DATA : ERR_IO,
                   "%s: cannot list: %s", path, strerror(*number));
}

static int newest_first(const void *a, const void *b)
{
    const hdf5io_entry_t *x = a, *y = b;

    if (x->step != y->step)
        return (x->step < y->step) - (x->step > y->step);
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static err_code_t listing_run(listing_t *listing, hdf5io_entry_t **entries,
                              int *count, err_t *err)
{
    const retry_t retry = hdf5io_io_retry(listing->io);
    err_code_t rc = retry_run(&retry, listing->directory, listing_attempt,
                              listing, NULL, err);

    if (rc != ERR_OK) {
        free(listing->entries);
        return rc;
    }
    if (listing->count > 1)
        qsort(listing->entries, (size_t)listing->count,
              sizeof *listing->entries, newest_first);
    *entries = listing->entries;
    *count = listing->count;
    return ERR_OK;
}

err_code_t hdf5io_dir_list(const hdf5io_io_t *io, const char *directory,
                           hdf5io_entry_t **entries, int *count, err_t *err)
{
    listing_t listing = {.io = io, .directory = directory};

    return listing_run(&listing, entries, count, err);
}

err_code_t hdf5io_dir_list_all(const hdf5io_io_t *io, const char *directory,
                               hdf5io_entry_t **entries, int *count, err_t *err)
{
    listing_t listing = {.io = io, .directory = directory, .all = true};

    return listing_run(&listing, entries, count, err);
}

err_code_t hdf5io_dir_steps(const hdf5io_io_t *io, const char *directory,
                            int64_t **steps, int *count, err_t *err)
{
    hdf5io_entry_t *entries = NULL;
    int64_t *list = NULL;
    int entry_count = 0, n = 0;
    err_code_t rc = hdf5io_dir_list(io, directory, &entries, &entry_count, err);

    if (rc == ERR_OK) {
        list = calloc((size_t)entry_count + 1, sizeof *list);
        if (list == NULL)
            rc =
                err_set(err, ERR_MEMORY, "%s: no memory to list it", directory);
    }
    if (rc != ERR_OK) {
        free(entries);
        return rc;
    }
    for (int i = 0; i < entry_count; i++)
        if (entries[i].kind == HDF5IO_PUBLISHED)
            list[n++] = entries[i].step;
    free(entries);
    *steps = list;
    *count = n;
    return ERR_OK;
}

/* ---- adopting ------------------------------------------------------------ */

/* Is the debris [path] an intact checkpoint of [entry]'s step? If a later
 * version of cddp wrote it, *whole and entry->later become true. */
static err_code_t whole_check(const hdf5io_io_t *io, const char *path,
                              hdf5io_entry_t *entry, bool *whole, err_t *err)
{
    hdf5io_manifest_t m = {0};
    uint64_t hash;
    const hdf5io_saved_t saved = {io, path, &m};
    retry_cause_t cause = RETRY_ABSENT;
    err_t why = ERR_INIT;
    err_code_t rc =
        hdf5io_checkpoint_manifest(io, path, &m, &hash, &cause, &why);
    bool damaged = rc == ERR_DATA && cause == RETRY_ABSENT;

    entry->later = rc == ERR_CONFIG;
    if (rc == ERR_OK)
        rc = hdf5io_load_check(&saved, &damaged, &why);
    *whole = entry->later || (rc == ERR_OK && m.progress.step == entry->step);
    hdf5io_manifest_free(&m);
    if (rc == ERR_OK || damaged || entry->later)
        return ERR_OK;
    return err_copy(err, &why);
}

err_code_t hdf5io_dir_sync(const hdf5io_io_t *io, const char *path, err_t *err)
{
    DIR *list = opendir(path);
    struct dirent *next;
    struct stat st;
    err_code_t rc = ERR_OK;

    if (list == NULL)
        return err_set(err, ERR_IO, "%s: cannot list: %s", path,
                       strerror(errno));
    while (rc == ERR_OK && (next = readdir(list)) != NULL)
        if (next->d_name[0] != '.' &&
            fstatat(dirfd(list), next->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            char *file = str_printf("%s/%s", path, next->d_name);

            rc = hdf5io_io_sync(io, file, err);
            free(file);
        }
    closedir(list);
    return rc == ERR_OK ? hdf5io_io_sync(io, path, err) : rc;
}

/* Rename debris to its final name, durably. It is no error if another process,
 * or the writer if it is still alive, did the same meanwhile. */
static err_code_t name_give(const hdf5io_io_t *io, const char *directory,
                            const hdf5io_entry_t *entry, err_t *err)
{
    char *from = str_printf("%s/%s", directory, entry->name);
    char *to = hdf5io_dir_path(directory, "", entry->step, 0);
    err_t why = ERR_INIT;
    /* The process that wrote it may have died before it synced the files. */
    err_code_t rc = hdf5io_dir_sync(io, from, &why);

    if (rc != ERR_OK) {
        rc = access(from, F_OK) != 0 && errno == ENOENT ? ERR_OK
                                                        : err_copy(err, &why);
    } else if (io->rename(io->context, from, to, 0) == 0) {
        log_warn("hdf5io",
                 "an interrupted save left %s, which is intact; it is now %s",
                 from, to);
        rc = hdf5io_io_sync(io, directory, err);
    } else if (errno != ENOENT && errno != EEXIST && errno != ENOTEMPTY) {
        rc = err_set(err, ERR_IO,
                     "%s is an intact checkpoint that an interrupted save "
                     "left, but it cannot be renamed to %s: %s",
                     from, to, strerror(errno));
    }
    free(to);
    free(from);
    return rc;
}

err_code_t hdf5io_dir_candidates(const hdf5io_io_t *io, const char *directory,
                                 hdf5io_entry_t **entries, int *count,
                                 err_t *err)
{
    hdf5io_entry_t *all = NULL;
    int total = 0, kept = 0;
    bool whole = false;
    err_code_t rc = hdf5io_dir_list(io, directory, &all, &total, err);

    for (int i = 0; rc == ERR_OK && i < total; i++) {
        bool take = all[i].kind == HDF5IO_PUBLISHED;

        if (!take && kept == 0) {
            char *path = str_printf("%s/%s", directory, all[i].name);

            rc = whole_check(io, path, &all[i], &whole, err);
            take = whole;
            free(path);
        }
        if (take)
            all[kept++] = all[i];
    }
    if (rc != ERR_OK) {
        free(all);
        return rc;
    }
    *entries = all;
    *count = kept;
    return ERR_OK;
}

/* A later version of cddp wrote [entry]. The error says what [entry] requires
 * of its reader. */
static err_code_t later_refuse(const hdf5io_io_t *io, const char *directory,
                               const hdf5io_entry_t *entry, err_t *err)
{
    char *path = str_printf("%s/%s", directory, entry->name);
    hdf5io_manifest_t m = {0};
    retry_cause_t cause;
    uint64_t hash;
    err_code_t rc =
        hdf5io_checkpoint_manifest(io, path, &m, &hash, &cause, err);

    hdf5io_manifest_free(&m);
    free(path);
    return rc;
}

err_code_t hdf5io_dir_adopt(const hdf5io_io_t *io, const char *directory,
                            err_t *err)
{
    hdf5io_entry_t *entries = NULL;
    int count = 0;
    err_code_t rc = hdf5io_dir_candidates(io, directory, &entries, &count, err);

    if (rc == ERR_OK && count > 0 && entries[0].later)
        rc = later_refuse(io, directory, &entries[0], err);
    else if (rc == ERR_OK && count > 0 && entries[0].kind != HDF5IO_PUBLISHED)
        rc = name_give(io, directory, &entries[0], err);
    free(entries);
    return rc;
}

err_code_t hdf5io_checkpoint_adopt(const char *directory, const char *path,
                                   err_t *err)
{
    const size_t length = strlen(directory);
    hdf5io_entry_t entry;

    if (strncmp(path, directory, length) != 0 || path[length] != '/' ||
        !entry_parse(path + length + 1, &entry) ||
        entry.kind == HDF5IO_PUBLISHED || entry.kind == HDF5IO_SUPERSEDED)
        return ERR_OK;
    return name_give(&hdf5io_io_system, directory, &entry, err);
}
