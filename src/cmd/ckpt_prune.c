/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "cmd/ckpt_prune.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/ckpt_lock.h"
#include "cmd/ckpt_show.h"
#include "hdf5io/checkpoint.h"
#include "hdf5io/checkpoint_find.h"
#include "hdf5io/checkpoint_prune.h"

/* Set *out to the path of the newest intact checkpoint in [home]; free() it.
 * Reads all its bytes. ERR_DATA: there is none. */
static err_code_t intact_find(const char *home, char **out, err_t *err)
{
    char **paths = NULL, *found = NULL;
    int count = 0;
    err_t why = ERR_INIT;
    err_code_t rc = hdf5io_checkpoint_list(home, &paths, &count, err);

    for (int i = 0; i < count; i++) {
        if (found == NULL &&
            hdf5io_checkpoint_verify(paths[i], NULL, &why) == ERR_OK)
            found = paths[i];
        else
            free(paths[i]);
    }
    free(paths);
    if (rc != ERR_OK)
        return rc;
    if (found != NULL) {
        *out = found;
        return ERR_OK;
    }
    return err_set(err, ERR_DATA,
                   "%s: nothing is removed, as none of its %d checkpoints is "
                   "intact%s%s: one that is superseded may be the last",
                   home, count, count > 0 ? ": " : "",
                   count > 0 ? why.text : "");
}

typedef struct prune {
    bool dry;
    str_buf_t *out;
    int count; /* of what is removed, and its size */
    uint64_t bytes;
    err_code_t rc; /* the first failure */
    err_t *err;
} prune_t;

/* Say what happens to [leftover]. */
static void line_print(prune_t *prune, const hdf5io_leftover_t *leftover,
                       const char *what)
{
    const char *name = strrchr(leftover->path, '/') + 1;
    char size[32];

    str_buf_add(prune->out, "%-44s %10s  %s\n", name,
                str_bytes(leftover->bytes, size, sizeof size), what);
}

static void leftover_prune(prune_t *prune, const hdf5io_leftover_t *leftover)
{
    err_t why = ERR_INIT;

    if (!prune->dry && hdf5io_prune_remove(leftover, &why) != ERR_OK) {
        line_print(prune, leftover, "not removed");
        if (prune->rc == ERR_OK)
            prune->rc = err_copy(prune->err, &why);
        return;
    }
    line_print(prune, leftover, prune->dry ? "would be removed" : "removed");
    prune->count++;
    prune->bytes += leftover->bytes;
}

/* Prune superseded checkpoints, or debris. */
static void kind_prune(prune_t *prune, const hdf5io_leftover_t *list, int count,
                       bool superseded)
{
    for (int i = 0; i < count; i++)
        if (list[i].superseded == superseded)
            leftover_prune(prune, &list[i]);
}

static void debris_keep(prune_t *prune, const hdf5io_leftover_t *list,
                        int count, const err_t *why)
{
    char *what = str_printf("kept: %s", why->text);

    for (int i = 0; i < count; i++)
        if (!list[i].superseded)
            line_print(prune, &list[i], what);
    free(what);
}

/* The lock is held to the end, so that cddp-ckpt repair does not adopt what is
 * being removed. */
static err_code_t home_prune(prune_t *prune, const char *run, const char *home)
{
    hdf5io_leftover_t *list = NULL;
    int count = 0;
    err_t why = ERR_INIT;
    const int lock = cmd_ckpt_lock(run, home, &why);
    err_code_t rc = hdf5io_prune_list(home, &list, &count, prune->err);

    if (lock != CMD_CKPT_REFUSED)
        kind_prune(prune, list, count, false);
    else
        debris_keep(prune, list, count, &why);
    kind_prune(prune, list, count, true);
    if (lock >= 0)
        close(lock);
    free(list);
    return rc == ERR_OK ? prune->rc : rc;
}

err_code_t cmd_ckpt_prune(const char *run, bool dry, str_buf_t *out, err_t *err)
{
    prune_t prune = {.dry = dry, .out = out, .err = err};
    char *home = hdf5io_checkpoint_home(run), *intact = NULL, size[32];
    err_code_t rc = intact_find(home, &intact, err);

    if (rc == ERR_OK)
        rc = home_prune(&prune, run, home);
    if (intact != NULL)
        str_buf_add(out, "%d %s, %s; the newest intact checkpoint is %s\n",
                    prune.count, dry ? "would be removed" : "removed",
                    str_bytes(prune.bytes, size, sizeof size),
                    strrchr(intact, '/') + 1);
    free(intact);
    free(home);
    return rc;
}
