/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A chunk is read and hashed in bites that fit into the processor's cache. A
 * single rank reads long runs straight into the tensors. Several ranks read
 * into the window (checkpoint_window.h). In the window each rank has a slot,
 * with space for a slice of its chunk, or for some short chunks. The whole
 * window fits into a cache, too. In each pass of a turn, every rank reads and
 * hashes a slice, and copies the bytes of this slice that its tensors need.
 * Then all ranks exchange their slices, and each rank copies the bytes that its
 * tensors need from the slices of the other ranks. So all ranks send about as
 * many bytes at a time, which makes an all-gather of ranges fast. A rank that
 * cannot read takes part in the passes that are left, and tells its error in
 * the vote at the end of the turn.
 */
#include "hdf5io/checkpoint_load.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_blocks.h"
#include "hdf5io/checkpoint_cut.h"
#include "hdf5io/checkpoint_wants.h"
#include "hdf5io/checkpoint_window.h"

#define BITE ((size_t)256 << 10)
/* Runs of at least so many bytes are read straight into their tensor. */
#define DIRECT_MIN ((uint64_t)64 << 10)
/* Bytes of the window. With many ranks it is larger, so that each rank has
 * EACH_LEAST bytes of it, enough for one message of a network. */
#define WINDOW ((uint64_t)32 << 20)
#define EACH_LEAST ((uint64_t)64 << 10)
/* A rank has at most so many bytes of the window: they stay in a cache. */
#define EACH_MOST ((uint64_t)1 << 20)

/* One exchange through the window, of a slice of each chunk of a turn. */
typedef struct pass {
    size_t turn;
    uint64_t from; /* offset of the slices in their chunks */
} pass_t;

typedef struct loader {
    const hdf5io_load_t *load;
    const hdf5io_manifest_t *manifest;
    const hdf5io_votes_t *votes;
    hdf5io_cut_t cut;
    hdf5io_wants_t *wants;
    hash_state_t *hash; /* of the current block, in version 1 of the file */
    char *path;         /* of the open file; NULL: none */
    hdf5io_io_file_t file;
    int number;             /* of the open file in the manifest */
    char *scratch;          /* [BITE]: bytes that are only hashed or copied */
    size_t depth;           /* chunks of a rank in a turn */
    uint64_t slice;         /* bytes of a chunk in one exchange */
    hdf5io_window_t window; /* unused if there is one rank */
    retry_cause_t cause;    /* of this rank's error */
} loader_t;

err_code_t hdf5io_load_vote(const hdf5io_votes_t *votes,
                            hdf5io_ballot_t *ballots, const err_t *mine,
                            retry_cause_t cause, uint64_t numbers[VOTE_NUMBERS],
                            bool *damaged, err_t *err)
{
    const bool bad = mine->code == ERR_DATA && cause == RETRY_ABSENT;
    const err_t none = ERR_INIT;
    err_code_t rc;

    numbers[VOTE_NUMBERS - 1] = bad;
    rc = hdf5io_vote(votes, bad ? &none : mine, numbers, ballots, NULL, err);
    for (int i = 0; rc == ERR_OK && i < votes->size; i++)
        *damaged |= ballots[i].numbers[VOTE_NUMBERS - 1] != 0;
    if (rc != ERR_OK || !*damaged)
        return rc;
    return hdf5io_vote(votes, mine, NULL, NULL, NULL, err);
}

/* ---- opening ------------------------------------------------------------- */

static uint64_t at_most(uint64_t count, uint64_t most)
{
    return count < most ? count : most;
}

static uint64_t room_of(uint64_t bytes)
{
    return (bytes + HDF5IO_SPREAD_ALIGN - 1) / HDF5IO_SPREAD_ALIGN *
           HDF5IO_SPREAD_ALIGN;
}

/* Bytes of the window that one rank has. */
static uint64_t window_each(const loader_t *l)
{
    const uint64_t size = (uint64_t)l->votes->size;
    const uint64_t each =
        (l->load->window > 0 ? l->load->window : WINDOW) / size;

    if (l->load->window > 0)
        return each < HDF5IO_SPREAD_ALIGN
                   ? HDF5IO_SPREAD_ALIGN
                   : each / HDF5IO_SPREAD_ALIGN * HDF5IO_SPREAD_ALIGN;
    return each < EACH_LEAST ? EACH_LEAST
                             : at_most(each, EACH_MOST) / HDF5IO_SPREAD_ALIGN *
                                   HDF5IO_SPREAD_ALIGN;
}

static err_code_t window_open(loader_t *l, err_t *err)
{
    static const char what[] = "reading a checkpoint";
    const uint64_t chunk = room_of(l->cut.most > 0 ? l->cut.most : 1);
    const uint64_t each = window_each(l);
    err_code_t rc;

    l->depth = 1;
    l->slice = chunk;
    rc = mem_new(char, BITE, what, &l->scratch, err);
    if (l->votes->size == 1 || rc != ERR_OK)
        return rc;
    if (each < chunk)
        l->slice = each;
    else if (l->cut.turns > 1)
        l->depth = (size_t)at_most(each / chunk, l->cut.turns);
    return hdf5io_window_open(l->load->spread, (size_t)(l->slice * l->depth),
                              &l->window, err);
}

static err_code_t loader_open(loader_t *l, err_t *err)
{
    const hdf5io_wish_t wish = {.manifest = l->manifest,
                                .tensors = l->load->tensors,
                                .wanted = l->load->wanted,
                                .rank = l->votes->rank};
    err_code_t rc = hdf5io_cut_open(l->manifest, l->votes->size,
                                    l->load->readers, &l->cut, err);

    if (rc == ERR_OK)
        rc = hdf5io_wants_open(&wish, &l->wants, err);
    if (rc == ERR_OK)
        rc = window_open(l, err);
    l->hash = hash_state_open();
    return rc;
}

static void file_close(loader_t *l)
{
    if (l->path != NULL)
        hdf5io_io_file_close(&l->file);
    free(l->path);
    l->path = NULL;
}

static void loader_close(loader_t *l)
{
    file_close(l);
    hash_state_free(l->hash);
    hdf5io_wants_close(l->wants);
    hdf5io_cut_close(&l->cut);
    mem_free(l->scratch);
    hdf5io_window_close(&l->window);
}

/* ---- one chunk ----------------------------------------------------------- */

/* Open file number [number], unless it is open, and compare its size. */
static err_code_t file_choose(loader_t *l, int number, err_t *err)
{
    const hdf5io_manifest_file_t *want = &l->manifest->files[number];
    err_code_t rc;

    if (l->path != NULL && l->number == number)
        return ERR_OK;
    file_close(l);
    l->path = str_printf("%s/%s", l->load->saved.directory, want->name);
    l->number = number;
    rc = hdf5io_io_file_open(l->load->saved.io, l->path, &l->file, &l->cause,
                             err);
    if (rc != ERR_OK || l->file.size == want->bytes)
        return rc;
    l->cause = RETRY_ABSENT;
    return err_set(err, ERR_DATA, "%s: it has %llu bytes instead of %llu",
                   l->path, (unsigned long long)l->file.size,
                   (unsigned long long)want->bytes);
}

/* Read and hash [count] bytes at [at]. */
static err_code_t bite_read(loader_t *l, void *to, uint64_t at, uint64_t count,
                            err_t *err)
{
    err_code_t rc = hdf5io_io_file_read(&l->file, to, (size_t)count, (off_t)at,
                                        &l->cause, err);

    if (rc == ERR_OK)
        hash_state_add(l->hash, to, (size_t)count);
    return rc;
}

/* Number of bytes from [at] on that are read into the scratch: all before the
 * next run that is read straight into a tensor, at most [count] and BITE. */
static uint64_t scratch_run(const loader_t *l, const hdf5io_chunk_t *chunk,
                            uint64_t at, uint64_t count)
{
    uint64_t run = 0;

    count = at_most(count, BITE);
    while (run < count) {
        uint64_t next = DIRECT_MIN;

        if (hdf5io_wants_place(l->wants, chunk->file, at + run, &next) !=
                NULL &&
            next == DIRECT_MIN && run > 0)
            break;
        run += next;
    }
    return at_most(run, count);
}

/* Read the chunk into the tensors. */
static err_code_t chunk_place(loader_t *l, const hdf5io_chunk_t *chunk,
                              err_t *err)
{
    const uint64_t end = chunk->first + chunk->bytes;
    err_code_t rc = ERR_OK;

    for (uint64_t at = chunk->first; at < end && rc == ERR_OK;) {
        uint64_t run = at_most(end - at, BITE);
        void *to = hdf5io_wants_place(l->wants, chunk->file, at, &run);

        if (to != NULL && run >= DIRECT_MIN) {
            rc = bite_read(l, to, at, run, err);
        } else {
            run = scratch_run(l, chunk, at, end - at);
            rc = bite_read(l, l->scratch, at, run, err);
            if (rc == ERR_OK)
                hdf5io_wants_copy(l->wants, chunk->file, at, l->scratch, run);
        }
        at += run;
    }
    return rc;
}

/* Read the [bytes] bytes from [first] on to [to], and hash them. If [to] is
 * NULL, they are only hashed. */
static err_code_t slice_read(loader_t *l, uint64_t first, uint64_t bytes,
                             char *to, err_t *err)
{
    err_code_t rc = ERR_OK;

    for (uint64_t done = 0; done < bytes && rc == ERR_OK;) {
        const uint64_t run = at_most(bytes - done, BITE);

        rc = bite_read(l, to == NULL ? l->scratch : to + done, first + done,
                       run, err);
        done += run;
    }
    return rc;
}

static err_code_t hash_compare(loader_t *l, const hdf5io_chunk_t *chunk,
                               err_t *err)
{
    const uint64_t found = hash_state_value(l->hash);
    char expected[HASH_TEXT_MAX], hash[HASH_TEXT_MAX];

    if (found == chunk->hash)
        return ERR_OK;
    l->cause = RETRY_ABSENT;
    hash_format(found, hash);
    hash_format(chunk->hash, expected);
    if (l->manifest->block_bytes == 0)
        return err_set(err, ERR_DATA,
                       "%s: its content has the hash %s instead of %s, so it "
                       "is damaged",
                       l->path, hash, expected);
    return err_set(
        err, ERR_DATA,
        "%s: its content from byte %llu on, block %llu of %zu, has "
        "the hash %s instead of %s, so it is damaged",
        l->path, (unsigned long long)chunk->first,
        (unsigned long long)(chunk->first / l->manifest->block_bytes),
        hdf5io_blocks_count(l->manifest, chunk->file), hash, expected);
}

/* Begin to read this rank's chunk. */
static err_code_t chunk_begin(loader_t *l, const hdf5io_chunk_t *chunk,
                              err_t *err)
{
    if (chunk->begins)
        hash_state_reset(l->hash);
    return file_choose(l, chunk->file, err);
}

/* All bytes of the chunk are read. If the chunk is the end of a block (in
 * version 1: of a file), compare the hash. */
static err_code_t chunk_end(loader_t *l, const hdf5io_chunk_t *chunk,
                            err_t *err)
{
    return chunk->ends ? hash_compare(l, chunk, err) : ERR_OK;
}

/* ---- turns --------------------------------------------------------------- */

/* What one rank puts into the window from one of its chunks. */
typedef struct pane {
    hdf5io_chunk_t chunk;
    uint64_t first, bytes; /* part of the chunk; bytes 0: nobody wants it */
    size_t room;           /* bytes that it takes in the window */
} pane_t;

/* Get pane number [index] of [rank]. False: there are no more. */
static bool pane_get(const loader_t *l, int rank, size_t index, pass_t pass,
                     pane_t *out)
{
    hdf5io_chunk_t *chunk = &out->chunk;

    if (index >= l->depth ||
        !hdf5io_cut_chunk(&l->cut, rank, pass.turn * l->depth + index, chunk))
        return false;
    out->first = chunk->first + pass.from;
    out->bytes = chunk->bytes > pass.from
                     ? at_most(chunk->bytes - pass.from, l->slice)
                     : 0;
    if (!hdf5io_wants_any(l->wants, chunk->file, out->first, out->bytes))
        out->bytes = 0;
    out->room = (size_t)room_of(out->bytes);
    return true;
}

/* Set the cuts of the window. Returns the number of bytes to exchange. */
static size_t window_cut(loader_t *l, pass_t pass)
{
    const int size = l->votes->size;
    size_t at = 0;

    for (int r = 0; r < size; r++) {
        pane_t pane;

        l->window.cuts[r] = at;
        for (size_t i = 0; pane_get(l, r, i, pass, &pane); i++)
            at += pane.room;
    }
    l->window.cuts[size] = at;
    return at;
}

/* The slices of [rank] are at [from]. Copy the bytes that the tensors of this
 * rank need. */
static void slices_take(const loader_t *l, int rank, pass_t pass,
                        const char *from)
{
    pane_t pane;

    for (size_t i = 0; pane_get(l, rank, i, pass, &pane); i++) {
        hdf5io_wants_copy(l->wants, pane.chunk.file, pane.first, from,
                          pane.bytes);
        from += pane.room;
    }
}

/* Exchange the slices, and copy the bytes that the tensors of this rank need
 * from the slices of the other ranks. */
static err_code_t window_pass(loader_t *l, pass_t pass, err_t *err)
{
    const err_code_t rc = hdf5io_window_exchange(&l->window, err);

    for (int r = 0; r < l->votes->size && rc == ERR_OK; r++)
        if (r != l->votes->rank)
            slices_take(l, r, pass, hdf5io_window_bytes(&l->window, r));
    return rc;
}

/* Are the last bytes of the pane's chunk in its slice of [pass]? */
static bool pane_ends(const loader_t *l, const pane_t *pane, pass_t pass)
{
    const uint64_t bytes = pane->chunk.bytes;

    return bytes <= pass.from + l->slice &&
           (bytes > pass.from || pass.from == 0);
}

/* Read this rank's slices of [pass] to [to]. A slice that no rank needs is only
 * hashed. */
static err_code_t pass_read(loader_t *l, pass_t pass, char *to, err_t *err)
{
    const int rank = l->votes->rank;
    pane_t pane;
    err_code_t rc = ERR_OK;

    for (size_t i = 0; rc == ERR_OK && pane_get(l, rank, i, pass, &pane); i++) {
        const hdf5io_chunk_t *chunk = &pane.chunk;
        const uint64_t end = chunk->first + chunk->bytes;

        if (pass.from == 0)
            rc = chunk_begin(l, chunk, err);
        if (rc == ERR_OK && pane.first < end)
            rc = slice_read(l, pane.first, at_most(end - pane.first, l->slice),
                            pane.bytes > 0 ? to : NULL, err);
        if (rc == ERR_OK && pane_ends(l, &pane, pass))
            rc = chunk_end(l, chunk, err);
        to += pane.room;
    }
    return rc;
}

/* Read and exchange the slices of a turn, one after the other. [mine] becomes
 * this rank's error. Returns an error of the exchange, which all ranks get. */
static err_code_t turn_pass(loader_t *l, size_t turn, err_t *mine, err_t *err)
{
    pass_t pass = {.turn = turn};
    err_code_t rc = ERR_OK;

    do {
        const size_t bytes = window_cut(l, pass);
        char *slot = hdf5io_window_slot(&l->window);

        if (mine->code == ERR_OK && pass_read(l, pass, slot, mine) == ERR_OK)
            slices_take(l, l->votes->rank, pass, slot);
        if (bytes > 0)
            rc = window_pass(l, pass, err);
        pass.from += l->slice;
    } while (pass.from < l->cut.most && rc == ERR_OK);
    return rc;
}

/* A rank that is alone reads its chunk into the tensors. */
static err_code_t turn_alone(loader_t *l, size_t turn, err_t *err)
{
    hdf5io_chunk_t chunk;
    err_code_t rc;

    if (!hdf5io_cut_chunk(&l->cut, 0, turn, &chunk))
        return ERR_OK;
    rc = chunk_begin(l, &chunk, err);
    if (rc == ERR_OK)
        rc = chunk_place(l, &chunk, err);
    return rc == ERR_OK ? chunk_end(l, &chunk, err) : rc;
}

static err_code_t turn_make(loader_t *l, size_t turn, bool *damaged, err_t *err)
{
    uint64_t numbers[VOTE_NUMBERS] = {0};
    err_t mine = ERR_INIT;
    err_code_t rc = ERR_OK;

    l->cause = RETRY_ABSENT;
    if (l->votes->size == 1)
        turn_alone(l, turn, &mine);
    else
        rc = turn_pass(l, turn, &mine, err);
    return rc == ERR_OK ? hdf5io_load_vote(l->votes, l->load->ballots, &mine,
                                           l->cause, numbers, damaged, err)
                        : rc;
}

err_code_t hdf5io_load(const hdf5io_load_t *load, bool *damaged, err_t *err)
{
    loader_t l = {.load = load,
                  .manifest = load->saved.manifest,
                  .votes = load->spread->votes};
    err_t mine = ERR_INIT;
    err_code_t rc;

    *damaged = false;
    loader_open(&l, &mine);
    rc = hdf5io_vote(l.votes, &mine, NULL, NULL, NULL, err);
    if (rc == ERR_OK && l.votes->size > 1)
        rc = hdf5io_window_share(&l.window, err);
    for (size_t turn = 0; turn * l.depth < l.cut.turns && rc == ERR_OK; turn++)
        rc = turn_make(&l, turn, damaged, err);
    loader_close(&l);
    return rc;
}

/* The exchange of a rank that is alone. */
static err_code_t alone(void *context, const void *mine, size_t bytes,
                        void *all, err_t *err)
{
    (void)context;
    (void)err;
    if (bytes > 0)
        memcpy(all, mine, bytes);
    return ERR_OK;
}

err_code_t hdf5io_load_check(const hdf5io_saved_t *saved, bool *damaged,
                             err_t *err)
{
    const hdf5io_votes_t votes = {.size = 1, .exchange = alone};
    const int tensors = saved->manifest->tensor_count;
    hdf5io_spread_t spread = {.votes = &votes};
    hdf5io_ballot_t ballot;
    int *wanted = NULL;
    err_code_t rc =
        mem_new(int, (size_t)tensors, "verifying a checkpoint", &wanted, err);

    *damaged = false;
    for (int i = 0; rc == ERR_OK && i < tensors; i++)
        wanted[i] = -1;
    if (rc == ERR_OK)
        rc = hdf5io_load(&(hdf5io_load_t){.saved = *saved,
                                          .spread = &spread,
                                          .ballots = &ballot,
                                          .wanted = wanted},
                         damaged, err);
    mem_free(wanted);
    return rc;
}
