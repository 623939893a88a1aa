/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The member "data" of a manifest: marks of the run's data when the checkpoint
 * was written. Manifests of older versions have no such member. */
#include "hdf5io/checkpoint_data.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

void hdf5io_marks_free(hdf5io_mark_t *marks, int count)
{
    for (int i = 0; i < count; i++) {
        free(marks[i].split);
        free(marks[i].name);
    }
    mem_free(marks);
}

err_code_t hdf5io_marks_copy(const hdf5io_mark_t *marks, int count,
                             hdf5io_mark_t **out, err_t *err)
{
    hdf5io_mark_t *copy = NULL;
    err_code_t rc =
        mem_new(hdf5io_mark_t, (size_t)count, "marks of the data", &copy, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < count; i++) {
        copy[i] = marks[i];
        copy[i].split = str_dup(marks[i].split);
        copy[i].name = str_dup(marks[i].name);
    }
    *out = copy;
    return ERR_OK;
}

/* Quote a file name by JSON's rules; the caller frees it. NULL: no memory. The
 * name is only used in sentences, so if it is not UTF-8, bytes outside ASCII
 * become '?'. */
static char *mark_quote(const char *name)
{
    json_t *value = json_string(name);
    char *quoted, *plain = NULL;

    if (value == NULL) {
        plain = str_dup(name);
        for (char *c = plain; *c != '\0'; c++)
            if ((unsigned char)*c >= 0x80)
                *c = '?';
        value = json_string(plain);
    }
    quoted = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    json_decref(value);
    free(plain);
    return quoted;
}

err_code_t hdf5io_marks_print(const hdf5io_mark_t *marks, int count,
                              str_buf_t *out, err_t *err)
{
    char hash[HASH_TEXT_MAX];

    if (count == 0)
        return ERR_OK;
    str_buf_add(out, " \"data\": [");
    for (int i = 0; i < count; i++) {
        char *name = mark_quote(marks[i].name);

        if (name == NULL)
            return err_set(err, ERR_MEMORY, "no memory for the manifest");
        str_buf_add(out,
                    "%s\n  {\"split\": \"%s\", \"name\": %s, \"shards\": %d, "
                    "\"samples\": %" PRId64 ", \"sample_xxh3\": \"%s\"",
                    i == 0 ? "" : ",", marks[i].split, name, marks[i].shards,
                    marks[i].samples, hash_format(marks[i].quick, hash));
        free(name);
        if (marks[i].whole)
            str_buf_add(out, ", \"full_xxh3\": \"%s\"",
                        hash_format(marks[i].full, hash));
        str_buf_add(out, "}");
    }
    str_buf_add(out, "\n ],\n");
    return ERR_OK;
}

static bool mark_parse(json_t *item, hdf5io_mark_t *out)
{
    const char *split, *name, *quick, *full = NULL;
    json_int_t shards, samples;
    hdf5io_mark_t mark = {0};

    if (json_unpack(item, "{s:s, s:s, s:I, s:I, s:s, s?s}", "split", &split,
                    "name", &name, "shards", &shards, "samples", &samples,
                    "sample_xxh3", &quick, "full_xxh3", &full) != 0 ||
        shards < 1 || shards > INT_MAX || samples < 0 ||
        !hash_parse(quick, &mark.quick) ||
        (full != NULL && !hash_parse(full, &mark.full)))
        return false;
    mark.shards = (int)shards;
    mark.samples = samples;
    mark.whole = full != NULL;
    mark.split = str_dup(split);
    mark.name = str_dup(name);
    *out = mark;
    return true;
}

err_code_t hdf5io_marks_parse(json_t *list, hdf5io_mark_t **out, int *count,
                              err_t *err)
{
    const size_t items = json_array_size(list);
    hdf5io_mark_t *marks = NULL;
    json_t *item;
    size_t i;
    err_code_t rc;

    if (list != NULL && (!json_is_array(list) || items > INT_MAX))
        return err_set(err, ERR_DATA, "its member \"data\" is no list");
    rc = mem_new(hdf5io_mark_t, items, "marks of the data", &marks, err);
    if (rc != ERR_OK)
        return rc;
    json_array_foreach(list, i, item)
    {
        if (mark_parse(item, &marks[i]))
            continue;
        hdf5io_marks_free(marks, (int)i);
        return err_set(err, ERR_DATA,
                       "entry %zu of its member \"data\" is not valid", i);
    }
    *out = marks;
    *count = (int)items;
    return ERR_OK;
}
