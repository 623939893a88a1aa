/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * HDF5 resolves such names itself when it reads, but gives no error if it finds
 * nothing: a missing source reads as fill values. So the file is looked for
 * here first, in the same places and in the same order.
 */
#include "hdf5io/home.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "hdf5io/h5.h"

char *hdf5io_home_name(hid_t object)
{
    ssize_t length;
    char *name;

    h5_lock_check();
    length = H5Fget_name(object, NULL, 0);
    name = length < 0 ? NULL : calloc(1, (size_t)length + 1);
    if (name != NULL && H5Fget_name(object, name, (size_t)length + 1) < 0) {
        free(name);
        name = NULL;
    }
    return name;
}

bool hdf5io_home_same(const char *a, const char *b)
{
    struct stat left, right;

    return strcmp(a, b) == 0 ||
           (stat(a, &left) == 0 && stat(b, &right) == 0 &&
            left.st_dev == right.st_dev && left.st_ino == right.st_ino);
}

/* Absolute directory of [path] with a final slash. The caller frees it. */
static char *home_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 0 : (int)(slash - path) + 1;
    char *here, *directory;

    if (path[0] == '/')
        return str_printf("%.*s", length, path);
    here = getcwd(NULL, 0);
    directory = str_printf("%s/%.*s", here == NULL ? "." : here, length, path);
    free(here);
    return directory;
}

/* A search for a file in several places. */
typedef struct home_search {
    hid_t access;
    char *refused; /* see hdf5io_home_open */
    bool other;    /* something of that name is not a regular file */
} home_search_t;

/* Note that [path] exists but is not a regular file. */
static void home_other(home_search_t *search, const char *path)
{
    search->other = true;
    if (search->refused == NULL)
        search->refused = str_printf("%s is not a file", path);
}

/* Open [name] in [directory] (of [length] bytes). */
static hid_t home_try(home_search_t *search, const char *directory,
                      size_t length, const char *name)
{
    const char *between = length > 0 && directory[length - 1] != '/' ? "/" : "";
    char *path = str_printf("%.*s%s%s", (int)length, directory, between, name);
    hid_t file = H5I_INVALID_HID;
    char cause[ERR_TEXT_MAX / 4];
    struct stat status;
    const bool there = stat(path, &status) == 0;

    /* Opening a pipe of this name would block. */
    if (there && !S_ISREG(status.st_mode)) {
        home_other(search, path);
    } else if (there && search->access != H5I_INVALID_HID) {
        file = H5Fopen(path, H5F_ACC_RDONLY, search->access);
        h5_err_text(cause, sizeof cause);
        if (file < 0 && search->refused == NULL)
            search->refused = str_printf("%s (HDF5: %s)", path, cause);
    }
    free(path);
    return file;
}

/* Try each directory of a list separated by colons. */
static hid_t home_try_list(home_search_t *search, const char *list,
                           const char *name)
{
    hid_t file = H5I_INVALID_HID;

    while (list != NULL && *list != '\0' && file < 0) {
        size_t length = strcspn(list, ":");

        if (length > 0)
            file = home_try(search, list, length, name);
        list += length;
        list += *list == ':';
    }
    return file;
}

/* Try the last places: the directory of [home], the working directory, and the
 * directory of the target if [home] is a symbolic link. */
static hid_t home_try_near(home_search_t *search, const char *home,
                           const char *name)
{
    char *directory = home_directory(home);
    char *real = realpath(home, NULL);
    hid_t file = home_try(search, directory, strlen(directory), name);

    if (file < 0)
        file = home_try(search, "", 0, name);
    if (file < 0 && real != NULL)
        file = home_try(search, real, (size_t)(strrchr(real, '/') - real) + 1,
                        name);
    free(real);
    free(directory);
    return file;
}

/* Try all places in HDF5's order. */
static hid_t home_try_all(home_search_t *search, const char *home,
                          const char *name, const char *prefixes)
{
    hid_t file = H5I_INVALID_HID;

    if (name[0] == '/') {
        file = home_try(search, "", 0, name);
        name = strrchr(name, '/') + 1;
    }
    if (file < 0)
        file = home_try_list(search, getenv(prefixes), name);
    if (file < 0)
        file = home_try_near(search, home, name);
    return file;
}

hid_t hdf5io_home_open(const char *home, const char *name, const char *prefixes,
                       char **refused)
{
    home_search_t search = {.access = h5_access_list()};
    hid_t file = home_try_all(&search, home, name, prefixes);

    H5Pclose(search.access);
    if (file < 0)
        *refused = search.refused;
    else
        free(search.refused);
    return file;
}

/* Callback of HDF5 before it follows an external link; a negative result
 * forbids it. */
static herr_t home_ask(const char *home, const char *group, const char *name,
                       const char *object, unsigned *flags, hid_t access,
                       void *context)
{
    home_search_t search = {.access = H5I_INVALID_HID};
    bool *external = context;

    (void)group;
    (void)object;
    (void)flags;
    (void)access;
    *external = true;
    home_try_all(&search, home, name, "HDF5_EXT_PREFIX");
    free(search.refused);
    return search.other ? -1 : 0;
}

hid_t hdf5io_home_object(hid_t at, const char *path, bool *external)
{
    hid_t access, object, why;
    bool followed = false;

    h5_lock_check();
    access = H5Pcreate(H5P_LINK_ACCESS);
    H5Pset_elink_cb(access, home_ask, &followed);
    object = H5Oopen(at, path, access);
    /* Keep the error stack, which the next call clears. */
    why = H5Eget_current_stack();
    H5Pclose(access);
    H5Eset_current_stack(why);
    if (external != NULL && followed)
        *external = true;
    return object;
}

char *hdf5io_home_raw(const char *home, const char *name)
{
    static const char origin[] = "${ORIGIN}";
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    char *directory, *path;

    if (name[0] == '/' || prefix == NULL || prefix[0] == '\0' ||
        strcmp(prefix, ".") == 0)
        return str_dup(name);
    if (strncmp(prefix, origin, sizeof origin - 1) != 0)
        return str_printf("%s/%s", prefix, name);
    directory = home_directory(home);
    path = str_printf("%s%s/%s", directory, prefix + sizeof origin - 1, name);
    free(directory);
    return path;
}
