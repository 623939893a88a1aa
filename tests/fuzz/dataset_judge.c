/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Evaluates the model: where a path leads, whether a dataset can be read, and
 * its numbers. */
#include <string.h>

#include "fuzz/dataset_case.h"

/* HDF5 follows at most 16 links on a path; a cycle has more. */
#define JUDGE_LINKS 16
#define JUDGE_DEPTH 8 /* maximum depth of nested virtual datasets */

/* The current place while following a path. */
typedef struct judge_place {
    int file, group, set; /* [set] is -1 in a group */
    int links;            /* number of links followed */
} judge_place_t;

static bool judge_follow(const case_model_t *model, judge_place_t *place,
                         const char *path);

static const case_link_t *judge_link(const case_model_t *model,
                                     const judge_place_t *place,
                                     const char *name, size_t length)
{
    const case_file_t *file = &model->files[place->file];

    for (int i = 0; i < file->link_count; i++)
        if (file->links[i].group == place->group &&
            strlen(file->links[i].name) == length &&
            strncmp(file->links[i].name, name, length) == 0)
            return &file->links[i];
    return NULL;
}

static bool judge_step(const case_model_t *model, judge_place_t *place,
                       const case_link_t *link)
{
    switch (link->kind) {
    case CASE_SET:
        place->set = link->index;
        return true;
    case CASE_GROUP:
        place->group = link->index;
        return true;
    case CASE_EXTERNAL:
        if (link->index < 0 || model->files[link->index].broken)
            return false;
        place->file = link->index;
        place->group = CASE_ROOT;
        break;
    case CASE_SOFT:
        break;
    }
    return ++place->links <= JUDGE_LINKS &&
           judge_follow(model, place, link->path);
}

static bool judge_follow(const case_model_t *model, judge_place_t *place,
                         const char *path)
{
    if (path[0] == '/')
        place->group = CASE_ROOT;
    while (*path != '\0') {
        const size_t length = strcspn(path, "/");
        const case_link_t *link;

        if (length > 0) {
            link =
                place->set >= 0 ? NULL : judge_link(model, place, path, length);
            if (link == NULL || !judge_step(model, place, link))
                return false;
        }
        path += length + (path[length] == '/');
    }
    return true;
}

int case_find(const case_model_t *model, int file, const char *path)
{
    judge_place_t place = {.file = file, .group = CASE_ROOT, .set = -1};

    if (file < 0 || model->files[file].broken ||
        !judge_follow(model, &place, path))
        return -1;
    return place.set;
}

static case_verdict_t judge_worse(case_verdict_t a, case_verdict_t b)
{
    if (a == CASE_BAD || b == CASE_BAD)
        return CASE_BAD;
    return a == CASE_VAGUE || b == CASE_VAGUE ? CASE_VAGUE : CASE_GOOD;
}

/* Does the source have all elements that the mapping of [set] uses? */
static bool judge_fits(const case_set_t *set, const case_map_t *map,
                       const case_set_t *source)
{
    bool fits = source->ndim == set->ndim;

    if (map->all)
        return case_elements(source, 0) ==
               case_product(map->count, case_elements(set, 1));
    for (int d = 0; fits && d < set->ndim; d++)
        fits =
            (d == 0 ? map->from + map->count : set->dims[d]) <= source->dims[d];
    return fits;
}

static bool judge_covers(const case_map_t *map, uint64_t row)
{
    return row >= map->to && (row - map->to) % map->stride == 0 &&
           (row - map->to) / map->stride < map->count;
}

/* CASE_BAD if no mapping covers a row. */
static case_verdict_t judge_holes(const case_set_t *set)
{
    uint64_t mapped = 0;

    if (case_elements(set, 0) == 0)
        return CASE_GOOD;
    for (int i = 0; i < set->map_count; i++)
        mapped += set->maps[i].count;
    if (mapped < set->dims[0])
        return CASE_BAD;
    if (set->dims[0] > CASE_SMALL)
        return CASE_VAGUE;
    for (uint64_t row = 0; row < set->dims[0]; row++) {
        bool there = false;

        for (int i = 0; i < set->map_count; i++)
            there = there || judge_covers(&set->maps[i], row);
        if (!there)
            return CASE_BAD;
    }
    return CASE_GOOD;
}

static case_verdict_t judge_set(const case_model_t *model, int number,
                                int depth);

static case_verdict_t judge_map(const case_model_t *model,
                                const case_set_t *set, const case_map_t *map,
                                int depth)
{
    const int found = case_find(model, map->file, map->path);
    const case_set_t *source;

    if (found < 0 || depth >= JUDGE_DEPTH)
        return CASE_BAD;
    source = &model->sets[found];
    if (source->verdict == CASE_VAGUE)
        return CASE_VAGUE;
    if (!judge_fits(set, map, source))
        return CASE_BAD;
    return judge_set(model, found, depth + 1);
}

/* Verdict of a dataset. Its elements need not be numbers, because those of a
 * mapping's source need not. */
static case_verdict_t judge_set(const case_model_t *model, int number,
                                int depth)
{
    const case_set_t *set = &model->sets[number];
    case_verdict_t verdict = set->verdict;

    if (case_product(case_elements(set, 0), set->bytes) > INT64_MAX)
        return CASE_BAD;
    if (!set->mapped || verdict != CASE_GOOD)
        return verdict;
    if (set->map_count == 0)
        return CASE_BAD;
    for (int i = 0; i < set->map_count; i++)
        verdict =
            judge_worse(verdict, judge_map(model, set, &set->maps[i], depth));
    return judge_worse(verdict, judge_holes(set));
}

case_verdict_t case_set_verdict(const case_model_t *model, int set)
{
    return judge_set(model, set, 0);
}

/* Index, within a row of [source], of the element at the position of [element]
 * of [set]. Both have the same number of dimensions. */
static uint64_t judge_element(const case_set_t *set, const case_set_t *source,
                              uint64_t element)
{
    uint64_t at = 0, scale = 1;

    for (int d = set->ndim - 1; d > 0; d--) {
        at += element % set->dims[d] * scale;
        element /= set->dims[d];
        scale *= source->dims[d];
    }
    return at;
}

static bool judge_mapped(const case_model_t *model, const case_set_t *set,
                         uint64_t row, uint64_t element, double *out)
{
    const case_map_t *map = NULL;
    const case_set_t *source;
    uint64_t elements;
    int found;

    for (int i = 0; i < set->map_count; i++) {
        if (!judge_covers(&set->maps[i], row))
            continue;
        if (map != NULL)
            return false; /* HDF5 does not define which mapping is used */
        map = &set->maps[i];
    }
    if (map == NULL)
        return false;
    found = case_find(model, map->file, map->path);
    if (found < 0)
        return false;
    source = &model->sets[found];
    row = (row - map->to) / map->stride + map->from;
    if (!map->all)
        return case_value(model, found, row,
                          judge_element(set, source, element), out);
    elements = case_elements(source, 1);
    row = (row - map->from) * case_elements(set, 1) + element;
    return case_value(model, found, row / elements, row % elements, out);
}

static bool judge_readable(const case_model_t *model, int set, int depth)
{
    const case_set_t *from = &model->sets[set];
    bool readable = from->known && !from->damaged && depth < JUDGE_DEPTH;

    for (int i = 0; i < from->map_count && readable; i++) {
        const int found =
            case_find(model, from->maps[i].file, from->maps[i].path);

        readable = found >= 0 && model->sets[found].numbers &&
                   !model->sets[found].named && !from->named &&
                   judge_readable(model, found, depth + 1);
    }
    return readable;
}

bool case_readable(const case_model_t *model, int set)
{
    return judge_readable(model, set, 0);
}

bool case_value(const case_model_t *model, int set, uint64_t row,
                uint64_t element, double *out)
{
    const case_set_t *from = &model->sets[set];
    uint64_t at;

    if (!from->known || !from->numbers)
        return false;
    if (from->mapped) /* HDF5 converts a NaN to an arbitrary integer */
        return judge_mapped(model, from, row, element, out) &&
               (from->reals || *out >= 0);
    at = case_product(row, case_elements(from, 1));
    if (__builtin_add_overflow(at, element, &at))
        at = UINT64_MAX - 1;
    if (at >= from->written) {
        *out = from->fill;
        return from->fill_known;
    }
    if (at == from->nan_at)
        *out = __builtin_nan("");
    else
        *out = (double)(((uint64_t)set * 17 + at * 3 + at / 7) % CASE_VALUES);
    return true;
}
