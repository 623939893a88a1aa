/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A path is followed component by component, up to the first link that does not
 * open. If the file of an external link opens, the reason lies in that file,
 * and the search continues there.
 */
#include "hdf5io/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"

#define LINKS_DEPTH 16 /* maximum links in a chain, as in HDF5 */

/* A link as it is stored. */
typedef struct links_value {
    H5L_type_t type;
    char *bytes;                  /* owned */
    const char *external, *inner; /* file and path of an external link */
} links_value_t;

/* Read the link [path]; false: it is neither a soft nor an external link. */
static bool links_read(hid_t file, const char *path, links_value_t *out)
{
    links_value_t value = {.bytes = NULL};
    H5L_info_t info;
    unsigned flags;

    if (H5Lget_info(file, path, &info, H5P_DEFAULT) < 0 ||
        (info.type != H5L_TYPE_SOFT && info.type != H5L_TYPE_EXTERNAL))
        return false;
    value.type = info.type;
    value.bytes = calloc(1, info.u.val_size + 1);
    if (value.bytes == NULL)
        return false;
    if (H5Lget_val(file, path, value.bytes, info.u.val_size, H5P_DEFAULT) < 0 ||
        (value.type == H5L_TYPE_EXTERNAL &&
         H5Lunpack_elink_val(value.bytes, info.u.val_size, &flags,
                             &value.external, &value.inner) < 0)) {
        free(value.bytes);
        return false;
    }
    *out = value;
    return true;
}

char *hdf5io_links_target(hid_t file, const char *path)
{
    links_value_t value;
    char *text = NULL;

    if (links_read(file, path, &value)) {
        text = value.type == H5L_TYPE_SOFT
                   ? str_dup(value.bytes)
                   : str_printf("%s:%s%s", value.external,
                                value.inner[0] == '/' ? "" : "/", value.inner);
        free(value.bytes);
    }
    H5Eclear2(H5E_DEFAULT);
    return text;
}

static bool links_opens(hid_t file, const char *path)
{
    hid_t object = hdf5io_home_object(file, path, NULL);

    if (object >= 0)
        H5Oclose(object);
    return object >= 0;
}

/* An open file, its name, and how many links led to it. */
typedef struct links_at {
    hid_t file;
    const char *name;
    int depth;
} links_at_t;

static bool links_search(const links_at_t *at, const char *path, err_t *err);

/* Set the error: the file of an external link is missing or does not open. */
static void links_no_file(const links_value_t *value, const char *name,
                          const char *path, const char *refused, err_t *err)
{
    if (refused != NULL)
        err_set(err, ERR_DATA,
                "%s: %s is an external link to %s:%s, but this file does not "
                "open: %s",
                name, path, value->external, value->inner, refused);
    else
        err_set(err, ERR_DATA,
                "%s: %s is an external link to %s:%s, but there is no file of "
                "that name, neither beside %s nor in the working directory "
                "nor in HDF5_EXT_PREFIX",
                name, path, value->external, value->inner, name);
}

/* Set the error for an external link that does not open: the file is missing,
 * or the object in it. */
static void links_external(const links_at_t *at, const links_value_t *value,
                           const char *path, err_t *err)
{
    char *home = NULL, *refused = NULL;
    links_at_t target = {.depth = at->depth + 1};

    target.file = hdf5io_home_open(at->name, value->external, "HDF5_EXT_PREFIX",
                                   &refused);
    if (target.file >= 0)
        home = hdf5io_home_name(target.file);
    target.name = home;
    if (home == NULL)
        links_no_file(value, at->name, path, refused, err);
    else if (at->depth >= LINKS_DEPTH)
        err_set(err, ERR_DATA,
                "%s: %s is an external link to %s:%s, the last one of a chain "
                "of %d links: HDF5 follows fewer, and the links may form a "
                "cycle",
                at->name, path, value->external, value->inner, target.depth);
    else if (!links_search(&target, value->inner, err))
        err_set(err, ERR_DATA,
                "%s: %s is an external link to %s:%s, but %s has no such "
                "object",
                at->name, path, value->external, value->inner, home);
    if (target.file >= 0)
        H5Fclose(target.file);
    free(refused);
    free(home);
}

/* Set the error for the link [path], which does not open. */
static void links_describe(const links_at_t *at, const links_value_t *value,
                           const char *path, err_t *err)
{
    const links_at_t next = {at->file, at->name, at->depth + 1};
    char cause[128];

    if (value->type == H5L_TYPE_EXTERNAL) {
        links_external(at, value, path, err);
        return;
    }
    /* A soft link may point to another link, which is the broken one. */
    links_opens(at->file, path);
    h5_err_text(cause, sizeof cause);
    if (value->bytes[0] == '/' && at->depth < LINKS_DEPTH &&
        links_search(&next, value->bytes, err))
        return;
    err_set(err, ERR_DATA,
            "%s: %s is a soft link to %s, which does not open (HDF5: %s)",
            at->name, path, value->bytes, cause);
}

static bool links_search(const links_at_t *at, const char *path, err_t *err)
{
    char *part = str_printf("%s%s", path[0] == '/' ? "" : "/", path);
    size_t end = 0, length = strlen(part);
    bool broken = false, found = true;

    while (end < length && !broken && found) {
        links_value_t value;
        char kept;

        end += 1 + strcspn(part + end + 1, "/");
        kept = part[end];
        part[end] = '\0';
        if (part[end - 1] != '/' && !links_opens(at->file, part)) {
            found = links_read(at->file, part, &value);
            if (found) {
                links_describe(at, &value, part, err);
                free(value.bytes);
                broken = true;
            }
        }
        part[end] = kept;
    }
    H5Eclear2(H5E_DEFAULT);
    free(part);
    return broken;
}

bool hdf5io_links_broken(hid_t file, const char *name, const char *path,
                         err_t *err)
{
    return links_search(&(links_at_t){.file = file, .name = name}, path, err);
}
