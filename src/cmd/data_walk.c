/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * H5Lvisit gives paths from the root. Opening each of these paths starts at the
 * root again, which takes quadratic time in the depth. Here every object is
 * opened from its group instead. The names in a group are listed before its
 * objects are opened, so that no HDF5 iteration is active while we descend.
 */
#include "cmd/data_walk.h"

#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"
#include "hdf5io/links.h"

#define WALK_DEPTH 10000 /* maximum depth of nested groups */

/* Identifies a group: its file and its address in the file. */
typedef struct walk_place {
    unsigned long file;
    unsigned char address[16];
} walk_place_t;

typedef struct walk {
    hid_t file;
    const char *name;
    cmd_walk_visit_t visit;
    void *context;
    str_buf_t path;
    /* root of a tsearch tree of walk_place_t: visited groups with several names
     */
    void *seen;
    int depth;
} walk_t;

/* Names of the links in a group; hard[i]: link i is a hard link. */
typedef struct walk_names {
    char **names;
    bool *hard;
    size_t count, room;
} walk_names_t;

static int walk_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(walk_place_t));
}

/* Set *out to the place of [group] and *names to the number of its names (hard
 * links); false on failure. */
static bool walk_place(hid_t group, walk_place_t *out, unsigned *names)
{
    H5O_info_t info;

    memset(out, 0, sizeof *out);
#if H5_VERSION_GE(1, 12, 0)
    if (H5Oget_info(group, &info, H5O_INFO_BASIC) < 0)
        return false;
    memcpy(out->address, &info.token, sizeof out->address);
#else
    if (H5Oget_info(group, &info) < 0)
        return false;
    memcpy(out->address, &info.addr, sizeof info.addr);
#endif
    out->file = info.fileno;
    *names = info.rc;
    return true;
}

/* Set *met if [group] was visited before under another name. Remembers the
 * group if it has several names. */
static err_code_t walk_met(walk_t *walk, hid_t group, bool *met, err_t *err)
{
    walk_place_t place, *kept;
    unsigned names;

    *met = false;
    if (!walk_place(group, &place, &names))
        return h5_err_set(err, ERR_DATA, "a group in it is damaged");
    if (names < 2)
        return ERR_OK;
    *met = tfind(&place, &walk->seen, walk_compare) != NULL;
    if (*met)
        return ERR_OK;
    kept = malloc(sizeof *kept);
    if (kept != NULL)
        *kept = place;
    if (kept == NULL || tsearch(kept, &walk->seen, walk_compare) == NULL) {
        free(kept);
        return err_set(err, ERR_MEMORY, "no memory for the groups of %s",
                       walk->name);
    }
    return ERR_OK;
}

static herr_t walk_name_add(hid_t group, const char *name,
                            const H5L_info_t *info, void *context)
{
    walk_names_t *list = context;

    (void)group;
    if (list->count == list->room) {
        const size_t room = list->room == 0 ? 16 : 2 * list->room;
        char **names = realloc(list->names, room * sizeof *names);
        bool *hard;

        if (names == NULL)
            return -1;
        list->names = names;
        hard = realloc(list->hard, room * sizeof *hard);
        if (hard == NULL)
            return -1;
        list->hard = hard;
        list->room = room;
    }
    list->hard[list->count] = info->type == H5L_TYPE_HARD;
    list->names[list->count++] = str_dup(name);
    return 0;
}

static void walk_names_free(walk_names_t *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    free(list->hard);
}

static err_code_t walk_group(walk_t *walk, hid_t group, err_t *err);

/* Set the error for the link walk->path, which cannot be opened. */
static err_code_t walk_closed(const walk_t *walk, err_t *err)
{
    char cause[128];

    h5_err_text(cause, sizeof cause);
    if (hdf5io_links_broken(walk->file, walk->name, walk->path.text, err))
        return ERR_DATA;
    return err_set(err, ERR_DATA, "object %s cannot be opened (HDF5: %s)",
                   walk->path.text, cause);
}

static err_code_t walk_link(walk_t *walk, hid_t group, const char *name,
                            bool hard, err_t *err)
{
    const hid_t object = hdf5io_home_object(group, name, NULL);
    err_code_t rc = ERR_OK;
    char *target = NULL;
    bool met;

    if (object < 0)
        return walk_closed(walk, err);
    if (H5Iget_type(object) == H5I_DATASET) {
        if (!hard)
            target = hdf5io_links_target(group, name);
        rc = walk->visit(walk->context, object, walk->path.text, target, err);
        free(target);
    } else if (H5Iget_type(object) == H5I_GROUP && hard) {
        rc = walk_met(walk, object, &met, err);
        if (rc == ERR_OK && !met)
            rc = walk_group(walk, object, err);
    }
    H5Oclose(object);
    return rc;
}

/* Visit the datasets in [group], whose path is walk->path. */
static err_code_t walk_group(walk_t *walk, hid_t group, err_t *err)
{
    const size_t length = walk->path.length;
    walk_names_t list = {.names = NULL};
    err_code_t rc = ERR_OK;
    hsize_t index = 0;

    if (walk->depth >= WALK_DEPTH)
        return err_set(err, ERR_DATA,
                       "groups are nested more than %d deep: not looked into",
                       WALK_DEPTH);
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &index, walk_name_add,
                   &list) < 0)
        rc = h5_err_set(err, ERR_DATA, "its objects cannot be listed");
    walk->depth++;
    for (size_t i = 0; i < list.count && rc == ERR_OK; i++) {
        str_buf_add(&walk->path, "/%s", list.names[i]);
        rc = walk_link(walk, group, list.names[i], list.hard[i], err);
        walk->path.length = length;
        walk->path.text[length] = '\0';
    }
    walk->depth--;
    walk_names_free(&list);
    return rc;
}

err_code_t cmd_data_walk(hid_t file, const char *name, cmd_walk_visit_t visit,
                         void *context, err_t *err)
{
    walk_t walk = {
        .file = file, .name = name, .visit = visit, .context = context};
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);
    err_code_t rc;
    bool met;

    if (root < 0)
        return h5_err_set(err, ERR_DATA, "its objects cannot be listed");
    rc = walk_met(&walk, root, &met, err);
    if (rc == ERR_OK)
        rc = walk_group(&walk, root, err);
    H5Gclose(root);
    tdestroy(walk.seen, free);
    str_buf_free(&walk.path);
    return rc;
}
