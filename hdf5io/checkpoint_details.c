/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "hdf5io/checkpoint_details.h"

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_vote.h"

/* ---- who and what -------------------------------------------------------- */

/* Sort the numbers i = 0 to [count] - 1 by file_of[i], the file of number i;
 * those with -1 are left out. The numbers of file f become order[first[f]] to
 * order[first[f + 1] - 1]. [first] has [files] + 1 zeros. */
static void files_list(const int *file_of, int count, int *first, int files,
                       int *order)
{
    for (int i = 0; i < count; i++)
        if (file_of[i] >= 0)
            first[file_of[i] + 1]++;
    for (int f = 0; f < files; f++)
        first[f + 1] += first[f];
    for (int i = 0; i < count; i++)
        if (file_of[i] >= 0)
            order[first[file_of[i]]++] = i;
    for (int f = files; f > 0; f--)
        first[f] = first[f - 1];
    first[0] = 0;
}

static err_code_t pieces_list(hdf5io_details_t *d, err_t *err)
{
    const hdf5io_manifest_t *m = d->manifest;
    int *file_of = NULL;
    err_code_t rc =
        mem_new(int, (size_t)m->piece_count, "a manifest", &file_of, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < m->piece_count; i++)
        file_of[i] = m->pieces[i].file;
    files_list(file_of, m->piece_count, d->pieces, m->file_count, d->order);
    mem_free(file_of);
    return ERR_OK;
}

err_code_t hdf5io_details_open(hdf5io_manifest_t *manifest,
                               const hdf5io_votes_t *votes,
                               hdf5io_details_t *out, err_t *err)
{
    static const char what[] = "a manifest";
    const size_t files = (size_t)manifest->file_count + 1;
    hdf5io_details_t d = {.votes = votes, .manifest = manifest};
    err_code_t rc = mem_new(int, files, what, &d.pieces, err);

    if (rc == ERR_OK)
        rc = mem_new(int, files, what, &d.writers, err);
    if (rc == ERR_OK)
        rc = mem_new(int, (size_t)manifest->piece_count, what, &d.order, err);
    if (rc == ERR_OK)
        rc = mem_new(int, (size_t)votes->size, what, &d.ranks, err);
    if (rc == ERR_OK)
        rc = pieces_list(&d, err);
    if (rc != ERR_OK) {
        hdf5io_details_close(&d);
        return rc;
    }
    files_list(manifest->file_of, votes->size, d.writers, manifest->file_count,
               d.ranks);
    *out = d;
    return ERR_OK;
}

void hdf5io_details_close(hdf5io_details_t *details)
{
    mem_free(details->pieces);
    mem_free(details->writers);
    mem_free(details->order);
    mem_free(details->ranks);
    *details = (hdf5io_details_t){0};
}

int hdf5io_details_file(const hdf5io_details_t *details)
{
    return details->manifest->file_of[details->votes->rank];
}

int hdf5io_details_writers(const hdf5io_details_t *details, int file)
{
    return details->writers[file + 1] - details->writers[file];
}

int hdf5io_details_head(const hdf5io_details_t *details, int file)
{
    return details->ranks[details->writers[file]];
}

/* Set *first and *last: writer number [number] of [file] hashes blocks *first
 * to *last - 1. */
static void blocks_of(const hdf5io_details_t *d, int file, int number,
                      size_t *first, size_t *last)
{
    int64_t from, to;

    hdf5io_manifest_share((int64_t)hdf5io_blocks_count(d->manifest, file),
                          number, hdf5io_details_writers(d, file), &from, &to);
    *first = (size_t)from;
    *last = (size_t)to;
}

void hdf5io_details_blocks(const hdf5io_details_t *details, size_t *first,
                           size_t *last)
{
    const int file = hdf5io_details_file(details);
    int number = 0;

    check(file >= 0, "rank %d writes no file", details->votes->rank);
    while (details->ranks[details->writers[file] + number] !=
           details->votes->rank)
        number++;
    blocks_of(details, file, number, first, last);
}

/* ---- exchanges ----------------------------------------------------------- */

/* Copy what writer number [number] of [file] tells the others from the manifest
 * to [out] or, with [enter], from [out] into the manifest. Returns the count of
 * these numbers. If [out] is NULL, nothing is copied. */
typedef size_t (*copy_t)(hdf5io_details_t *d, int file, int number,
                         uint64_t *out, bool enter);

static size_t places_copy(hdf5io_details_t *d, int file, int number,
                          uint64_t *out, bool enter)
{
    hdf5io_manifest_file_t *entry = &d->manifest->files[file];
    const int first = d->pieces[file], last = d->pieces[file + 1];

    if (number > 0)
        return 0;
    if (out != NULL && enter)
        entry->bytes = out[0];
    else if (out != NULL)
        out[0] = entry->bytes;
    for (int i = first; i < last && out != NULL; i++) {
        hdf5io_manifest_piece_t *piece = &d->manifest->pieces[d->order[i]];

        if (enter)
            piece->offset = (int64_t)out[1 + i - first];
        else
            out[1 + i - first] = (uint64_t)piece->offset;
    }
    return 1 + (size_t)(last - first);
}

static size_t hashes_copy(hdf5io_details_t *d, int file, int number,
                          uint64_t *out, bool enter)
{
    hdf5io_manifest_file_t *entry = &d->manifest->files[file];
    size_t first, last;

    blocks_of(d, file, number, &first, &last);
    if (out != NULL && enter)
        entry->hash = out[0];
    else if (out != NULL)
        out[0] = entry->hash;
    for (size_t b = first; b < last && out != NULL; b++)
        if (enter)
            entry->blocks[b] = out[1 + b - first];
        else
            out[1 + b - first] = entry->blocks[b];
    return 1 + last - first;
}

/* The largest count of numbers of a writer. */
static size_t most_of(hdf5io_details_t *d, copy_t copy)
{
    size_t most = 0;

    for (int f = 0; f < d->manifest->file_count; f++)
        for (int n = 0; n < hdf5io_details_writers(d, f); n++) {
            const size_t count = copy(d, f, n, NULL, false);

            most = count > most ? count : most;
        }
    return most;
}

/* Copy the numbers of this rank to [numbers] or, with [enter], those of all
 * ranks from [numbers], which has room for [most] numbers of each rank, into
 * the manifest.
 * NOLINTBEGIN(clang-analyzer-core.NullDereference): the vote has checked the
 * allocation. */
static void numbers_copy(hdf5io_details_t *d, copy_t copy, uint64_t *numbers,
                         size_t most, bool enter)
{
    for (int f = 0; f < d->manifest->file_count; f++)
        for (int n = 0; n < hdf5io_details_writers(d, f); n++) {
            const int rank = d->ranks[d->writers[f] + n];

            if (enter)
                copy(d, f, n, numbers + (size_t)rank * most, true);
            else if (rank == d->votes->rank)
                copy(d, f, n, numbers, false);
        }
}
/* NOLINTEND(clang-analyzer-core.NullDereference) */

static err_code_t details_exchange(hdf5io_details_t *d, copy_t copy,
                                   err_t *memory, bool *agreed, err_t *err)
{
    const size_t most = most_of(d, copy), size = (size_t)d->votes->size;
    uint64_t *mine = NULL, *all = NULL;
    err_code_t rc;

    if (memory->code == ERR_OK &&
        mem_new(uint64_t, most, "a manifest", &mine, memory) == ERR_OK)
        mem_new(uint64_t, size * most, "a manifest", &all, memory);
    rc = hdf5io_vote(d->votes, memory, NULL, NULL, agreed, err);
    if (rc == ERR_OK) {
        numbers_copy(d, copy, mine, most, false);
        rc = d->votes->exchange(d->votes->context, mine, most * sizeof *mine,
                                all, err);
        *agreed = rc == ERR_OK;
    }
    if (rc == ERR_OK)
        numbers_copy(d, copy, all, most, true);
    mem_free(all);
    mem_free(mine);
    return rc;
}

err_code_t hdf5io_details_places(hdf5io_details_t *details, bool *agreed,
                                 err_t *err)
{
    err_t memory = ERR_INIT;

    return details_exchange(details, places_copy, &memory, agreed, err);
}

err_code_t hdf5io_details_hashes(hdf5io_details_t *details, bool *agreed,
                                 err_t *err)
{
    hdf5io_manifest_t *m = details->manifest;
    err_t memory = ERR_INIT;

    for (int f = 0; f < m->file_count && memory.code == ERR_OK; f++)
        hdf5io_blocks_open(m, f, &memory);
    return details_exchange(details, hashes_copy, &memory, agreed, err);
}
