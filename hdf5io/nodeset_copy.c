/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The members exchange slices of their parts, in rounds, so that the memory
 * does not depend on the sizes of the parts. */
#include "hdf5io/nodeset_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_spread.h"
#include "hdf5io/checkpoint_vote.h"

/* Bytes of a part in one exchange, unless the configuration has a window. */
#define SLICE ((uint64_t)4 << 20)

/* A part of another node that this rank keeps. */
typedef struct kept {
    char *path; /* NULL: it is not kept */
    int fd;
    hash_state_t *hash;
} kept_t;

typedef struct copier {
    const hdf5io_nodeset_copy_t *copy;
    const hdf5io_votes_t *partners;
    hdf5io_spread_t spread;
    uint64_t slice; /* bytes of a part in one exchange */
    char *window;
    size_t *cuts; /* [members + 1] of the window */
    kept_t *kept; /* [members] */
} copier_t;

/* ---- who keeps what ------------------------------------------------------ */

/* The next node after that of members[member]: the nodes of the members are
 * ordered by their numbers, and the first one follows the last one. */
static int next_node(const hdf5io_nodeset_t *set, int member)
{
    const int own = set->nodes[set->members[member]];
    int next = -1, first = own;

    for (int m = 0; m < set->partners->size; m++) {
        const int node = set->nodes[set->members[m]];

        if (node > own && (next < 0 || node < next))
            next = node;
        if (node < first)
            first = node;
    }
    return next < 0 ? first : next;
}

/* The place of [member] among the members on its node, from 0 on. *count
 * becomes the number of members on this node. */
static int place_of(const hdf5io_nodeset_t *set, int member, int *count)
{
    int place = 0;

    *count = 0;
    for (int m = 0; m < set->partners->size; m++) {
        if (set->nodes[set->members[m]] != set->nodes[set->members[member]])
            continue;
        place += m < member;
        ++*count;
    }
    return place;
}

bool hdf5io_nodeset_keeps(const hdf5io_nodeset_t *set, int keeper, int member)
{
    const int node = set->nodes[set->members[keeper]];
    int mine, theirs, place;

    if (node == set->nodes[set->members[member]] ||
        node != next_node(set, member))
        return false;
    place = place_of(set, keeper, &mine);
    return mine > 0 && place_of(set, member, &theirs) % mine == place;
}

/* ---- opening ------------------------------------------------------------- */

static const hdf5io_manifest_file_t *part_of(const copier_t *c, int member)
{
    const hdf5io_manifest_t *m = c->copy->manifest;
    const int file = m->file_of[c->copy->set->members[member]];

    return file < 0 ? NULL : &m->files[file];
}

static err_code_t copier_open(copier_t *c, err_t *err)
{
    static const char what[] = "copies of a local checkpoint";
    const size_t members = (size_t)c->partners->size;
    const uint64_t window = c->copy->set->checkpoint->window_bytes;
    err_code_t rc = hdf5io_spread_open(c->partners, &c->spread, err);

    c->slice = SLICE;
    if (window > 0)
        c->slice =
            (window / members / HDF5IO_SPREAD_ALIGN + 1) * HDF5IO_SPREAD_ALIGN;
    if (rc == ERR_OK)
        rc = mem_new(char, (size_t)c->slice *members, what, &c->window, err);
    if (rc == ERR_OK)
        rc = mem_new(size_t, members + 1, what, &c->cuts, err);
    if (rc == ERR_OK)
        rc = mem_new(kept_t, members, what, &c->kept, err);
    return rc;
}

/* Create the files of the parts that this rank keeps. */
static void kept_open(copier_t *c, err_t *err)
{
    for (int m = 0; m < c->partners->size; m++) {
        const hdf5io_manifest_file_t *part = part_of(c, m);
        kept_t *kept = &c->kept[m];

        kept->fd = -1;
        if (part == NULL ||
            !hdf5io_nodeset_keeps(c->copy->set, c->partners->rank, m))
            continue;
        kept->path = str_printf("%s/%s", c->copy->directory, part->name);
        kept->hash = hash_state_open();
        kept->fd =
            open(kept->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (kept->fd < 0 && err->code == ERR_OK)
            err_set(err, ERR_IO, "%s: cannot create: %s", kept->path,
                    strerror(errno));
    }
}

/* Close the files, and compare what has arrived. */
static void kept_close(copier_t *c, err_t *err)
{
    for (int m = 0; m < c->partners->size; m++) {
        const kept_t *kept = &c->kept[m];

        if (kept->fd >= 0 && close(kept->fd) != 0 && err->code == ERR_OK)
            err_set(err, ERR_IO, "%s: close failed: %s", kept->path,
                    strerror(errno));
        if (kept->path != NULL && err->code == ERR_OK &&
            hash_state_value(kept->hash) != part_of(c, m)->hash)
            err_set(err, ERR_IO,
                    "%s: the part was changed on its way from rank %d",
                    kept->path, c->copy->set->members[m]);
        hash_state_free(kept->hash);
        free(kept->path);
    }
}

static void copier_close(copier_t *c)
{
    mem_free(c->kept);
    mem_free(c->cuts);
    mem_free(c->window);
    hdf5io_spread_close(&c->spread);
}

/* ---- one round ----------------------------------------------------------- */

/* Bytes of the slice of [member] at [at]. */
static uint64_t slice_of(const copier_t *c, int member, uint64_t at)
{
    const hdf5io_manifest_file_t *part = part_of(c, member);

    if (part == NULL || part->bytes <= at)
        return 0;
    return part->bytes - at < c->slice ? part->bytes - at : c->slice;
}

/* Copy [count] bytes at [at] of this rank's part to [to]. */
static void slice_fill(const copier_t *c, uint64_t at, uint64_t count, char *to)
{
    const hdf5io_share_t *share = c->copy->share;
    uint64_t before = 0;

    for (int i = 0; i < hdf5io_share_runs(share) && count > 0; i++) {
        const hdf5io_run_t run = hdf5io_share_run(share, i);
        const uint64_t bytes = (uint64_t)run.count * sizeof(float);

        if (at < before + bytes) {
            const uint64_t skip = at - before;
            const uint64_t bite = bytes - skip < count ? bytes - skip : count;

            memcpy(to, (const char *)run.data + skip, (size_t)bite);
            to += bite;
            at += bite;
            count -= bite;
        }
        before += bytes;
    }
}

/* Write what has arrived. After an error the rest is left out. */
static void slices_write(const copier_t *c, uint64_t at, err_t *err)
{
    for (int m = 0; m < c->partners->size; m++) {
        const kept_t *kept = &c->kept[m];
        const char *bytes = c->window + c->cuts[m];
        const uint64_t count = slice_of(c, m, at);

        if (kept->fd < 0 || count == 0 || err->code != ERR_OK)
            continue;
        hash_state_add(kept->hash, bytes, (size_t)count);
        hdf5io_io_write(c->copy->io, kept->fd, kept->path,
                        &(hdf5io_io_data_t){bytes, (size_t)count, (off_t)at},
                        err);
    }
}

/* Exchange the slices at [at]. This rank's own error becomes [own], and does
 * not end the round. */
static err_code_t round_make(copier_t *c, uint64_t at, err_t *own, err_t *err)
{
    const int rank = c->partners->rank;
    err_code_t rc;

    for (int m = 0; m < c->partners->size; m++) {
        const size_t room =
            (size_t)(slice_of(c, m, at) + HDF5IO_SPREAD_ALIGN - 1) /
            HDF5IO_SPREAD_ALIGN * HDF5IO_SPREAD_ALIGN;

        c->cuts[m + 1] = c->cuts[m] + room;
    }
    slice_fill(c, at, slice_of(c, rank, at), c->window + c->cuts[rank]);
    rc = hdf5io_spread_ranges(&c->spread, c->window, c->cuts, err);
    if (rc == ERR_OK)
        slices_write(c, at, own);
    return rc;
}

err_code_t hdf5io_nodeset_copy(const hdf5io_nodeset_copy_t *copy, err_t *err)
{
    copier_t c = {.copy = copy, .partners = copy->set->partners};
    err_t own = ERR_INIT, memory = ERR_INIT;
    uint64_t most = 0;
    err_code_t rc;

    copier_open(&c, &memory);
    rc = hdf5io_vote(c.partners, &memory, NULL, NULL, NULL, err);
    if (rc == ERR_OK) {
        kept_open(&c, &own);
        for (int m = 0; m < c.partners->size; m++)
            if (part_of(&c, m) != NULL && part_of(&c, m)->bytes > most)
                most = part_of(&c, m)->bytes;
        for (uint64_t at = 0; at < most && rc == ERR_OK; at += c.slice)
            rc = round_make(&c, at, &own, err);
        if (rc != ERR_OK)
            err_copy(&own, err);
        kept_close(&c, &own);
        if (rc == ERR_OK && own.code != ERR_OK)
            rc = err_copy(err, &own);
    }
    copier_close(&c);
    return rc;
}
