/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Writes files, groups, links of all kinds and virtual datasets, and then
 * damages files. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/dataset_case.h"

/* A file that is being written. */
typedef struct write_file {
    case_model_t *model;
    int number;
    hid_t groups[CASE_GROUPS]; /* H5I_INVALID_HID: the name is not a group of
                                  this file */
    case_shape_t shape;
} write_file_t;

unsigned case_pick(case_bytes_t *bytes, unsigned count)
{
    unsigned number;

    if (bytes->left == 0 || count == 0)
        return 0;
    number = *bytes->at++ % count;
    bytes->left--;
    return number;
}

static const char *const write_paths[] = {"/a",   "/b",   "/c",   "/d",
                                          "/g/a", "/g/b", "/g/c", "/h/a",
                                          "/h/b", "a",    "/g",   "/none"};
#define WRITE_PATHS (sizeof write_paths / sizeof write_paths[0])

static case_link_t *write_link(write_file_t *file, int group, const char *name,
                               case_kind_t kind)
{
    case_file_t *into = &file->model->files[file->number];
    case_link_t *link = &into->links[into->link_count++];

    *link = (case_link_t){.group = group, .kind = kind, .index = -1};
    snprintf(link->name, sizeof link->name, "%s", name);
    return link;
}

int case_name(case_bytes_t *bytes, const case_model_t *model, int from,
              char name[CASE_TEXT])
{
    const unsigned choice = case_pick(bytes, 8);
    const int number = (int)case_pick(bytes, (unsigned)model->file_count);
    const case_file_t *to = &model->files[number], *here = &model->files[from];
    const char *way = to->below && !here->below   ? "sub/"
                      : !to->below && here->below ? "../"
                                                  : "";

    if (choice == 7) {
        snprintf(name, CASE_TEXT, "missing.h5");
        return -1;
    }
    if (choice == 6) {
        snprintf(name, CASE_TEXT, "%s", to->name);
        return to->below == here->below ? number : -1;
    }
    if (choice == 5)
        snprintf(name, CASE_TEXT, "%s", to->path);
    else
        snprintf(name, CASE_TEXT, "%s%s", way, to->name);
    return number;
}

static void write_external(case_bytes_t *bytes, write_file_t *file, int group,
                           const char *name, const char *path)
{
    char target[CASE_TEXT];
    const int number = case_name(bytes, file->model, file->number, target);
    case_link_t *link;

    if (H5Lcreate_external(target, path, file->groups[group], name, H5P_DEFAULT,
                           H5P_DEFAULT) < 0)
        return;
    link = write_link(file, group, name, CASE_EXTERNAL);
    link->index = number;
    snprintf(link->path, sizeof link->path, "%s", path);
}

static void write_soft(write_file_t *file, int group, const char *name,
                       const char *path)
{
    if (H5Lcreate_soft(path, file->groups[group], name, H5P_DEFAULT,
                       H5P_DEFAULT) >= 0)
        snprintf(write_link(file, group, name, CASE_SOFT)->path,
                 sizeof(((case_link_t *)0)->path), "%s", path);
}

/* Add a hard link to an existing object. */
static void write_hard(case_bytes_t *bytes, write_file_t *file, int group,
                       const char *name)
{
    const case_file_t *here = &file->model->files[file->number];
    const case_link_t *to;
    case_link_t *link;

    if (here->link_count == 0)
        return;
    to = &here->links[case_pick(bytes, (unsigned)here->link_count)];
    if (to->kind > CASE_GROUP ||
        H5Lcreate_hard(file->groups[to->group], to->name, file->groups[group],
                       name, H5P_DEFAULT, H5P_DEFAULT) < 0)
        return;
    link = write_link(file, group, name, to->kind);
    link->index = to->index;
}

/* ---- virtual datasets ---------------------------------------------------- */

/* Last row of a mapping plus one. */
static uint64_t write_map_end(const case_map_t *map)
{
    return map->count == 0 ? 0 : map->to + (map->count - 1) * map->stride + 1;
}

static void write_map_choose(case_bytes_t *bytes, const case_set_t *set,
                             int index, case_map_t *map)
{
    const uint64_t rows = set->dims[0];
    const uint64_t part = index == 0 ? rows - rows / 2 : rows / 2;

    map->to = index == 0 ? 0 : rows - rows / 2;
    map->stride = 1;
    map->count = part;
    switch (case_pick(bytes, rows <= CASE_SMALL ? 8 : 2)) {
    case 1:
        map->to = 0;
        map->count = rows;
        break;
    case 2:
        map->to = (uint64_t)index % 2;
        map->stride = 2;
        map->count = (rows + 1 - (uint64_t)index % 2) / 2;
        break;
    case 3:
        map->count = case_pick(bytes, (unsigned)(rows % 255) + 1);
        break;
    case 4:
        map->from = case_pick(bytes, 4);
        break;
    default:
        break;
    }
    map->all = case_pick(bytes, 4) == 3;
}

/* Add the mapping to the creation list; false: HDF5 refuses. */
static bool write_map_add(const case_set_t *set, const case_map_t *map,
                          hid_t list)
{
    hsize_t start[H5S_MAX_RANK] = {map->to}, count[H5S_MAX_RANK];
    hsize_t stride[H5S_MAX_RANK], dims[H5S_MAX_RANK], first[H5S_MAX_RANK] = {0};
    hid_t to = H5Screate_simple(set->ndim, set->dims, NULL), from;
    bool added;

    memcpy(count, set->dims, sizeof count);
    memcpy(dims, set->dims, sizeof dims);
    count[0] = map->count;
    first[0] = map->from;
    dims[0] = map->all ? map->count : map->from + map->count;
    for (int d = 0; d < set->ndim; d++)
        stride[d] = d == 0 ? map->stride : 1;
    from = H5Screate_simple(set->ndim, dims, NULL);
    added = H5Sselect_hyperslab(to, H5S_SELECT_SET, start, stride, count,
                                NULL) >= 0 &&
            (map->all || H5Sselect_hyperslab(from, H5S_SELECT_SET, first, NULL,
                                             count, NULL) >= 0) &&
            H5Pset_virtual(list, to, map->name, map->path, from) >= 0;
    H5Sclose(from);
    H5Sclose(to);
    return added;
}

/* Add one to three mappings, to files and datasets that may not exist. */
static void write_maps(case_bytes_t *bytes, write_file_t *file, case_set_t *set,
                       hid_t list)
{
    const int count = 1 + (int)case_pick(bytes, CASE_MAPS);

    for (int i = 0; i < count; i++) {
        case_map_t *map = &set->maps[set->map_count];

        memset(map, 0, sizeof *map);
        write_map_choose(bytes, set, i, map);
        if (count == 1 && map->to == 0 && map->stride == 1)
            map->count = set->dims[0];
        if (case_pick(bytes, 4) == 3) {
            map->file = file->number;
            snprintf(map->name, CASE_TEXT, ".");
        } else {
            map->file = case_name(bytes, file->model, file->number, map->name);
        }
        snprintf(map->path, sizeof map->path, "%s",
                 write_paths[case_pick(bytes, WRITE_PATHS)]);
        if (map->count > 0 && write_map_end(map) <= set->dims[0] &&
            write_map_add(set, map, list))
            set->map_count++;
    }
}

/* Add an unlimited mapping, or one to numbered files or datasets. The model
 * only knows that both verdicts are possible. */
static void write_endless(case_bytes_t *bytes, case_set_t *set, hid_t list,
                          hsize_t most[H5S_MAX_RANK])
{
    static const char *const names[] = {"f%b.h5", ".", "f0.h5", "%%b", "f%b%b"};
    const hsize_t start[H5S_MAX_RANK] = {0};
    hsize_t count[H5S_MAX_RANK], block[H5S_MAX_RANK], dims[H5S_MAX_RANK];
    const bool numbered = case_pick(bytes, 2) == 0;
    hid_t to, from;

    memcpy(most, set->dims, sizeof(hsize_t[H5S_MAX_RANK]));
    memcpy(dims, set->dims, sizeof dims);
    memcpy(block, set->dims, sizeof block);
    most[0] = H5S_UNLIMITED;
    dims[0] = block[0] = 1 + case_pick(bytes, 3);
    for (int d = 0; d < set->ndim; d++)
        count[d] = d == 0 ? H5S_UNLIMITED : 1;
    to = H5Screate_simple(set->ndim, set->dims, most);
    from = H5Screate_simple(set->ndim, dims, numbered ? NULL : most);
    H5Sselect_hyperslab(to, H5S_SELECT_SET, start, block, count, block);
    if (!numbered)
        H5Sselect_hyperslab(from, H5S_SELECT_SET, start, block, count, block);
    H5Pset_virtual(list, to, names[case_pick(bytes, 5)],
                   numbered && case_pick(bytes, 2) == 1
                       ? "/%b"
                       : write_paths[case_pick(bytes, WRITE_PATHS)],
                   from);
    set->verdict = CASE_VAGUE;
    set->known = false;
    H5Sclose(from);
    H5Sclose(to);
}

static void write_virtual(case_bytes_t *bytes, write_file_t *file, int group,
                          const char *name, int odd)
{
    case_model_t *model = file->model;
    case_set_t *set = &model->sets[model->set_count];
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), type, space, dataset;
    hsize_t most[H5S_MAX_RANK];

    memset(set, 0, sizeof *set);
    set->known = set->mapped = true;
    set->nan_at = UINT64_MAX;
    type = case_type(bytes, set);
    set->bytes = H5Tget_size(type);
    case_shape_take(bytes, &file->shape, odd, set);
    memcpy(most, set->dims, sizeof most);
    if (set->ndim > 0 && case_pick(bytes, 8) == 7)
        write_endless(bytes, set, list, most);
    else if (set->ndim > 0)
        write_maps(bytes, file, set, list);
    space = set->ndim == 0 ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(set->ndim, set->dims, most);
    if (H5Pget_layout(list) !=
        H5D_VIRTUAL) /* setting the layout again would drop the mappings */
        H5Pset_layout(list, H5D_VIRTUAL);
    dataset = H5Dcreate2(file->groups[group], name, type, space, H5P_DEFAULT,
                         list, H5P_DEFAULT);
    if (dataset >= 0) {
        write_link(file, group, name, CASE_SET)->index = model->set_count++;
        H5Dclose(dataset);
    }
    if (space >= 0)
        H5Sclose(space);
    H5Tclose(type);
    H5Pclose(list);
}

/* ---- a file -------------------------------------------------------------- */

/* Make the groups: /g is a group, /h may be anything. */
static void write_groups(case_bytes_t *bytes, write_file_t *file)
{
    file->groups[CASE_G] = H5Gcreate2(file->groups[CASE_ROOT], "g", H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT);
    write_link(file, CASE_ROOT, "g", CASE_GROUP)->index = CASE_G;
    file->groups[CASE_H] = H5I_INVALID_HID;
    switch (case_pick(bytes, 6)) {
    case 1:
        write_soft(file, CASE_ROOT, "h", "/g");
        break;
    case 2:
        write_external(bytes, file, CASE_ROOT, "h", "/g");
        break;
    case 3:
        write_external(bytes, file, CASE_ROOT, "h", "/");
        break;
    case 4: /* a cycle of groups */
        H5Lcreate_hard(file->groups[CASE_ROOT], ".", file->groups[CASE_G], "h",
                       H5P_DEFAULT, H5P_DEFAULT);
        write_link(file, CASE_G, "h", CASE_GROUP)->index = CASE_ROOT;
        break;
    default:
        file->groups[CASE_H] =
            H5Gcreate2(file->groups[CASE_ROOT], "h", H5P_DEFAULT, H5P_DEFAULT,
                       H5P_DEFAULT);
        write_link(file, CASE_ROOT, "h", CASE_GROUP)->index = CASE_H;
        break;
    }
}

static void write_entry(case_bytes_t *bytes, write_file_t *file, int number)
{
    const char name[2] = {(char)('a' + number % 4), '\0'};
    const unsigned kind = case_pick(bytes, 16), place = case_pick(bytes, 8);
    int group = place < 6 ? CASE_ROOT : place == 6 ? CASE_G : CASE_H;

    if (file->groups[group] < 0 ||
        H5Lexists(file->groups[group], name, H5P_DEFAULT) > 0)
        return;
    if (kind < 9 &&
        case_leaf(bytes, file->model, file->number, file->groups[group], name,
                  &file->shape, number % 2))
        write_link(file, group, name, CASE_SET)->index =
            file->model->set_count - 1;
    else if (kind >= 9 && kind < 12)
        write_virtual(bytes, file, group, name, number % 2);
    else if (kind == 12)
        write_soft(file, group, name,
                   write_paths[case_pick(bytes, WRITE_PATHS)]);
    else if (kind == 13)
        write_hard(bytes, file, group, name);
    else if (kind >= 14)
        write_external(bytes, file, group, name,
                       write_paths[case_pick(bytes, WRITE_PATHS)]);
}

/* Write the attribute that cddp reads from the first validation shard. */
static void write_bound(case_bytes_t *bytes, case_model_t *model, hid_t file)
{
    const hsize_t two = 2;
    const double number = 0.75;
    const unsigned choice = case_pick(bytes, 6);
    const bool many = choice == 3;
    hid_t space, type, attribute;

    model->bound = NAN;
    model->bound_verdict = CASE_GOOD;
    if (choice == 0)
        return;
    type = H5Tcopy(choice == 2   ? H5T_STD_I16BE
                   : choice == 4 ? H5T_C_S1
                                 : H5T_IEEE_F64LE);
    if (choice == 4)
        H5Tset_size(type, H5T_VARIABLE);
    space = many          ? H5Screate_simple(1, &two, NULL)
            : choice == 5 ? H5Screate(H5S_NULL)
                          : H5Screate(H5S_SCALAR);
    attribute = H5Acreate2(file, "bound_accuracy", type, space, H5P_DEFAULT,
                           H5P_DEFAULT);
    if (choice <= 2)
        H5Awrite(attribute, H5T_NATIVE_DOUBLE, &number);
    if (choice <= 2)
        model->bound = choice == 1 ? number : 0;
    else
        model->bound_verdict = CASE_BAD;
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static void write_shape(case_bytes_t *bytes, const case_model_t *model,
                        int number, const case_shape_t *first,
                        case_shape_t *out)
{
    static const hsize_t rows[] = {4,
                                   1,
                                   0,
                                   7,
                                   33,
                                   200,
                                   (hsize_t)1 << 20,
                                   (hsize_t)1 << 40,
                                   (hsize_t)1 << 62,
                                   (hsize_t)INT64_MAX};
    static const hsize_t dims[] = {3, 1, 2, 5, 17, 64};

    (void)model;
    *out = *first;
    out->rows = rows[case_pick(bytes, 10) * case_pick(bytes, 2)];
    if (number > 0)
        return;
    out->ndim[0] = 1;
    out->ndim[0] = (int)((1 + case_pick(bytes, 4)) % 4);
    out->ndim[1] = (int)case_pick(bytes, 2);
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < out->ndim[i]; d++)
            out->dims[i][d] = dims[case_pick(bytes, 6)];
}

static void write_file(case_bytes_t *bytes, case_model_t *model, int number,
                       case_shape_t *shape)
{
    write_file_t file = {.model = model, .number = number};
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const unsigned format = case_pick(bytes, 4);
    int entries;

    if (format == 1 || format == 3)
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    if (format == 2)
        H5Pset_userblock(create, 512);
    if (format == 3)
        H5Pset_file_space_strategy(create, H5F_FSPACE_STRATEGY_PAGE, false, 1);
    file.groups[CASE_ROOT] =
        H5Fcreate(model->files[number].path, H5F_ACC_TRUNC, create, access);
    if (file.groups[CASE_ROOT] < 0)
        abort();
    write_shape(bytes, model, number, shape, shape);
    file.shape = *shape;
    write_groups(bytes, &file);
    entries = 2 + (int)case_pick(bytes, 5);
    for (int i = 0; i < entries; i++)
        write_entry(bytes, &file, i);
    if (number == 0)
        write_bound(bytes, model, file.groups[CASE_ROOT]);
    if (file.groups[CASE_H] >= 0)
        H5Gclose(file.groups[CASE_H]);
    H5Gclose(file.groups[CASE_G]);
    if (H5Fclose(file.groups[CASE_ROOT]) < 0)
        abort();
    H5Pclose(access);
    H5Pclose(create);
}

/* ---- afterwards ---------------------------------------------------------- */

static void write_patch(const case_model_t *model)
{
    const case_patch_t *patch = &model->patch;
    uint8_t byte;
    int fd;

    if (patch->file < 0)
        return;
    fd = open(model->files[patch->file].path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, &byte, 1, (off_t)patch->at) != 1)
        abort();
    byte ^= patch->flip;
    if (pwrite(fd, &byte, 1, (off_t)patch->at) != 1)
        abort();
    close(fd);
}

/* Damage a file: truncate it, delete it, or replace it by something that is not
 * a file. */
static void write_break(case_bytes_t *bytes, case_model_t *model)
{
    const unsigned how = case_pick(bytes, 16);
    case_file_t *file =
        &model->files[case_pick(bytes, (unsigned)model->file_count)];
    struct stat status;

    if (how < 11)
        return;
    file->broken = true;
    if (how == 11) {
        if (stat(file->path, &status) != 0 ||
            truncate(file->path,
                     status.st_size - 1 - (off_t)case_pick(bytes, 200)) != 0)
            abort();
        return;
    }
    unlink(file->path);
    if (how == 12 && mkfifo(file->path, 0600) != 0)
        abort();
    if (how == 13 && mkdir(file->path, 0700) != 0)
        abort();
    if (how == 14)
        close(open(file->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

/* Damage an external raw file. */
static void write_break_raw(case_bytes_t *bytes, case_model_t *model)
{
    const unsigned how = case_pick(bytes, 8);
    case_set_t *set;
    int raw;

    if (how < 4 || model->set_count == 0)
        return;
    set = &model->sets[case_pick(bytes, (unsigned)model->set_count)];
    if (set->raw_count == 0 || set->verdict != CASE_GOOD)
        return;
    raw = (int)case_pick(bytes, (unsigned)set->raw_count);
    set->verdict = CASE_BAD;
    if (how == 4 &&
        truncate(set->raws[raw], (off_t)set->raw_bytes[raw] - 1) != 0)
        abort();
    if (how > 4)
        unlink(set->raws[raw]);
    if (how == 6 && mkfifo(set->raws[raw], 0600) != 0)
        abort();
    if (how == 7 && mkdir(set->raws[raw], 0700) != 0)
        abort();
}

void case_write(case_bytes_t *bytes, const char *home, case_model_t *model)
{
    case_shape_t shape = {.rows = 4};

    memset(model, 0, sizeof *model);
    model->home = home;
    model->patch.file = -1;
    model->file_count = 1 + (int)case_pick(bytes, CASE_FILES);
    model->shard_count = 1 + (int)case_pick(bytes, (unsigned)model->file_count);
    for (int i = 0; i < model->file_count; i++) {
        case_file_t *file = &model->files[i];

        file->below = case_pick(bytes, 4) == 3;
        snprintf(file->name, sizeof file->name, "f%d.h5", i);
        snprintf(file->path, sizeof file->path, "%s/%s%s", home,
                 file->below ? "sub/" : "", file->name);
    }
    for (int i = 0; i < model->file_count; i++)
        write_file(bytes, model, i, &shape);
    write_patch(model);
    write_break(bytes, model);
    write_break_raw(bytes, model);
}
