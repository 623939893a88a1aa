/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Shared by virtual.c (sources) and virtual_piece.c (selections). */
#ifndef CDDP_HDF5IO_VIRTUAL_PRIV_H
#define CDDP_HDF5IO_VIRTUAL_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdf5io/cover.h"
#include "hdf5io/virtual.h"

/* A dataset that was checked, or is being checked. */
typedef struct virtual_node {
    char *key;
    bool busy;
    int ndim;
    hsize_t dims[H5S_MAX_RANK];
} virtual_node_t;

/* An open dataset and its names for error sentences. */
typedef struct virtual_set {
    hid_t id;
    const char *file, *path;
} virtual_set_t;

/* The mappings of a virtual dataset, and the source file that is open now. */
typedef struct virtual_map {
    struct virtual_walk *walk; /* the walk that checks it (virtual.c) */
    const virtual_set_t *set;
    hid_t create;
    int ndim;
    cover_side_t *sides; /* [count * ndim] */
    size_t count, room;
    char *file_name;      /* name in the mapping */
    char *home, *refused; /* path of the file, or why it does not open; see
                             hdf5io_home_open */
    hid_t file;           /* open, or H5I_INVALID_HID */
} virtual_map_t;

/* One mapping. */
typedef struct virtual_link {
    char *file, *path; /* names of the source; may contain %b */
    hid_t to, from;    /* selections in the virtual dataset and in the source */
    uint64_t points;   /* elements taken from one source */
    bool many;         /* there is one source per block */
    uint64_t blocks;   /* if [many]: number of existing sources */
    uint64_t slices;   /* unlimited selection: positions that the source has */
} virtual_link_t;

/* Names of a mapping's source. */
typedef struct virtual_name {
    const char *file, *path;
} virtual_name_t;

/* Set ERR_DATA: the virtual dataset [set] takes values from [name], followed by
 * the formatted text. */
err_code_t hdf5io_virtual_refuse(const virtual_set_t *set,
                                 const virtual_name_t *name, err_t *err,
                                 const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Set [points] and [many] of [link] from its selections. */
void hdf5io_virtual_points(const virtual_map_t *map, virtual_link_t *link);

/* Does the source [node] have all elements that are mapped to it? ERR_DATA if
 * not. Sets link->slices. */
err_code_t hdf5io_virtual_fits(const virtual_map_t *map, virtual_link_t *link,
                               const virtual_name_t *name,
                               const virtual_node_t *node, err_t *err);

/* Add the region of [link] in the virtual dataset to [map]. ERR_DATA: damaged
 * mapping, or too many pieces; ERR_MEMORY. */
err_code_t hdf5io_virtual_piece(virtual_map_t *map, const virtual_link_t *link,
                                err_t *err);

#endif
