/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/writers.h"

#include "base/mem.h"
#include "train/hosts.h"

/* With more ranks than this, ranks of one node write together by default. */
#define AUTO_RANKS 64

static int word_of(const train_config_t *config)
{
    const opt_ints_t *writers = &config->checkpoint.writers;

    return writers->count < 0 ? -1 - writers->count : TRAIN_WRITERS_NUMBER;
}

/* Divide the ranks evenly among [files] groups of consecutive ranks: the
 * numbers of ranks of two groups differ by at most one. The ranks of a group on
 * one node write a file together, and their head is the first of them. Ranks of
 * two nodes never write one file: with NFS, a node may write back a page with
 * zeros where another node has written. */
static void heads_find(const comm_group_t *group, int64_t files, int size,
                       int *heads)
{
    int first = 0; /* first rank of the group */

    for (int r = 0; r < size; r++) {
        if (r > 0 && r * files / size != (r - 1) * files / size)
            first = r;
        /* The ranks of a node are usually consecutive. So the rank before
         * this one is compared first. */
        if (r > first && train_hosts_first(group, r - 1, r) < r)
            heads[r] = heads[r - 1];
        else
            heads[r] = train_hosts_first(group, first, r);
    }
}

err_code_t train_writers_open(const train_config_t *config,
                              const comm_group_t *group, int **out, err_t *err)
{
    const int size = comm_group_size(group), word = word_of(config);
    const opt_ints_t *writers = &config->checkpoint.writers;
    int *heads = NULL;
    err_code_t rc;

    *out = NULL;
    if (config->checkpoint.format < 2 || word == TRAIN_WRITERS_RANK ||
        (word == TRAIN_WRITERS_AUTO && size <= AUTO_RANKS) ||
        (word == TRAIN_WRITERS_NUMBER &&
         (writers->count == 0 || writers->items[0] >= size)))
        return ERR_OK;
    rc = mem_new(int, (size_t)size, "checkpoint table", &heads, err);
    if (rc != ERR_OK)
        return rc;
    heads_find(group, word == TRAIN_WRITERS_NUMBER ? writers->items[0] : 1,
               size, heads);
    *out = heads;
    return ERR_OK;
}

const char *train_writers_wrong(const train_config_t *config)
{
    const int word = word_of(config);

    if (word == TRAIN_WRITERS_NUMBER && config->checkpoint.writers.count != 1)
        return "has several numbers; expected one number of files, or auto, "
               "node or rank";
    if (word == TRAIN_WRITERS_AUTO)
        return NULL;
    if (config->checkpoint.io == TRAIN_IO_MPI)
        return "is set, but checkpoint.io: mpi writes one file; leave one of "
               "the two out";
    if (word != TRAIN_WRITERS_RANK && config->checkpoint.format < 2)
        return "lets several ranks write one file, which needs the hashes of "
               "blocks of checkpoint.format: 2; set checkpoint.writers to "
               "rank, or checkpoint.format to 2";
    return NULL;
}
