/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What virtual.c (sources) and virtual_piece.c (selections) share. */
#ifndef CDDP_HDF5IO_VIRTUAL_PRIV_H
#define CDDP_HDF5IO_VIRTUAL_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdf5io/cover.h"
#include "hdf5io/virtual.h"

/* A dataset that was looked at, or is being looked at. */
typedef struct virtual_node {
    char *key;
    bool busy;
    int ndim;
    hsize_t dims[H5S_MAX_RANK];
} virtual_node_t;

/* A dataset, open, with the names for sentences. */
typedef struct virtual_set {
    hid_t id;
    const char *file, *path;
} virtual_set_t;

/* What a virtual dataset maps, and the file of the source looked at last. */
typedef struct virtual_map {
    const virtual_set_t *set;
    hid_t create;
    int ndim;
    cover_side_t *sides; /* [count * ndim] */
    size_t count, room;
    char *file_name;      /* as it is mapped */
    char *home, *refused; /* as it was found; see hdf5io_home_open */
    hid_t file;           /* open, or H5I_INVALID_HID */
} virtual_map_t;

/* One mapping. */
typedef struct virtual_link {
    char *file, *path; /* of the source; may hold %b */
    hid_t to, from;    /* selections, in the virtual dataset and the source */
    uint64_t points;   /* of one source */
    bool many;         /* a source for each block */
    uint64_t blocks;   /* many: that are there */
    uint64_t slices;   /* of an unlimited selection, that its source has */
} virtual_link_t;

/* A mapping's source: the names of it. */
typedef struct virtual_name {
    const char *file, *path;
} virtual_name_t;

/* ERR_DATA: the virtual dataset [set] takes values from [name], and the
 * sentence [format]. */
err_code_t hdf5io_virtual_refuse(const virtual_set_t *set,
                                 const virtual_name_t *name, err_t *err,
                                 const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Set points and many of [link] from its selections. */
void hdf5io_virtual_points(const virtual_map_t *map, virtual_link_t *link);

/* Does the source [node] have what is mapped to it? ERR_DATA if not. Sets
 * link->slices. */
err_code_t hdf5io_virtual_fits(const virtual_map_t *map, virtual_link_t *link,
                               const virtual_name_t *name,
                               const virtual_node_t *node, err_t *err);

/* Add to [map] where [link] is in the virtual dataset. ERR_DATA: damaged, or
 * too many pieces; ERR_MEMORY. */
err_code_t hdf5io_virtual_piece(virtual_map_t *map, const virtual_link_t *link,
                                err_t *err);

#endif
