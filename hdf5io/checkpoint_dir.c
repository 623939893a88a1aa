/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_sweep.h"

err_code_t hdf5io_checkpoint_list(const char *directory, char ***paths,
                                  int *count, err_t *err)
{
    hdf5io_entry_t *entries = NULL;
    int n = 0;
    char **list;
    err_code_t rc =
        hdf5io_dir_candidates(&hdf5io_io_system, directory, &entries, &n, err);

    if (rc != ERR_OK)
        return rc;
    list = calloc((size_t)n + 1, sizeof *list);
    if (list == NULL) {
        free(entries);
        return err_set(err, ERR_MEMORY, "%s: no memory to list it", directory);
    }
    for (int i = 0; i < n; i++)
        list[i] = str_printf("%s/%s", directory, entries[i].name);
    free(entries);
    *paths = list;
    *count = n;
    return ERR_OK;
}

/* Remove a directory tree. A failure is only logged; it must not end the
 * run. */
static void tree_drop(const char *path)
{
    err_t err = ERR_INIT;

    if (file_remove_tree(path, &err) != ERR_OK)
        log_warn("hdf5io", "cannot remove an old checkpoint: %s", err.text);
}

void hdf5io_dir_clean(const hdf5io_io_t *io, const char *directory, bool later)
{
    hdf5io_entry_t *entries = NULL;
    int count = 0;
    err_t err = ERR_INIT;

    if (hdf5io_dir_list(io, directory, &entries, &count, &err) != ERR_OK)
        log_warn("hdf5io", "cannot remove what a dead run left: %s", err.text);
    for (int i = 0; i < count; i++) {
        char *path;

        if (entries[i].kind == HDF5IO_PUBLISHED ||
            (later && hdf5io_sweep_takes(directory, &entries[i])))
            continue;
        path = str_printf("%s/%s", directory, entries[i].name);
        log_debug("hdf5io", "removing what a dead run left behind: %s", path);
        tree_drop(path);
        free(path);
    }
    free(entries);
}

/* The directory [tmp] gets the name [path]. */
typedef struct swap {
    const hdf5io_io_t *io;
    const char *tmp, *path, *trash;
    /* new name of an older [path]: [tmp] if the two were exchanged, [trash], or
     * NULL if there was none */
    const char *old;
} swap_t;

static err_code_t swap_in(swap_t *swap, err_t *err)
{
    const hdf5io_io_t *io = swap->io;
    struct stat st;
    err_code_t rc;

    swap->old = NULL;
    if (lstat(swap->path, &st) != 0)
        return hdf5io_io_rename(io, swap->tmp, swap->path, err);
    swap->old = swap->tmp;
    if (io->rename(io->context, swap->tmp, swap->path, RENAME_EXCHANGE) == 0)
        return ERR_OK;
    if (errno != EINVAL && errno != ENOSYS)
        return err_set(err, ERR_IO, "cannot exchange %s with %s: %s", swap->tmp,
                       swap->path, strerror(errno));
    /* Not every file system can exchange two names (NFS cannot). */
    rc = hdf5io_io_rename(io, swap->path, swap->trash, err);
    if (rc != ERR_OK)
        return rc;
    swap->old = swap->trash;
    rc = hdf5io_io_rename(io, swap->tmp, swap->path, err);
    if (rc != ERR_OK)
        io->rename(io->context, swap->trash, swap->path, 0);
    return rc;
}

/* Undo swap_in: the parent directory could not be synced, so the new name may
 * not be durable. */
static void swap_out(const swap_t *swap)
{
    const hdf5io_io_t *io = swap->io;
    int status;

    if (swap->old == swap->tmp)
        status =
            io->rename(io->context, swap->tmp, swap->path, RENAME_EXCHANGE);
    else
        status = io->rename(io->context, swap->path, swap->tmp, 0);
    if (status == 0 && swap->old == swap->trash)
        status = io->rename(io->context, swap->trash, swap->path, 0);
    if (status != 0)
        log_warn("hdf5io", "%s: cannot undo the rename: %s", swap->path,
                 strerror(errno));
}

err_code_t hdf5io_dir_publish(const hdf5io_io_t *io, const char *directory,
                              const char *tmp, int64_t step, uint64_t nonce,
                              err_t *err)
{
    char *path = hdf5io_dir_path(directory, "", step, 0);
    char *trash = hdf5io_dir_path(directory, ".trash-", step, nonce);
    swap_t swap = {.io = io, .tmp = tmp, .path = path, .trash = trash};
    err_code_t rc = swap_in(&swap, err);

    if (rc == ERR_OK) {
        rc = hdf5io_io_sync(io, directory, err);
        if (rc != ERR_OK)
            swap_out(&swap);
        else if (swap.old != NULL)
            tree_drop(swap.old);
    }
    free(trash);
    free(path);
    return rc;
}

/* Rename the published checkpoint of [step] to [prefix]NAME-NONCE. *out becomes
 * its path, to be freed. */
static err_code_t step_move(const hdf5io_io_t *io, const char *directory,
                            int64_t step, const char *prefix, uint64_t nonce,
                            char **out, err_t *err)
{
    char *from = hdf5io_dir_path(directory, "", step, 0);
    char *to = hdf5io_dir_path(directory, prefix, step, nonce);
    err_code_t rc = hdf5io_io_rename(io, from, to, err);

    if (rc == ERR_OK)
        *out = to;
    else
        free(to);
    free(from);
    return rc;
}

/* Is [path] the checkpoint of [step] in [directory]? */
static bool is_step(const char *path, const char *directory, int64_t step)
{
    char *own = hdf5io_dir_path(directory, "", step, 0);
    struct stat one, other;
    bool same = stat(path, &one) == 0 && stat(own, &other) == 0 &&
                one.st_dev == other.st_dev && one.st_ino == other.st_ino;

    free(own);
    return same;
}

/* Rename an entry to superseded-*; debris only if it has a manifest. *out
 * becomes the new path, or NULL. */
static err_code_t entry_supersede(const hdf5io_io_t *io, const char *directory,
                                  const hdf5io_entry_t *entry, char **out,
                                  err_t *err)
{
    char *from = str_printf("%s/%s", directory, entry->name);
    char *manifest = str_printf("%s/" MANIFEST_NAME, from);
    char *to = NULL;
    err_code_t rc = ERR_OK;

    if (entry->kind == HDF5IO_PUBLISHED || access(manifest, F_OK) == 0) {
        to = hdf5io_dir_path(directory, "superseded-", entry->step,
                             hdf5io_dir_nonce());
        rc = hdf5io_io_rename(io, from, to, err);
    }
    if (rc == ERR_OK)
        *out = to;
    else
        free(to);
    free(manifest);
    free(from);
    return rc;
}

/* The run goes on from the checkpoint of [step]; [other]: this is in another
 * directory. If best.json names a checkpoint from which the run does not go on,
 * delete best.json. That checkpoint was renamed before this call, so best.json
 * counts even if the checkpoint does not exist. */
static err_code_t best_supersede(const hdf5io_io_t *io, const char *directory,
                                 int64_t step, bool other, bool *dropped,
                                 err_t *err)
{
    hdf5io_best_t best = {.step = -1};
    err_code_t rc =
        other ? ERR_OK : hdf5io_best_named(io, directory, &best, err);

    if (rc != ERR_OK || (!other && best.step <= step))
        return rc;
    return hdf5io_best_drop(directory, dropped, err);
}

err_code_t hdf5io_checkpoint_supersede(const char *directory, const char *path,
                                       int64_t step, bool *elsewhere,
                                       err_t *err)
{
    const hdf5io_io_t *io = &hdf5io_io_system;
    const bool other = !is_step(path, directory, step);
    hdf5io_entry_t *entries = NULL;
    bool dropped = false;
    int count = 0;
    err_code_t rc = hdf5io_dir_list(io, directory, &entries, &count, err);

    for (int i = 0; rc == ERR_OK && i < count; i++) {
        char *moved = NULL;

        if (!other && entries[i].step <= step)
            continue;
        rc = entry_supersede(io, directory, &entries[i], &moved, err);
        if (moved != NULL)
            log_warn("hdf5io",
                     "the run goes on from %s: the checkpoint of step %" PRId64
                     " is now %s",
                     path, entries[i].step, moved);
        free(moved);
    }
    if (rc == ERR_OK)
        rc = best_supersede(io, directory, step, other, &dropped, err);
    if (rc == ERR_OK && (count > 0 || dropped))
        rc = hdf5io_io_sync(io, directory, err);
    free(entries);
    if (rc == ERR_OK)
        *elsewhere = other;
    return rc;
}

/* Set *step to the step of the best checkpoint, or to -1 if there is none.
 * False: best.json cannot be read. */
static bool best_find(const hdf5io_io_t *io, const char *directory,
                      int64_t *step)
{
    hdf5io_best_t best;
    err_t err = ERR_INIT;

    if (hdf5io_best_read(io, directory, &best, &err) != ERR_OK) {
        log_warn("hdf5io",
                 "which checkpoint is the best is not known, so old ones stay "
                 "for now: %s",
                 err.text);
        return false;
    }
    *step = best.step;
    return true;
}

/* Does the checkpoint of [step] stay, whatever its age? [best]: that of the
 * best evaluation. */
static bool stays(const hdf5io_retire_t *retire, int64_t best, int64_t step)
{
    return step == best || (retire->every > 0 && step % retire->every == 0);
}

err_code_t hdf5io_dir_supersede(const hdf5io_io_t *io, const char *directory,
                                int64_t step, uint64_t nonce, err_t *err)
{
    int64_t *steps = NULL;
    int count = 0, moved = 0;
    err_code_t rc = hdf5io_dir_steps(io, directory, &steps, &count, err);

    for (int i = 0; rc == ERR_OK && i < count && steps[i] > step; i++) {
        char *to = NULL;

        rc = step_move(io, directory, steps[i], "superseded-", nonce, &to, err);
        if (rc != ERR_OK)
            break;
        moved++;
        log_warn("hdf5io",
                 "this run went back before step %" PRId64
                 ": its old checkpoint is now %s",
                 steps[i], to);
        free(to);
    }
    if (rc == ERR_OK && moved > 0)
        rc = hdf5io_io_sync(io, directory, err);
    free(steps);
    if (rc == ERR_OK)
        hdf5io_best_tidy(io, directory, step);
    return rc;
}

static void step_drop(const hdf5io_io_t *io, const char *directory,
                      int64_t step, const hdf5io_retire_t *retire)
{
    char *trash = NULL;
    err_t err = ERR_INIT;
    err_code_t rc =
        step_move(io, directory, step, ".trash-", retire->nonce, &trash, &err);

    if (rc == ERR_OK && retire->later)
        rc = hdf5io_sweep_leave(trash, &err);
    else if (rc == ERR_OK)
        tree_drop(trash);
    if (rc != ERR_OK)
        log_warn("hdf5io", "cannot retire a checkpoint: %s", err.text);
    free(trash);
}

void hdf5io_dir_retire(const hdf5io_io_t *io, const char *directory,
                       const hdf5io_retire_t *retire)
{
    int64_t *steps = NULL, best = -1;
    int count = 0, kept = 0;
    err_t err = ERR_INIT;
    const bool known = best_find(io, directory, &best);

    if (hdf5io_dir_steps(io, directory, &steps, &count, &err) != ERR_OK)
        log_warn("hdf5io", "cannot retire old checkpoints: %s", err.text);
    for (int i = 0; i < count; i++)
        if (steps[i] <= retire->step && ++kept > retire->keep && known &&
            !stays(retire, best, steps[i]))
            step_drop(io, directory, steps[i], retire);
    free(steps);
}
