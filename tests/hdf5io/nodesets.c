/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "nodesets.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static char *home_of(const nodesets_t *sets, int node)
{
    return str_printf("%s/node-%d", sets->root, node);
}

typedef void (*body_t)(ckpt_rank_t *rank, nodesets_t *sets,
                       const hdf5io_nodeset_t *set);

/* Call [body] with the set of a rank. */
static void set_with(ckpt_rank_t *rank, nodesets_t *sets, body_t body)
{
    int nodes[CKPT_RANKS_MAX], members[CKPT_RANKS_MAX];
    char *home = home_of(sets, rank->votes.rank / sets->per_node);
    const hdf5io_nodeset_t set = {.home = home,
                                  .checkpoint = &rank->config,
                                  .nodes = nodes,
                                  .partners =
                                      sets->copies ? &rank->votes : NULL,
                                  .members = members,
                                  .keep = sets->keep};

    for (int r = 0; r < sets->ranks; r++) {
        nodes[r] = r / sets->per_node;
        members[r] = r;
    }
    if (rank->votes.rank == 0) {
        rank->io.fail_at = sets->fail_at;
        rank->io.error = sets->error;
    } else {
        rank->config.io = NULL;
    }
    if (sets->strict)
        rank->config.model_hash++;
    rank->config.model_strict = sets->strict;
    body(rank, sets, &set);
    if (rank->votes.rank == 0)
        sets->calls = rank->io.calls;
    free(home);
}

static void save(ckpt_rank_t *rank, nodesets_t *sets,
                 const hdf5io_nodeset_t *set)
{
    uint64_t nonce = 0;

    rank->code =
        hdf5io_nodeset_write(set, &rank->state.progress, rank->state.tensors,
                             rank->state.count, &nonce, &rank->err);
    /* No other rank reads [keep] any more: all have voted. */
    if (rank->votes.rank == 0 && rank->code == ERR_OK)
        sets->found.nonce = nonce;
}

static void body_save(ckpt_rank_t *rank, void *context)
{
    set_with(rank, context, save);
}

err_code_t nodesets_save(nodesets_t *sets, int64_t seed)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(sets->root, sets->ranks, seed, body_save, sets);
    const err_code_t rc = ranks[0].code;

    for (int r = 0; r < sets->ranks; r++)
        cr_assert_eq(ranks[r].code, rc, "rank %d: %s", r, ranks[r].err.text);
    err_copy(&sets->err, &ranks[0].err);
    if (rc == ERR_OK)
        sets->keep = sets->found.nonce;
    ckpt_ranks_free(ranks, sets->ranks);
    return rc;
}

void nodesets_save_ok(nodesets_t *sets, int64_t seed)
{
    cr_assert_eq(nodesets_save(sets, seed), ERR_OK, "%s", sets->err.text);
}

static void read_set(ckpt_rank_t *rank, nodesets_t *sets,
                     const hdf5io_nodeset_t *set)
{
    hdf5io_nodeset_found_t found;

    rank->code =
        hdf5io_nodeset_read(set, sets->least, rank->state.tensors,
                            rank->state.count, &found, &rank->info, &rank->err);
    rank->found = found.found;
    if (rank->votes.rank == 0)
        sets->found = found;
}

static void body_read(ckpt_rank_t *rank, void *context)
{
    ckpt_state_clear(&rank->state);
    set_with(rank, context, read_set);
}

int64_t nodesets_read(nodesets_t *sets)
{
    ckpt_rank_t *ranks =
        ckpt_ranks_run(sets->root, sets->ranks, 1, body_read, sets);
    const bool found = ranks[0].code == ERR_OK && ranks[0].found;
    const int64_t step = found ? ranks[0].info.progress.step : -1;
    const err_code_t rc = ranks[0].code;
    ckpt_state_t want;

    ckpt_state_make(&want, found ? step : 1);
    if (!found)
        ckpt_state_clear(&want);
    for (int r = 0; r < sets->ranks; r++) {
        cr_assert_eq(ranks[r].code, rc, "rank %d: %s", r, ranks[r].err.text);
        cr_assert_eq(ranks[r].found, ranks[0].found);
        cr_assert(rc != ERR_OK || ckpt_state_same(&ranks[r].state, &want),
                  "rank %d has other bits", r);
    }
    err_copy(&sets->err, &ranks[0].err);
    ckpt_state_free(&want);
    ckpt_ranks_free(ranks, sets->ranks);
    return rc == ERR_OK ? step : -(int64_t)rc;
}

void nodesets_lose(const nodesets_t *sets, int node)
{
    char *home = home_of(sets, node);

    cr_assert_eq(file_remove_tree(home, NULL), ERR_OK);
    free(home);
}

char *nodesets_path(const nodesets_t *sets, int node, int64_t step,
                    const char *file)
{
    char *home = home_of(sets, node), *path = NULL;
    hdf5io_nodeset_name_t name;
    const struct dirent *entry;
    DIR *dir = opendir(home);

    cr_assert_not_null(dir, "%s", home);
    while ((entry = readdir(dir)) != NULL)
        if (path == NULL && hdf5io_nodeset_parse(entry->d_name, &name) &&
            name.step == step)
            path = str_printf("%s/%s/%s", home, entry->d_name, file);
    closedir(dir);
    free(home);
    cr_assert_not_null(path, "step %d", (int)step);
    return path;
}
