/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The exchanges of a sub-group use all-gathers of the parent, in which all
 * ranks of the parent must take part. But each sub-group has its own number of
 * exchanges, with its own sizes. So exchanges happen in rounds: in each round
 * all ranks first tell how many bytes they want to exchange, and rounds go on
 * until no rank wants any. At the end all ranks have told whether they opened
 * their sub-group, so the members of a sub-group agree.
 */
#include "comm/comm_split.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "comm/comm_ops.h"
#include "comm/comm_vote.h"

typedef struct split_head {
    int64_t bytes; /* bytes to be exchanged; 0: no more */
    int64_t well;
    uint64_t list; /* hash of the list of members */
} split_head_t;

typedef struct split {
    comm_group_t *parent;
    const int *ranks;
    int count;
    split_head_t mine;
    split_head_t *heads; /* [size of the parent] */
    err_t fault; /* why a round failed, on all ranks: no other round follows */
} split_t;

int comm_split_ranks(const comm_group_t *group, comm_split_t how, int *ranks)
{
    const comm_hello_t *hellos = group->hellos;
    int count = 0, place = 0;

    for (int rank = 0; rank < group->rank; rank++)
        place += strcmp(hellos[rank].host, hellos[group->rank].host) == 0;
    for (int rank = 0; rank < group->size; rank++) {
        bool same = strcmp(hellos[rank].host, hellos[group->rank].host) == 0;
        int before = 0;

        for (int i = 0; how == COMM_SPLIT_ACROSS && i < rank; i++)
            before += strcmp(hellos[i].host, hellos[rank].host) == 0;
        if (how == COMM_SPLIT_NODE ? same : before == place)
            ranks[count++] = rank;
    }
    return count;
}

static err_code_t list_check(const split_t *split, err_t *err)
{
    const comm_group_t *parent = split->parent;
    int own = 0;

    for (int i = 0; i < split->count; i++) {
        int rank = split->ranks[i];

        if (rank < 0 || rank >= parent->size)
            return err_set(err, ERR_CONFIG,
                           "rank %d asks for a sub-group with rank %d, but "
                           "there are %d ranks",
                           parent->rank, rank, parent->size);
        for (int j = 0; j < i; j++)
            if (split->ranks[j] == rank)
                return err_set(err, ERR_CONFIG,
                               "rank %d asks for a sub-group that has rank %d "
                               "twice",
                               parent->rank, rank);
        own += rank == parent->rank;
    }
    if (own == 0 && split->count > 0)
        return err_set(err, ERR_CONFIG,
                       "rank %d asks for a sub-group that it is not in",
                       parent->rank);
    return ERR_OK;
}

/* ---- rounds -------------------------------------------------------------- */

/* What the ranks of the parent gave in a round. */
typedef struct round {
    size_t bytes; /* of each rank, padded; 0: no rank gave anything */
    char *all;    /* [size of the parent * bytes]; NULL if bytes is 0 */
} round_t;

/* Gather [mine] of all ranks, padded to [most] bytes. If one rank has no memory
 * for this, all ranks get its error. */
static err_code_t round_gather(const split_t *split, const void *mine,
                               size_t bytes, size_t most, round_t *out,
                               err_t *err)
{
    const size_t size = (size_t)split->parent->size;
    err_t reason = ERR_INIT;
    char *padded = NULL, *own;
    err_code_t rc;

    (void)mem_new(char, most *(size + 1), "sub-group exchange", &padded,
                  &reason);
    rc = comm_vote(split->parent, &reason, err);
    if (rc == ERR_OK) {
        own = padded + most * size;
        if (bytes > 0)
            memcpy(own, mine, bytes);
        rc = comm_allgather(split->parent, own, most, padded, err);
    }
    if (rc == ERR_OK)
        *out = (round_t){.bytes = most, .all = padded};
    else
        mem_free(padded);
    return rc;
}

static err_code_t round_run(split_t *split, const void *mine, size_t bytes,
                            round_t *out, err_t *err)
{
    comm_group_t *parent = split->parent;
    size_t most = 0;
    err_code_t rc;

    split->mine.bytes = (int64_t)bytes;
    rc = comm_allgather(parent, &split->mine, sizeof split->mine, split->heads,
                        err);
    for (int i = 0; rc == ERR_OK && i < parent->size; i++)
        if ((size_t)split->heads[i].bytes > most)
            most = (size_t)split->heads[i].bytes;
    return rc == ERR_OK && most > 0
               ? round_gather(split, mine, bytes, most, out, err)
               : rc;
}

/* One round among all ranks of the parent, in which this rank gives [mine]. The
 * caller frees out->all. If a round fails, it fails on all ranks. */
static err_code_t split_round(split_t *split, const void *mine, size_t bytes,
                              round_t *out, err_t *err)
{
    *out = (round_t){.bytes = 0};
    if (split->fault.code == ERR_OK)
        (void)round_run(split, mine, bytes, out, &split->fault);
    return split->fault.code == ERR_OK ? ERR_OK : err_copy(err, &split->fault);
}

/* The exchange of comm_oob_t among the members of the sub-group. */
static err_code_t split_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    split_t *split = context;
    round_t given;
    err_code_t rc = split_round(split, mine, bytes, &given, err);

    for (int i = 0; rc == ERR_OK && i < split->count; i++) {
        int rank = split->ranks[i];

        if (given.all == NULL || split->heads[rank].bytes != (int64_t)bytes)
            rc = err_set(err, ERR_UNAVAILABLE,
                         "rank %d gave up opening a sub-group with rank %d",
                         comm_rank_name(split->parent, rank),
                         comm_rank_name(split->parent, split->parent->rank));
        else
            memcpy((char *)all + (size_t)i * bytes,
                   given.all + (size_t)rank * given.bytes, bytes);
    }
    mem_free(given.all);
    return rc;
}

/* Take part in rounds until all ranks are done. If this rank is [well], *odd is
 * set to the first member that failed, or to -1. If it is not, *odd is -1, as
 * its list may be wrong. */
static err_code_t split_finish(split_t *split, bool well, int *odd, err_t *err)
{
    round_t given = {.bytes = 1};
    err_code_t rc = ERR_OK;

    split->mine.well = well;
    while (rc == ERR_OK && given.bytes > 0) {
        rc = split_round(split, NULL, 0, &given, err);
        mem_free(given.all);
    }
    *odd = -1;
    for (int i = split->count - 1; rc == ERR_OK && well && i >= 0; i--)
        if (!split->heads[split->ranks[i]].well)
            *odd = split->ranks[i];
    return rc;
}

/* ---- open ---------------------------------------------------------------- */

/* Check that all members have equal lists. All ranks of the parent exchange the
 * hashes of their lists. */
static err_code_t lists_compare(split_t *split, bool well, err_t *err)
{
    comm_group_t *parent = split->parent;
    err_code_t rc;

    split->mine.list =
        hash_bytes(split->ranks, (size_t)split->count * sizeof(int));
    split->mine.well = well;
    rc = comm_allgather(parent, &split->mine, sizeof split->mine, split->heads,
                        err);
    for (int i = 0; rc == ERR_OK && well && i < split->count; i++) {
        const split_head_t *head = &split->heads[split->ranks[i]];

        if (!head->well || head->list != split->mine.list)
            rc = err_set(err, ERR_CONFIG,
                         "rank %d and rank %d are to be in one sub-group, "
                         "but have different lists of its members",
                         comm_rank_name(parent, parent->rank),
                         comm_rank_name(parent, split->ranks[i]));
    }
    return rc;
}

static err_code_t members_open(split_t *split, comm_group_t **group, err_t *err)
{
    comm_group_t *parent = split->parent;
    int name = comm_rank_name(parent, parent->rank);
    comm_config_t config = {.backend =
                                split->count == 1 ? "self" : parent->ops->name,
                            .timeout = parent->timeout,
                            .table = parent->table};
    comm_oob_t oob = {.context = split,
                      .size = split->count,
                      .exchange = split_exchange,
                      .host = comm_group_host(parent, parent->rank),
                      .name = &name};

    while (split->ranks[oob.rank] != parent->rank)
        oob.rank++;
    return comm_group_open(&config, &oob, group, err);
}

/* Tell the other ranks whether this rank succeeded, or its error [reason], and
 * find out whether the members succeeded. If one rank has no memory, all ranks
 * of the parent get its error. */
static err_code_t split_agree(split_t *split, const err_t *reason, err_t *err)
{
    const bool well = reason->code == ERR_OK;
    const err_t none = ERR_INIT;
    err_code_t told, voted;
    int odd;

    told = split_finish(split, well, &odd, well ? err : NULL);
    if (told == ERR_OK) {
        voted = comm_vote(split->parent,
                          reason->code == ERR_MEMORY ? reason : &none, err);
        if (voted != ERR_OK)
            return voted;
    }
    if (!well)
        return err_copy(err, reason);
    if (told == ERR_OK && odd >= 0)
        told = err_set(err, ERR_UNAVAILABLE,
                       "rank %d could not open a sub-group that rank %d is in",
                       comm_rank_name(split->parent, odd),
                       comm_rank_name(split->parent, split->parent->rank));
    return told;
}

/* ---- some ranks ---------------------------------------------------------- */

/* Allocate split->heads. If one rank has no memory for them, all ranks fail, as
 * every later exchange of the ranks needs the heads. Collective. */
static err_code_t heads_open(split_t *split, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    (void)mem_new(split_head_t, (size_t)split->parent->size, "sub-group heads",
                  &split->heads, &mine);
    rc = comm_vote(split->parent, &mine, err);
    if (rc != ERR_OK) {
        mem_free(split->heads);
        split->heads = NULL;
    }
    return rc;
}

err_code_t comm_split_open(comm_group_t *parent, const int *ranks, int count,
                           comm_group_t **out, err_t *err)
{
    split_t split = {
        .parent = parent, .ranks = ranks, .count = count, .fault = ERR_INIT};
    comm_group_t *group = NULL;
    err_t reason = ERR_INIT;
    err_code_t compared;
    err_code_t rc = heads_open(&split, err);

    if (rc != ERR_OK)
        return rc;
    rc = list_check(&split, &reason);
    compared =
        lists_compare(&split, rc == ERR_OK, rc == ERR_OK ? &reason : NULL);
    if (rc == ERR_OK && compared == ERR_OK && count > 0)
        (void)members_open(&split, &group, &reason);
    rc = split_agree(&split, &reason, err);
    if (rc == ERR_OK)
        *out = group;
    else
        comm_group_close(group);
    mem_free(split.heads);
    return rc;
}

/* ---- all ranks ----------------------------------------------------------- */

typedef struct whole {
    comm_group_t *parent;
    err_t fault; /* of a vote, on all ranks: nothing follows */
} whole_t;

static err_code_t whole_vote(whole_t *whole, const err_t *mine, err_t *err)
{
    if (whole->fault.code == ERR_OK)
        (void)comm_vote(whole->parent, mine, &whole->fault);
    return whole->fault.code == ERR_OK ? ERR_OK : err_copy(err, &whole->fault);
}

/* The ranks vote before each exchange, as a rank that failed does not enter the
 * exchange: it votes at the end of comm_split_whole. */
static err_code_t whole_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    const err_t well = ERR_INIT;
    whole_t *whole = context;
    err_code_t rc = whole_vote(whole, &well, err);

    return rc == ERR_OK ? comm_allgather(whole->parent, mine, bytes, all, err)
                        : rc;
}

err_code_t comm_split_whole(comm_group_t *parent, const comm_config_t *config,
                            comm_group_t **out, err_t *err)
{
    const int name = comm_rank_name(parent, parent->rank);
    whole_t whole = {.parent = parent, .fault = ERR_INIT};
    comm_config_t own = *config;
    const comm_oob_t oob = {.context = &whole,
                            .rank = parent->rank,
                            .size = parent->size,
                            .exchange = whole_exchange,
                            .host = comm_group_host(parent, parent->rank),
                            .name = &name};
    comm_group_t *group = NULL;
    err_t reason = ERR_INIT;
    err_code_t rc;

    own.beside = parent;
    (void)comm_group_open(&own, &oob, &group, &reason);
    rc = whole_vote(&whole, &reason, err);
    if (rc == ERR_OK)
        *out = group;
    else
        comm_group_close(group);
    return rc;
}
