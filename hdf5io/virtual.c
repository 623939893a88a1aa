/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A depth-first walk over sources. Checked datasets are kept in a tree, keyed
 * by the identity of the file and the dataset's name in it. So a dataset with
 * many mappings is opened once per run of consecutive mappings, and a dataset
 * that is met again while it is being checked shows a cycle. Names are
 * sufficient as keys, since finitely many files have finitely many names.
 */
#include "hdf5io/virtual_priv.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/h5.h"
#include "hdf5io/home.h"
#include "hdf5io/storage.h"

#define VIRTUAL_DEPTH 32 /* maximum depth of nested virtual datasets */
#define VIRTUAL_AHEAD 8  /* block numbers tried after a missing one */

typedef struct virtual_walk {
    void *nodes; /* tree of tsearch */
    int depth, files;
} virtual_walk_t;

/* ---- what was looked at -------------------------------------------------- */

static int virtual_compare(const void *a, const void *b)
{
    const virtual_node_t *left = a, *right = b;

    return strcmp(left->key, right->key);
}

static void virtual_node_free(void *node)
{
    free(((virtual_node_t *)node)->key);
    mem_free(node);
}

/* Key of a dataset: identity of its file, whatever the file's name, and path in
 * it. The caller frees it. */
static char *virtual_key(const char *home, const char *path)
{
    struct stat status;

    path += strspn(path, "/");
    if (stat(home, &status) != 0)
        return str_printf("%s:%s", home, path);
    return str_printf("%llx:%llx:%s", (unsigned long long)status.st_dev,
                      (unsigned long long)status.st_ino, path);
}

static virtual_node_t *virtual_find(virtual_walk_t *walk, const char *home,
                                    const char *path)
{
    virtual_node_t wanted = {.key = virtual_key(home, path)};
    virtual_node_t *const *there =
        tfind(&wanted, &walk->nodes, virtual_compare);

    free(wanted.key);
    return there == NULL ? NULL : *there;
}

static err_code_t virtual_add(virtual_walk_t *walk, const char *home,
                              const char *path, virtual_node_t **out,
                              err_t *err)
{
    virtual_node_t *node = NULL;
    err_code_t rc = mem_new(virtual_node_t, 1, "a virtual dataset", &node, err);

    if (rc != ERR_OK)
        return rc;
    node->key = virtual_key(home, path);
    if (tsearch(node, &walk->nodes, virtual_compare) == NULL) {
        virtual_node_free(node);
        return err_set(err, ERR_MEMORY, "no memory for a source of %s", path);
    }
    *out = node;
    return ERR_OK;
}

/* Count the file [home] if it is new. */
static err_code_t virtual_count_file(virtual_walk_t *walk, const char *home,
                                     err_t *err)
{
    virtual_node_t *node;

    if (virtual_find(walk, home, "") != NULL)
        return ERR_OK;
    walk->files++;
    return virtual_add(walk, home, "", &node, err);
}

/* ---- sources ------------------------------------------------------------- */

/* Name of the source for block [number]: %b in [format] becomes the number, %%
 * becomes %. The caller frees it. */
static char *virtual_name(const char *format, uint64_t number)
{
    str_buf_t text = {0};

    str_buf_add(&text, "%s", "");
    for (; format != NULL && *format != '\0'; format++) {
        if (format[0] == '%' && format[1] == 'b')
            str_buf_add(&text, "%" PRIu64, number);
        else
            str_buf_add(&text, "%c", *format);
        format += format[0] == '%' && format[1] != '\0';
    }
    return text.text;
}

/* Open the file that the mapping calls [name] as map->file, if it opens. */
static void virtual_file_open(virtual_map_t *map, const char *name)
{
    if (map->file_name != NULL && strcmp(map->file_name, name) == 0)
        return;
    if (map->file >= 0)
        H5Fclose(map->file);
    free(map->refused);
    free(map->home);
    free(map->file_name);
    map->refused = NULL;
    map->home = NULL;
    map->file_name = str_dup(name);
    map->file = strcmp(name, ".") == 0
                    ? H5Iget_file_id(map->set->id)
                    : hdf5io_home_open(map->set->file, name, "HDF5_VDS_PREFIX",
                                       &map->refused);
    if (map->file >= 0)
        map->home = hdf5io_home_name(map->file);
}

static err_code_t virtual_missing(const virtual_map_t *map,
                                  const virtual_name_t *name, err_t *err)
{
    if (map->home != NULL)
        return hdf5io_virtual_refuse(map->set, name, err,
                                     "but %s has no such dataset", map->home);
    if (map->refused != NULL)
        return hdf5io_virtual_refuse(map->set, name, err,
                                     "but this file does not open: %s",
                                     map->refused);
    return hdf5io_virtual_refuse(
        map->set, name, err,
        "but there is no file of that name, neither beside "
        "it nor in the working directory nor in "
        "HDF5_VDS_PREFIX");
}

static err_code_t virtual_visit(virtual_walk_t *walk, const virtual_set_t *set,
                                virtual_node_t *node, err_t *err);

/* Check the open dataset [object], which the mapping calls [name]. */
static err_code_t virtual_enter(virtual_map_t *map, const virtual_name_t *name,
                                hid_t object, virtual_node_t **out, err_t *err)
{
    char *home = hdf5io_home_name(object);
    const virtual_set_t set = {object, home, name->path};
    virtual_walk_t *walk = map->walk;
    virtual_node_t *node = NULL;
    err_code_t rc = ERR_OK;

    if (home == NULL)
        return virtual_missing(map, name, err);
    if (walk->depth >= VIRTUAL_DEPTH)
        rc = hdf5io_virtual_refuse(
            map->set, name, err,
            "at the end of a chain of more than %d virtual "
            "datasets",
            VIRTUAL_DEPTH);
    if (rc == ERR_OK)
        rc = virtual_count_file(walk, home, err);
    if (rc == ERR_OK)
        rc = virtual_add(walk, map->home, name->path, &node, err);
    if (rc == ERR_OK) {
        node->busy = true;
        walk->depth++;
        rc = virtual_visit(walk, &set, node, err);
        walk->depth--;
        node->busy = false;
        *out = node;
    }
    free(home);
    return rc;
}

/* Check one source. *out stays NULL if no such dataset exists. */
static err_code_t virtual_source(virtual_map_t *map, const virtual_name_t *name,
                                 virtual_node_t **out, err_t *err)
{
    virtual_node_t *node;
    err_code_t rc = ERR_OK;
    hid_t object;

    virtual_file_open(map, name->file);
    if (map->home == NULL)
        return ERR_OK;
    node = virtual_find(map->walk, map->home, name->path);
    if (node != NULL && node->busy)
        return hdf5io_virtual_refuse(
            map->set, name, err,
            "which leads back to itself: a virtual dataset "
            "cannot be a source of its own");
    if (node != NULL) {
        *out = node;
        return ERR_OK;
    }
    object = hdf5io_home_object(map->file, name->path, NULL);
    H5Eclear2(H5E_DEFAULT);
    if (object < 0)
        return ERR_OK;
    if (H5Iget_type(object) == H5I_DATASET)
        rc = virtual_enter(map, name, object, out, err);
    H5Oclose(object);
    return rc;
}

/* ---- mappings ------------------------------------------------------------ */

/* Check the source of block [number]; *there: it exists. */
static err_code_t virtual_block(virtual_map_t *map, virtual_link_t *link,
                                uint64_t number, bool *there, err_t *err)
{
    char *file = virtual_name(link->file, number);
    char *path = virtual_name(link->path, number);
    const virtual_name_t name = {file, path};
    virtual_node_t *node = NULL;
    err_code_t rc = virtual_source(map, &name, &node, err);

    if (rc == ERR_OK && node != NULL)
        rc = hdf5io_virtual_fits(map, link, &name, node, err);
    *there = node != NULL;
    free(path);
    free(file);
    return rc;
}

/* Set ERR_DATA: the source of block [number] does not exist. */
static err_code_t virtual_block_missing(virtual_map_t *map,
                                        const virtual_link_t *link,
                                        uint64_t number, err_t *err)
{
    char *file = virtual_name(link->file, number);
    char *path = virtual_name(link->path, number);
    const virtual_name_t name = {file, path};

    virtual_file_open(map, file);
    virtual_missing(map, &name, err);
    free(path);
    free(file);
    return ERR_DATA;
}

/* Check the sources of a mapping: one, or one per existing block. HDF5 takes
 * the first missing number for the end. If later numbers exist, the missing one
 * was lost. */
static err_code_t virtual_link_sources(virtual_map_t *map, virtual_link_t *link,
                                       err_t *err)
{
    err_code_t rc = ERR_OK;
    bool there = true;

    while (rc == ERR_OK && there) {
        rc = virtual_block(map, link, link->blocks, &there, err);
        link->blocks += there;
        there = there && link->many;
    }
    if (rc == ERR_OK && link->blocks == 0)
        return virtual_block_missing(map, link, 0, err);
    for (uint64_t k = 1; k <= VIRTUAL_AHEAD && link->many && rc == ERR_OK;
         k++) {
        rc = virtual_block(map, link, link->blocks + k, &there, err);
        if (rc == ERR_OK && there)
            rc = virtual_block_missing(map, link, link->blocks, err);
    }
    return rc;
}

/* Get the names and selections of mapping [index]. */
static err_code_t virtual_link_open(const virtual_map_t *map, size_t index,
                                    virtual_link_t *out, err_t *err)
{
    virtual_link_t link = {.to = H5Pget_virtual_vspace(map->create, index),
                           .from = H5Pget_virtual_srcspace(map->create, index)};
    ssize_t file = H5Pget_virtual_filename(map->create, index, NULL, 0);
    ssize_t path = H5Pget_virtual_dsetname(map->create, index, NULL, 0);

    if (file >= 0 && path >= 0) {
        link.file = calloc(1, (size_t)file + 1);
        link.path = calloc(1, (size_t)path + 1);
    }
    *out = link;
    if (link.file == NULL || link.path == NULL || link.to < 0 ||
        link.from < 0 ||
        H5Pget_virtual_filename(map->create, index, link.file,
                                (size_t)file + 1) < 0 ||
        H5Pget_virtual_dsetname(map->create, index, link.path,
                                (size_t)path + 1) < 0)
        return h5_err_set(err, ERR_DATA,
                          "%s: mapping %zu of the virtual dataset %s is "
                          "damaged",
                          map->set->file, index, map->set->path);
    hdf5io_virtual_points(map, out);
    return ERR_OK;
}

static void virtual_link_close(virtual_link_t *link)
{
    if (link->from >= 0)
        H5Sclose(link->from);
    if (link->to >= 0)
        H5Sclose(link->to);
    free(link->path);
    free(link->file);
}

static int virtual_dims(hid_t dataset, hsize_t dims[H5S_MAX_RANK])
{
    hid_t space = H5Dget_space(dataset);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);

    if (space >= 0)
        H5Sclose(space);
    return ndim;
}

/* Check that the mappings cover the dataset, after all sources were found. */
static err_code_t virtual_holes(const virtual_map_t *map, err_t *err)
{
    hsize_t dims[H5S_MAX_RANK];
    uint64_t extent[H5S_MAX_RANK], hole[2];
    err_t why = ERR_INIT;
    bool whole = true, empty = false;
    err_code_t rc;

    if (virtual_dims(map->set->id, dims) != map->ndim)
        return h5_err_set(err, ERR_DATA, "%s: the shape of %s is unreadable",
                          map->set->file, map->set->path);
    for (int d = 0; d < map->ndim; d++) {
        extent[d] = dims[d];
        empty = empty || dims[d] == 0;
    }
    if (empty || map->ndim == 0)
        return ERR_OK;
    rc = hdf5io_cover_check(
        &(cover_pieces_t){extent, map->ndim, map->sides, map->count}, &whole,
        hole, &why);
    if (rc != ERR_OK)
        return err_set(err, rc, "%s: the virtual dataset %s: %s",
                       map->set->file, map->set->path, why.text);
    if (whole)
        return ERR_OK;
    return err_set(err, ERR_DATA,
                   "%s: the virtual dataset %s has holes: nothing is mapped "
                   "to all or part of rows %" PRIu64 " to %" PRIu64
                   ", which would be read as its fill value",
                   map->set->file, map->set->path, hole[0], hole[1] - 1);
}

/* Number of dimensions of a virtual dataset, taken from its first mapping,
 * since its own shape must not be asked for yet. */
static int virtual_rank(hid_t create)
{
    hid_t space = H5Pget_virtual_vspace(create, 0);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);

    if (space >= 0)
        H5Sclose(space);
    return ndim;
}

static err_code_t virtual_mappings(virtual_walk_t *walk,
                                   const virtual_set_t *set, hid_t create,
                                   err_t *err)
{
    virtual_map_t map = {
        .walk = walk, .set = set, .create = create, .file = H5I_INVALID_HID};
    size_t count = 0;
    err_code_t rc = ERR_OK;

    if (H5Pget_virtual_count(create, &count) < 0)
        return h5_err_set(err, ERR_DATA,
                          "%s: the mappings of the virtual dataset %s are "
                          "damaged",
                          set->file, set->path);
    if (count == 0)
        return err_set(err, ERR_DATA,
                       "%s: the virtual dataset %s has no mapping", set->file,
                       set->path);
    map.ndim = virtual_rank(create);
    if (map.ndim < 1)
        return h5_err_set(err, ERR_DATA, "%s: the shape of %s is unreadable",
                          set->file, set->path);
    for (size_t i = 0; i < count && rc == ERR_OK; i++) {
        virtual_link_t link;

        rc = virtual_link_open(&map, i, &link, err);
        if (rc == ERR_OK)
            rc = virtual_link_sources(&map, &link, err);
        if (rc == ERR_OK)
            rc = hdf5io_virtual_piece(&map, &link, err);
        virtual_link_close(&link);
    }
    if (rc == ERR_OK)
        rc = virtual_holes(&map, err);
    if (map.file >= 0)
        H5Fclose(map.file);
    free(map.refused);
    free(map.home);
    free(map.file_name);
    free(map.sides);
    return rc;
}

/* ---- the walk ------------------------------------------------------------ */

/* Can HDF5 open a file that is already open here? It cannot if the host program
 * initialized HDF5 with file locking before h5_lock turned it off. */
static err_code_t virtual_locks_check(const virtual_set_t *set, err_t *err)
{
    hid_t again = H5Fopen(set->file, H5F_ACC_RDONLY, H5P_DEFAULT);

    if (again >= 0) {
        H5Fclose(again);
        return ERR_OK;
    }
    return h5_err_set(err, ERR_UNAVAILABLE,
                      "%s: the virtual dataset %s cannot be read, as HDF5 was "
                      "started with file locks: set HDF5_USE_FILE_LOCKING to "
                      "FALSE before this program starts",
                      set->file, set->path);
}

/* Check a dataset and all its sources; its shape is stored in [node]. */
static err_code_t virtual_visit(virtual_walk_t *walk, const virtual_set_t *set,
                                virtual_node_t *node, err_t *err)
{
    hid_t create = H5Dget_create_plist(set->id);
    err_code_t rc = ERR_OK;

    if (create >= 0 && H5Pget_layout(create) == H5D_VIRTUAL) {
        rc = virtual_locks_check(set, err);
        if (rc == ERR_OK)
            rc = virtual_mappings(walk, set, create, err);
    }
    if (rc == ERR_OK)
        node->ndim = virtual_dims(set->id, node->dims);
    if (rc == ERR_OK && (create < 0 || node->ndim < 0))
        rc = h5_err_set(err, ERR_DATA, "%s: the shape of %s is unreadable",
                        set->file, set->path);
    if (rc == ERR_OK)
        rc = hdf5io_storage_check(&(hdf5io_storage_t){.dataset = set->id,
                                                      .create = create,
                                                      .file = set->file,
                                                      .path = set->path,
                                                      .ndim = node->ndim,
                                                      .dims = node->dims},
                                  err);
    if (create >= 0)
        H5Pclose(create);
    return rc;
}

err_code_t hdf5io_virtual_check(hid_t dataset, const char *path, int *files,
                                err_t *err)
{
    virtual_walk_t walk = {.nodes = NULL};
    char *file = hdf5io_home_name(dataset); /* checks the lock */
    const virtual_set_t set = {dataset, file, path};
    virtual_node_t *node;
    err_code_t rc;

    if (file == NULL)
        return h5_err_set(err, ERR_DATA,
                          "HDF5 does not say which file holds %s", path);
    rc = virtual_add(&walk, file, path, &node, err);
    if (rc == ERR_OK) {
        node->busy = true;
        rc = virtual_visit(&walk, &set, node, err);
    }
    check(walk.depth == 0, "%s: the walk ends at depth %d", path, walk.depth);
    tdestroy(walk.nodes, virtual_node_free);
    free(file);
    if (rc == ERR_OK)
        *files = walk.files;
    return rc;
}
