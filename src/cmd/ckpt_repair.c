/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_repair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/ckpt_lock.h"
#include "cmd/ckpt_show.h"
#include "hdf5io/checkpoint_find.h"
#include "hdf5io/checkpoint_manifest.h"
#include "hdf5io/checkpoint_repair.h"

typedef struct work {
    const cmd_ckpt_repair_t *repair;
    const char *home;
    str_buf_t *out;
    int count;     /* of adopted entries */
    err_code_t rc; /* the first failure */
    err_t *err;
} work_t;

/* Does [path] name [entry]? A directory may precede the name, and slashes may
 * follow it, as shells complete names. */
static bool names_entry(const char *path, const char *entry)
{
    const size_t length = strlen(entry);
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    return end >= length && strncmp(path + end - length, entry, length) == 0 &&
           (end == length || path[end - length - 1] == '/');
}

/* Is [entry] named by the user? */
static bool is_named(const work_t *work, const char *entry)
{
    for (int i = 0; i < work->repair->count; i++)
        if (names_entry(work->repair->names[i], entry))
            return true;
    return false;
}

/* Keep the first failure. */
static void failure_note(work_t *work, const char *entry, const err_t *why)
{
    if (work->rc == ERR_OK)
        work->rc = err_set(work->err, why->code, "%s is not adopted: %s", entry,
                           why->text);
}

/* Adopt [entry], which is intact. The lock is taken only now: a run can start
 * while terabytes are verified. */
static void entry_adopt(work_t *work, const hdf5io_entry_t *entry)
{
    const bool dry = work->repair->dry;
    err_t why = ERR_INIT;
    const int lock = cmd_ckpt_lock(work->repair->run, work->home, &why);

    if (lock != CMD_CKPT_REFUSED && !dry)
        hdf5io_repair_adopt(work->home, entry, &why);
    if (lock >= 0)
        close(lock);
    if (why.code != ERR_OK) {
        str_buf_add(work->out, "%s: intact, not adopted: %s\n", entry->name,
                    why.text);
        failure_note(work, entry->name, &why);
        return;
    }
    str_buf_add(work->out, "%s: intact, %s step-%010" PRId64 "\n", entry->name,
                dry ? "would become" : "now", entry->step);
    work->count++;
}

static void entry_repair(work_t *work, const hdf5io_entry_t *entry)
{
    const bool named = is_named(work, entry->name);
    err_t why = ERR_INIT;

    if (hdf5io_repair_check(work->home, entry, &why) != ERR_OK) {
        str_buf_add(work->out, "%s: not adopted: %s\n", entry->name, why.text);
        if (named || (why.code != ERR_DATA && why.code != ERR_CONFIG))
            failure_note(work, entry->name, &why);
    } else if (named ||
               (work->repair->count == 0 && entry->kind != HDF5IO_SUPERSEDED)) {
        entry_adopt(work, entry);
    } else {
        str_buf_add(work->out, "%s: intact; adopted if it is named\n",
                    entry->name);
    }
}

/* Every name must be one of the [count] entries. */
static void names_check(work_t *work, const hdf5io_entry_t *entries, int count)
{
    for (int i = 0; i < work->repair->count; i++) {
        const char *name = work->repair->names[i];
        err_t why = ERR_INIT;
        int e = 0;

        while (e < count && (entries[e].kind == HDF5IO_PUBLISHED ||
                             !names_entry(name, entries[e].name)))
            e++;
        if (e < count)
            continue;
        err_set(&why, ERR_DATA,
                "it is neither a superseded checkpoint nor what an "
                "interrupted save left in %s",
                work->home);
        failure_note(work, name, &why);
    }
}

/* [run] must be a directory, and not that of one checkpoint. */
static err_code_t run_check(const char *run, err_t *err)
{
    char *manifest = str_printf("%s/" MANIFEST_NAME, run);
    struct stat st;
    err_code_t rc = ERR_OK;

    if (stat(run, &st) != 0)
        rc =
            err_set(err, ERR_DATA, "%s: cannot list: %s", run, strerror(errno));
    else if (lstat(manifest, &st) == 0)
        rc = err_set(err, ERR_DATA,
                     "%s is one checkpoint: expected a run directory, or its "
                     "checkpoints/, and then the NAMEs to adopt",
                     run);
    free(manifest);
    return rc;
}

err_code_t cmd_ckpt_repair(const cmd_ckpt_repair_t *repair, str_buf_t *out,
                           err_t *err)
{
    char *home = hdf5io_checkpoint_home(repair->run);
    work_t work = {.repair = repair, .home = home, .out = out, .err = err};
    hdf5io_entry_t *entries = NULL;
    int count = 0;
    err_code_t rc = run_check(repair->run, err);

    if (rc == ERR_OK)
        rc =
            hdf5io_dir_list_all(&hdf5io_io_system, home, &entries, &count, err);
    if (rc == ERR_OK)
        names_check(&work, entries, count);
    for (int i = 0; i < count; i++)
        if (entries[i].kind != HDF5IO_PUBLISHED)
            entry_repair(&work, &entries[i]);
    if (rc == ERR_OK)
        str_buf_add(out, "%d %s\n", work.count,
                    repair->dry ? "would be adopted" : "adopted");
    free(entries);
    free(home);
    return rc == ERR_OK ? work.rc : rc;
}
