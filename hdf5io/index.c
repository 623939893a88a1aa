/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/index.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/little.h"
#include "base/mem.h"

#define INDEX_MARK UINT64_C(0x3158444950444443) /* "CDDPIDX1" */
#define INDEX_NUMBER ((size_t)8)                /* bytes */

static uint64_t number_get(const unsigned char *from)
{
    return little_get(from, INDEX_NUMBER);
}

static unsigned char *number_put(unsigned char *to, uint64_t number)
{
    little_put(to, number, INDEX_NUMBER);
    return to + INDEX_NUMBER;
}

err_code_t hdf5io_index_parse(const void *data, size_t bytes,
                              hdf5io_index_t *out, err_t *err)
{
    const unsigned char *next = data;
    hdf5io_index_t index = {0};
    uint64_t count;
    size_t left;

    if (bytes < 3 * INDEX_NUMBER || number_get(next) != INDEX_MARK)
        return err_set(err, ERR_DATA, "it is no index of this version");
    left = bytes - INDEX_NUMBER; /* the hash is at the end */
    if (number_get(next + left) != hash_bytes(data, left))
        return err_set(err, ERR_DATA, "its hash is not that of its bytes");
    count = number_get(next + INDEX_NUMBER);
    next += 2 * INDEX_NUMBER;
    left -= 2 * INDEX_NUMBER;
    while (left >= 2 * INDEX_NUMBER && index.count < INDEX_SECTIONS_MAX &&
           (uint64_t)index.count < count) {
        const uint64_t length = number_get(next + INDEX_NUMBER);
        index_section_t *section = &index.sections[index.count];

        section->key = number_get(next);
        next += 2 * INDEX_NUMBER;
        left -= 2 * INDEX_NUMBER;
        if (length > left)
            break;
        section->packed = next;
        section->bytes = (size_t)length;
        next += length;
        left -= (size_t)length;
        index.count++;
    }
    if (left > 0 || (uint64_t)index.count != count)
        return err_set(err, ERR_DATA, "it has sections of impossible sizes");
    *out = index;
    return ERR_OK;
}

const index_section_t *hdf5io_index_find(const hdf5io_index_t *index,
                                         uint64_t key)
{
    for (int i = 0; i < index->count; i++)
        if (index->sections[i].key == key)
            return &index->sections[i];
    return NULL;
}

void hdf5io_index_put(hdf5io_index_t *index, const index_section_t *section)
{
    int last = 0;

    while (last < index->count && index->sections[last].key != section->key)
        last++;
    if (last == index->count && index->count < INDEX_SECTIONS_MAX)
        index->count++;
    else if (last == index->count)
        last--;
    memmove(&index->sections[1], &index->sections[0],
            (size_t)last * sizeof *index->sections);
    index->sections[0] = *section;
}

/* The bytes of a file with these sections. */
static size_t file_bytes(const hdf5io_index_t *index)
{
    size_t all = 3 * INDEX_NUMBER;

    for (int i = 0; i < index->count; i++)
        all += 2 * INDEX_NUMBER + index->sections[i].bytes;
    return all;
}

void hdf5io_index_shorten(hdf5io_index_t *index, size_t most)
{
    while (index->count > 0 && file_bytes(index) > most)
        index->count--;
}

err_code_t hdf5io_index_print(const hdf5io_index_t *index, void **out,
                              size_t *bytes, err_t *err)
{
    const size_t all = file_bytes(index);
    unsigned char *next;
    void *data = NULL;
    err_code_t rc;

    rc = mem_alloc(all, "the index of shards", &data, err);
    if (rc != ERR_OK)
        return rc;
    next = number_put(data, INDEX_MARK);
    next = number_put(next, (uint64_t)index->count);
    for (int i = 0; i < index->count; i++) {
        const index_section_t *section = &index->sections[i];

        next = number_put(next, section->key);
        next = number_put(next, section->bytes);
        memcpy(next, section->packed, section->bytes);
        next += section->bytes;
    }
    next = number_put(next, hash_bytes(data, all - INDEX_NUMBER));
    check(next == (unsigned char *)data + all, "%zu bytes are not all", all);
    *out = data;
    *bytes = all;
    return ERR_OK;
}
