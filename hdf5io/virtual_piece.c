/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Converts selections of a virtual dataset to plain numbers. HDF5 keeps a
 * regular selection (equally spaced blocks) as such, and lists the blocks of
 * any other.
 */
#include "hdf5io/virtual_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/h5.h"

#define VIRTUAL_PIECES_MAX ((size_t)1 << 20)

err_code_t hdf5io_virtual_refuse(const virtual_set_t *set,
                                 const virtual_name_t *name, err_t *err,
                                 const char *format, ...)
{
    char why[ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return err_set(err, ERR_DATA,
                   "%s: the virtual dataset %s takes values from %s:%s%s, %s",
                   set->file, set->path, name->file,
                   name->path[0] == '/' ? "" : "/", name->path, why);
}

/* Get the sides of a selection if it is regular. */
static bool virtual_regular(hid_t space, int ndim, cover_side_t *sides)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK];
    hsize_t count[H5S_MAX_RANK], block[H5S_MAX_RANK];

    if (H5Sget_select_type(space) != H5S_SEL_HYPERSLABS ||
        H5Sget_simple_extent_ndims(space) != ndim ||
        H5Sis_regular_hyperslab(space) <= 0 ||
        H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return false;
    for (int d = 0; d < ndim; d++)
        sides[d] =
            (cover_side_t){start[d], stride[d], count[d], block[d], COVER_ALL};
    return true;
}

/* The unlimited dimension of a regular selection, -1: none. */
static int virtual_endless(const cover_side_t *sides, int ndim)
{
    for (int d = 0; d < ndim; d++)
        if (sides[d].count == COVER_ALL || sides[d].block == COVER_ALL)
            return d;
    return -1;
}

void hdf5io_virtual_points(const virtual_map_t *map, virtual_link_t *link)
{
    cover_side_t to[H5S_MAX_RANK];
    int endless = -1;

    link->points = (uint64_t)H5Sget_select_npoints(link->to);
    if (virtual_regular(link->to, map->ndim, to))
        endless = virtual_endless(to, map->ndim);
    link->many = endless >= 0 &&
                 (uint64_t)H5Sget_select_npoints(link->from) != COVER_ALL;
    if (!link->many)
        return;
    link->points = 1;
    for (int d = 0; d < map->ndim; d++)
        link->points *= d == endless ? to[d].block : to[d].count * to[d].block;
}

/* Number of positions of the unlimited [side] before [extent]. */
static uint64_t virtual_slices(const cover_side_t *side, uint64_t extent)
{
    uint64_t length, inside;

    if (side->start >= extent)
        return 0;
    length = extent - side->start;
    if (side->block == COVER_ALL || side->stride == 0)
        return length;
    inside = length % side->stride;
    return length / side->stride * side->block +
           (inside < side->block ? inside : side->block);
}

/* End of a limited side: last position plus one; COVER_ALL on overflow. */
static uint64_t virtual_reach(const cover_side_t *side)
{
    uint64_t reach;

    if (side->count == 0 || side->block == 0)
        return 0;
    if (__builtin_mul_overflow(side->stride, side->count - 1, &reach) ||
        __builtin_add_overflow(reach, side->start, &reach) ||
        __builtin_add_overflow(reach, side->block, &reach))
        return COVER_ALL;
    return reach;
}

static char *virtual_shape(const hsize_t *dims, int ndim, char *out,
                           size_t room)
{
    size_t at = 0;

    snprintf(out, room, "[]");
    for (int i = 0; i < ndim && at + 24 < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%llu%s",
                               i == 0 ? "[" : ", ", (unsigned long long)dims[i],
                               i + 1 == ndim ? "]" : "");
    return out;
}

static err_code_t virtual_short(const virtual_map_t *map,
                                const virtual_name_t *name,
                                const virtual_node_t *node, err_t *err)
{
    char shape[256];

    return hdf5io_virtual_refuse(
        map->set, name, err,
        "which has shape %s: less than, or other than, what "
        "is mapped",
        virtual_shape(node->dims, node->ndim, shape, sizeof shape));
}

err_code_t hdf5io_virtual_fits(const virtual_map_t *map, virtual_link_t *link,
                               const virtual_name_t *name,
                               const virtual_node_t *node, err_t *err)
{
    cover_side_t sides[H5S_MAX_RANK];
    hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK];
    uint64_t points = 1;
    bool fits = true;
    int endless;

    if (H5Sget_select_type(link->from) == H5S_SEL_ALL) {
        for (int d = 0; d < node->ndim; d++)
            fits =
                fits && !__builtin_mul_overflow(points, node->dims[d], &points);
        fits = fits && points == link->points;
    } else if (virtual_regular(link->from, node->ndim, sides)) {
        endless = virtual_endless(sides, node->ndim);
        for (int d = 0; d < node->ndim; d++)
            fits = fits &&
                   (d == endless || virtual_reach(&sides[d]) <= node->dims[d]);
        if (endless >= 0)
            link->slices = virtual_slices(&sides[endless], node->dims[endless]);
        fits = fits && (endless >= 0 || (uint64_t)H5Sget_select_npoints(
                                            link->from) == link->points);
    } else {
        fits = H5Sget_simple_extent_ndims(link->from) == node->ndim &&
               (uint64_t)H5Sget_select_npoints(link->from) == link->points &&
               H5Sget_select_bounds(link->from, low, high) >= 0;
        for (int d = 0; fits && d < node->ndim; d++)
            fits = high[d] < node->dims[d];
    }
    H5Eclear2(H5E_DEFAULT);
    return fits ? ERR_OK : virtual_short(map, name, node, err);
}

static err_code_t virtual_room(virtual_map_t *map, size_t more, err_t *err)
{
    size_t room = map->room > 0 ? map->room : 16;
    cover_side_t *larger;

    if (more > VIRTUAL_PIECES_MAX - map->count)
        return err_set(err, ERR_DATA,
                       "%s: the virtual dataset %s is made of more than %zu "
                       "pieces",
                       map->set->file, map->set->path, VIRTUAL_PIECES_MAX);
    while (room < map->count + more)
        room *= 2;
    if (room == map->room)
        return ERR_OK;
    larger = realloc(map->sides, room * (size_t)map->ndim * sizeof *larger);
    if (larger == NULL)
        return err_set(err, ERR_MEMORY, "no memory for the mappings of %s",
                       map->set->path);
    map->sides = larger;
    map->room = room;
    return ERR_OK;
}

/* Add each block of an irregular selection as a piece. */
static err_code_t virtual_blocks(virtual_map_t *map, hid_t space, err_t *err)
{
    const size_t ndim = (size_t)map->ndim;
    hssize_t blocks = H5Sget_select_hyper_nblocks(space);
    hsize_t *corners = NULL;
    err_code_t rc;

    if (blocks < 0 || H5Sget_simple_extent_ndims(space) != map->ndim)
        return h5_err_set(err, ERR_DATA,
                          "%s: a mapping of the virtual dataset %s is damaged",
                          map->set->file, map->set->path);
    rc = virtual_room(map, (size_t)blocks, err);
    if (rc != ERR_OK)
        return rc;
    rc = mem_new(hsize_t, (size_t)blocks * 2 * ndim, "a virtual dataset",
                 &corners, err);
    if (rc != ERR_OK)
        return rc;
    if (H5Sget_select_hyper_blocklist(space, 0, (hsize_t)blocks, corners) < 0)
        rc = h5_err_set(err, ERR_DATA,
                        "%s: a mapping of the virtual dataset %s is damaged",
                        map->set->file, map->set->path);
    for (size_t k = 0; k < (size_t)blocks && rc == ERR_OK; k++) {
        const hsize_t *low = corners + 2 * k * ndim, *high = low + ndim;
        cover_side_t *side = map->sides + map->count++ * ndim;

        for (size_t d = 0; d < ndim; d++)
            side[d] =
                (cover_side_t){low[d], 1, 1, high[d] - low[d] + 1, COVER_ALL};
    }
    mem_free(corners);
    return rc;
}

err_code_t hdf5io_virtual_piece(virtual_map_t *map, const virtual_link_t *link,
                                err_t *err)
{
    cover_side_t *side;
    err_code_t rc = virtual_room(map, 1, err);
    int endless;

    if (rc != ERR_OK || H5Sget_select_type(link->to) == H5S_SEL_NONE)
        return rc;
    side = map->sides + map->count * (size_t)map->ndim;
    if (H5Sget_select_type(link->to) == H5S_SEL_ALL) {
        for (int d = 0; d < map->ndim; d++)
            side[d] = (cover_side_t){0, 1, 1, COVER_ALL, COVER_ALL};
    } else if (virtual_regular(link->to, map->ndim, side)) {
        endless = virtual_endless(side, map->ndim);
        if (endless >= 0 && link->many)
            side[endless].count = link->blocks;
        else if (endless >= 0)
            side[endless].limit = link->slices;
    } else {
        return virtual_blocks(map, link->to, err);
    }
    check(map->count < map->room, "piece %zu of room for %zu", map->count,
          map->room);
    map->count++;
    return ERR_OK;
}
