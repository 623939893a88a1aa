/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Chunks are computed when they are needed, without a list of them: a wrong
 * manifest of version 1 may give a file any size, and so any number of chunks.
 */
#include "hdf5io/checkpoint_cut.h"

#include "base/check.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_io.h"

/* Cut the files into chunks of [each] bytes. */
static void files_cut(hdf5io_cut_t *cut, uint64_t each)
{
    const hdf5io_manifest_t *m = cut->manifest;

    cut->each = each;
    for (int f = 0; f < m->file_count; f++) {
        const uint64_t bytes = m->files[f].bytes;
        const uint64_t most = bytes < each ? bytes : each;

        cut->files[f + 1] =
            cut->files[f] + (bytes == 0 ? 1 : hdf5io_sums_count(bytes, each));
        if (most > cut->most)
            cut->most = most;
    }
}

/* The first chunk after those of [rank], if [readers] read the files. */
static size_t readers_cut(const hdf5io_cut_t *cut, const int *readers, int rank)
{
    int file = 0;

    while (file < cut->manifest->file_count && readers[file] <= rank)
        file++;
    return cut->files[file];
}

static void ranks_cut(hdf5io_cut_t *cut, int ranks, const int *readers)
{
    const int files = cut->manifest->file_count;
    const size_t chunks = cut->files[files];
    const bool blocks = cut->manifest->block_bytes > 0;

    for (int r = 0; r < ranks; r++) {
        int64_t first, last;

        hdf5io_manifest_share(blocks ? (int64_t)chunks : files, r, ranks,
                              &first, &last);
        cut->ranks[r + 1] = blocks ? (size_t)last : cut->files[last];
        if (readers != NULL)
            cut->ranks[r + 1] = readers_cut(cut, readers, r);
        if (cut->ranks[r + 1] - cut->ranks[r] > cut->turns)
            cut->turns = cut->ranks[r + 1] - cut->ranks[r];
    }
    check(cut->ranks[0] == 0 && cut->ranks[ranks] == chunks,
          "ranks read chunks %zu to %zu of %zu", cut->ranks[0],
          cut->ranks[ranks], chunks);
}

err_code_t hdf5io_cut_open(const hdf5io_manifest_t *manifest, int ranks,
                           const int *readers, hdf5io_cut_t *out, err_t *err)
{
    static const char what[] = "reading a checkpoint";
    const uint64_t block = manifest->block_bytes;
    hdf5io_cut_t cut = {.manifest = manifest};
    err_code_t rc = mem_new(size_t, (size_t)manifest->file_count + 1, what,
                            &cut.files, err);

    if (rc == ERR_OK)
        rc = mem_new(size_t, (size_t)ranks + 1, what, &cut.ranks, err);
    if (rc != ERR_OK) {
        hdf5io_cut_close(&cut);
        return rc;
    }
    files_cut(&cut, block > 0 ? block : MANIFEST_BLOCK);
    ranks_cut(&cut, ranks, readers);
    *out = cut;
    return ERR_OK;
}

void hdf5io_cut_close(hdf5io_cut_t *cut)
{
    mem_free(cut->files);
    mem_free(cut->ranks);
    *cut = (hdf5io_cut_t){0};
}

/* The file of chunk number [chunk]. */
static int file_of(const hdf5io_cut_t *cut, size_t chunk)
{
    int low = 0, high = cut->manifest->file_count - 1;

    while (low < high) {
        const int middle = low + (high - low) / 2;

        if (cut->files[middle + 1] <= chunk)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool hdf5io_cut_chunk(const hdf5io_cut_t *cut, int rank, size_t turn,
                      hdf5io_chunk_t *out)
{
    const size_t count = cut->ranks[rank + 1] - cut->ranks[rank];
    const size_t chunk = cut->ranks[rank] + turn;
    const hdf5io_manifest_file_t *file;
    uint64_t first, left;
    size_t within;
    int number;

    if (turn >= count)
        return false;
    number = file_of(cut, chunk);
    file = &cut->manifest->files[number];
    within = chunk - cut->files[number];
    first = within * cut->each;
    left = file->bytes - first;
    *out = (hdf5io_chunk_t){
        .file = number,
        .first = first,
        .bytes = left < cut->each ? left : cut->each,
        .begins = file->blocks != NULL || within == 0,
        .ends = file->blocks != NULL || chunk + 1 == cut->files[number + 1],
        .hash = file->blocks != NULL ? file->blocks[within] : file->hash};
    return true;
}
