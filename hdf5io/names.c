/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A walk over groups, by calls that are the same in HDF5 1.10 to 1.14. Depth
 * and number of objects are limited, since links may form cycles (with ten
 * links per group there are 10^8 paths of depth eight), and some files have a
 * dataset per sample.
 */
#include "hdf5io/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"

#define NAMES_MAX 256    /* datasets */
#define NAMES_LOOKS 2048 /* opened objects */
#define NAMES_SHOWN 12   /* listed in the sentence */
#define NAMES_DEPTH 8    /* nested groups */

typedef struct names {
    char *paths[NAMES_MAX + 1]; /* NULL-terminated, each begins with / */
    int count;
    int looks;
} names_t;

/* Open the object behind link number [index] of [group]; *link becomes the
 * link's name (to be freed). Negative: a dangling link. */
static hid_t names_child(hid_t group, hsize_t index, char **link)
{
    ssize_t length = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC,
                                        index, NULL, 0, H5P_DEFAULT);
    hid_t child = H5I_INVALID_HID;

    *link = length < 0 ? NULL : calloc(1, (size_t)length + 1);
    if (*link == NULL)
        return child;
    if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, *link,
                           (size_t)length + 1, H5P_DEFAULT) >= 0)
        child = hdf5io_home_object(group, *link, NULL);
    return child;
}

/* Can the names of a group be read? A lookup fails if a name is damaged;
 * listing such a group may crash HDF5. */
static bool names_readable(hid_t group)
{
    return H5Lexists(group, "?", H5P_DEFAULT) >= 0;
}

static void names_walk(hid_t group, const char *prefix, int depth,
                       names_t *names)
{
    H5G_info_t info;

    if (H5Gget_info(group, &info) < 0)
        return;
    for (hsize_t i = 0; i < info.nlinks && names->count < NAMES_MAX &&
                        names->looks < NAMES_LOOKS;
         i++) {
        char *link;
        hid_t child = names_child(group, i, &link);

        names->looks++;
        if (child >= 0) {
            char *path = str_printf("%s/%s", prefix, link);

            if (H5Iget_type(child) == H5I_DATASET) {
                names->paths[names->count++] = path;
                path = NULL;
            } else if (H5Iget_type(child) == H5I_GROUP && depth < NAMES_DEPTH &&
                       names_readable(child)) {
                names_walk(child, path, depth + 1, names);
            }
            free(path);
            H5Oclose(child);
        }
        free(link);
    }
}

static void names_list(const names_t *names, str_buf_t *out)
{
    if (names->count == 0 && names->looks == NAMES_LOOKS)
        str_buf_add(out, "the first %d objects in it are no datasets",
                    NAMES_LOOKS);
    else if (names->count == 0)
        str_buf_add(out, "it holds no dataset at all");
    for (int i = 0; i < names->count && i < NAMES_SHOWN; i++)
        str_buf_add(out, "%s%s", i == 0 ? "it holds " : ", ", names->paths[i]);
    if (names->count > NAMES_SHOWN)
        str_buf_add(out, " and more");
}

err_code_t hdf5io_names_missing(hid_t file, const char *name, const char *path,
                                err_t *err)
{
    names_t names = {.count = 0};
    str_buf_t list = {0};
    char *rooted = str_printf("%s%s", path[0] == '/' ? "" : "/", path);
    const char *nearest;

    h5_lock_check();
    if (names_readable(file))
        names_walk(file, "", 0, &names);
    H5Eclear2(H5E_DEFAULT);
    names_list(&names, &list);
    nearest = str_nearest(rooted, (const char *const *)names.paths);
    if (nearest != NULL && strcmp(nearest, rooted) != 0)
        str_buf_add(&list, "; did you mean %s?", nearest);
    err_set(err, ERR_DATA, "%s has no dataset %s; %s", name, rooted, list.text);
    str_buf_free(&list);
    free(rooted);
    for (int i = 0; i < names.count; i++)
        free(names.paths[i]);
    return ERR_DATA;
}
