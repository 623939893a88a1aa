/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Pieces are sorted by file and offset, so that the piece of a byte is found by
 * bisection. hdf5io_manifest_parse has checked that pieces do not overlap and
 * lie within their files. */
#include "hdf5io/checkpoint_wants.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"

struct hdf5io_wants {
    hdf5io_wish_t wish;
    hdf5io_manifest_piece_t *pieces; /* sorted by file and offset */
    int count;
};

err_code_t hdf5io_wants_open(const hdf5io_wish_t *wish, hdf5io_wants_t **out,
                             err_t *err)
{
    static const char what[] = "reading a checkpoint";
    const hdf5io_manifest_t *m = wish->manifest;
    hdf5io_wants_t *wants = NULL;
    err_code_t rc = mem_new(hdf5io_wants_t, 1, what, &wants, err);

    if (rc == ERR_OK)
        rc = mem_new(hdf5io_manifest_piece_t, (size_t)m->piece_count, what,
                     &wants->pieces, err);
    if (rc != ERR_OK) {
        hdf5io_wants_close(wants);
        return rc;
    }
    wants->wish = *wish;
    for (int i = 0; i < m->piece_count; i++)
        if (wish->wanted[m->pieces[i].tensor] >= 0)
            wants->pieces[wants->count++] = m->pieces[i];
    if (wants->count > 1)
        qsort(wants->pieces, (size_t)wants->count, sizeof *wants->pieces,
              hdf5io_piece_compare);
    *out = wants;
    return ERR_OK;
}

void hdf5io_wants_close(hdf5io_wants_t *wants)
{
    if (wants == NULL)
        return;
    mem_free(wants->pieces);
    mem_free(wants);
}

static uint64_t piece_end(const hdf5io_manifest_piece_t *piece)
{
    return (uint64_t)piece->offset + (uint64_t)piece->count * sizeof(float);
}

/* The first wanted piece that ends after byte [at] of [file]; NULL: none. */
static const hdf5io_manifest_piece_t *piece_find(const hdf5io_wants_t *wants,
                                                 int file, uint64_t at)
{
    int low = 0, high = wants->count;

    while (low < high) {
        const int middle = low + (high - low) / 2;
        const hdf5io_manifest_piece_t *piece = &wants->pieces[middle];

        if (piece->file < file ||
            (piece->file == file && piece_end(piece) <= at))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == wants->count || wants->pieces[low].file != file)
        return NULL;
    return &wants->pieces[low];
}

/* The part that has byte [at] of the tensor. */
static const hdf5io_part_t *part_find(const hdf5io_tensor_t *tensor,
                                      uint64_t at)
{
    int low = 0, high = tensor->part_count - 1;

    check(high >= 0, "%s has no part", tensor->name);
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const hdf5io_part_t *part = &tensor->parts[middle];

        if ((uint64_t)(part->first + part->count) * sizeof(float) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return &tensor->parts[low];
}

static void limit(uint64_t *count, uint64_t most)
{
    if (*count > most)
        *count = most;
}

void *hdf5io_wants_place(const hdf5io_wants_t *wants, int file, uint64_t at,
                         uint64_t *count)
{
    const hdf5io_manifest_piece_t *piece = piece_find(wants, file, at);
    const hdf5io_tensor_t *tensor;
    const hdf5io_part_t *part;
    uint64_t begin, within; /* bytes of the tensor */

    if (piece == NULL)
        return NULL;
    if ((uint64_t)piece->offset > at) {
        limit(count, (uint64_t)piece->offset - at);
        return NULL;
    }
    limit(count, piece_end(piece) - at);
    tensor = &wants->wish.tensors[wants->wish.wanted[piece->tensor]];
    within =
        (uint64_t)piece->first * sizeof(float) + at - (uint64_t)piece->offset;
    if (tensor->parts == NULL)
        return (char *)tensor->data + within;
    part = part_find(tensor, within);
    begin = (uint64_t)part->first * sizeof(float);
    check(within >= begin, "%s: byte %llu is in no part", tensor->name,
          (unsigned long long)within);
    limit(count, begin + (uint64_t)part->count * sizeof(float) - within);
    return part->rank == wants->wish.rank
               ? (char *)part->data + (within - begin)
               : NULL;
}

void hdf5io_wants_copy(const hdf5io_wants_t *wants, int file, uint64_t at,
                       const void *bytes, uint64_t count)
{
    const char *from = bytes;

    while (count > 0) {
        uint64_t run = count;
        void *to = hdf5io_wants_place(wants, file, at, &run);

        if (to != NULL)
            memcpy(to, from, (size_t)run);
        from += run;
        at += run;
        count -= run;
    }
}

bool hdf5io_wants_any(const hdf5io_wants_t *wants, int file, uint64_t at,
                      uint64_t count)
{
    const hdf5io_manifest_piece_t *piece = piece_find(wants, file, at);

    return piece != NULL && count > 0 && (uint64_t)piece->offset < at + count;
}
