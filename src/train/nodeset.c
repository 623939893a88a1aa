/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/nodeset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_io.h"
#include "hdf5io/nodeset.h"
#include "train/checkpoint.h"
#include "train/hosts.h"
#include "train/line.h"
#include "train/partners.h"
#include "train/places.h"

struct train_nodeset {
    hdf5io_nodeset_t set;
    train_line_t line;
    char *home;       /* of the sets on this node; NULL: no line has begun */
    const char *host; /* of this rank */
    int *nodes;
    train_partners_t *partners; /* NULL: there is only one node */
    bool leads;                 /* this is the first rank of its node */
    bool resumed;               /* the run has resumed from a set */
    bool failed;                /* the newest set could not be written */
    /* Step in the name of the newest checkpoint of the run directory; -1: there
     * is none. */
    int64_t named;
    int64_t below; /* see train_nodeset_below */
    int teller;
    uint64_t written; /* nonce of the set that the saver's thread wrote */
};

/* ---- opening ------------------------------------------------------------- */

/* Is [rank] the first rank of its node? */
static bool is_first(const comm_group_t *group, int rank)
{
    return train_hosts_first(group, 0, rank) == rank;
}

static err_code_t own_open(train_state_t *run, err_t *err)
{
    const comm_group_t *group = run->world.group;
    train_nodeset_t *nodeset = NULL;
    err_code_t rc =
        mem_new(train_nodeset_t, 1, "local checkpoints", &nodeset, err);

    if (rc != ERR_OK)
        return rc;
    run->saving.nodeset = nodeset;
    rc = mem_new(int, (size_t)run->world.size, "local checkpoints",
                 &nodeset->nodes, err);
    if (rc != ERR_OK)
        return rc;
    train_hosts_number(group, nodeset->nodes);
    nodeset->set.nodes = nodeset->nodes;
    nodeset->host = comm_group_host(group, run->world.rank);
    nodeset->leads = is_first(group, run->world.rank);
    return ERR_OK;
}

static err_code_t partners_open(train_state_t *run, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    err_code_t rc = train_partners_open(run->world.group, nodeset->nodes,
                                        &nodeset->partners, err);

    if (rc != ERR_OK || nodeset->partners == NULL)
        return rc;
    nodeset->set.partners = train_partners_votes(nodeset->partners);
    nodeset->set.members = train_partners_members(nodeset->partners);
    train_saver_also(run->saving.saver,
                     train_partners_group(nodeset->partners));
    return ERR_OK;
}

err_code_t train_nodeset_open(train_state_t *run, err_t *err)
{
    err_code_t rc;

    if (run->config->checkpoint.local[0] == '\0')
        return ERR_OK;
    rc = train_world_vote(&run->world, own_open(run, err), err);
    if (rc != ERR_OK)
        return rc;
    rc = partners_open(run, err); /* its votes are among partners only */
    return train_world_vote(&run->world, rc, err);
}

void train_nodeset_close(train_state_t *run)
{
    train_nodeset_t *nodeset = run->saving.nodeset;

    mem_free(run->saving.left);
    run->saving.left = NULL;
    if (nodeset == NULL)
        return;
    train_partners_close(nodeset->partners);
    free(nodeset->home);
    mem_free(nodeset->nodes);
    mem_free(nodeset);
    run->saving.nodeset = NULL;
}

void train_nodeset_tell(const train_state_t *run, const err_t *fault)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;

    if (nodeset != NULL && nodeset->partners != NULL)
        comm_group_tell(train_partners_group(nodeset->partners), fault);
}

/* ---- the line of the run ------------------------------------------------- */

static void home_set(const train_state_t *run)
{
    train_nodeset_t *nodeset = run->saving.nodeset;

    free(nodeset->home);
    nodeset->home = NULL;
    if (nodeset->line.line != 0)
        nodeset->home =
            str_printf("%s/cddp-%016" PRIx64 "-%016" PRIx64 "-%s",
                       run->config->checkpoint.local, nodeset->line.run,
                       nodeset->line.line, nodeset->host);
    nodeset->set.home = nodeset->home;
}

/* Give the text *dirs of rank 0 to all ranks. Each rank frees its *dirs with
 * free(), also after a failure. Collective. */
static err_code_t dirs_tell(train_state_t *run, char **dirs, err_t *err)
{
    uint64_t bytes = *dirs == NULL ? 0 : strlen(*dirs);
    err_code_t rc = train_tell(&run->world.votes, 0, &bytes, sizeof bytes, err);

    if (rc != ERR_OK)
        return rc;
    if (run->world.rank != 0)
        *dirs = str_printf("%*s", (int)bytes, "");
    return bytes == 0
               ? ERR_OK
               : train_tell(&run->world.votes, 0, *dirs, (size_t)bytes, err);
}

/* *out becomes the places of earlier starts and of this start; free() it. Rank
 * 0 only. */
static err_code_t places_find(const train_state_t *run, char **out, err_t *err)
{
    const train_places_start_t start = {.group = run->world.group,
                                        .nodes = run->saving.nodeset->nodes,
                                        .where = run->config->checkpoint.local};
    char *old = train_line_places(run->dir.path);
    const err_code_t rc = train_places_add(old, &start, out, err);

    free(old);
    return rc;
}

/* Rank 0 begins a new line. No later start may find the old line, even if the
 * new one cannot be written. */
static err_code_t line_begin(const train_state_t *run, train_line_t *line,
                             const char *places, err_t *err)
{
    err_t why = ERR_INIT;

    if (line->run == 0)
        line->run = hdf5io_dir_nonce();
    line->line = hdf5io_dir_nonce();
    if (train_line_write(run->dir.path, line, run->config->checkpoint.local,
                         places, &why) == ERR_OK)
        return ERR_OK;
    log_warn("train", "%s: this start writes no local checkpoints", why.text);
    line->line = 0;
    return train_line_remove(run->dir.path, err);
}

/* All ranks take over the line of rank 0. */
static err_code_t line_tell(train_state_t *run, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    err_code_t rc = train_tell(&run->world.votes, 0, &nodeset->line,
                               sizeof nodeset->line, err);

    if (rc == ERR_OK)
        home_set(run);
    return rc;
}

/* Rank 0 ends the line in the file. The file keeps the number of the run and
 * the places of its sets, so that this start, or a later one, finds the sets.
 */
static err_code_t line_end(const train_state_t *run, const train_line_t *line,
                           err_t *err)
{
    char *places = train_line_places(run->dir.path);
    train_line_t ended = *line;
    err_t why = ERR_INIT;
    err_code_t rc;

    ended.line = 0;
    rc = train_line_write(run->dir.path, &ended, line->where, places, &why);
    free(places);
    return rc == ERR_OK ? ERR_OK : train_line_remove(run->dir.path, err);
}

/* For rank 0 of a run without local checkpoints: keep what the file says of the
 * sets of earlier starts, for train_nodeset_accept, and end the line. */
static err_code_t left_keep(train_state_t *run, err_t *err)
{
    const train_line_t line = train_line_read(run->dir.path, false);
    err_code_t rc;

    if (line.run == 0 || line.where[0] == '\0')
        return train_line_remove(run->dir.path, err);
    rc = mem_new(train_line_t, 1, "local checkpoints", &run->saving.left, err);
    if (rc != ERR_OK)
        return rc;
    *run->saving.left = line;
    return line_end(run, &line, err);
}

err_code_t train_nodeset_leave(train_state_t *run, err_t *err)
{
    train_line_t line;

    if (run->saving.nodeset == NULL)
        return left_keep(run, err);
    if (run->env->resume == TRAIN_RESUME_AUTO || !run->dir.first)
        return ERR_OK;
    line = train_line_read(run->dir.path, false);
    return line.line == 0 ? ERR_OK : line_end(run, &line, err);
}

/* For rank 0 of a start without local checkpoints. The sets on the nodes of
 * this start are deleted: remove the file. If other nodes may still have sets,
 * only their places stay in the file, for a later start on these nodes. */
static err_code_t left_done(const train_state_t *run, const train_line_t *line,
                            err_t *err)
{
    char *places = train_line_places(run->dir.path), *rest = NULL;
    err_code_t rc = train_places_rest(places, run->world.group, &rest, err);

    if (rc == ERR_OK)
        rc = rest[0] == '\0' ? train_line_remove(run->dir.path, err)
                             : train_line_write(run->dir.path, line,
                                                line->where, rest, err);

    free(rest);
    free(places);
    return rc;
}

/* An earlier start of this run may have left sets; this start uses none. The
 * first rank of each node deletes these sets. If a node still has one, the file
 * stays, so that a later start tries again. */
static err_code_t left_clean(train_state_t *run, err_t *err)
{
    comm_group_t *group = run->world.group;
    const int rank = run->world.rank;
    train_line_t line = {0};
    char *places, *dirs = NULL;
    int32_t left = 0; /* 1: this node, later: some node, still has a set */
    err_code_t rc;

    if (run->saving.left != NULL)
        line = *run->saving.left;
    line.line = 0;
    rc = train_tell(&run->world.votes, 0, &line, sizeof line, err);
    if (rc != ERR_OK || line.run == 0)
        return rc;
    if (rank == 0) {
        places = train_line_places(run->dir.path);
        dirs = train_places_dirs(places, line.where);
        free(places);
    }
    rc = dirs_tell(run, &dirs, err);
    if (rc == ERR_OK && is_first(group, rank))
        left = !train_line_clean(&line, dirs, comm_group_host(group, rank));
    free(dirs);
    if (rc == ERR_OK)
        rc = comm_allreduce(group, &left, 1, COMM_INT32, COMM_MAX, err);
    if (rc == ERR_OK && rank == 0 && left == 0)
        rc = left_done(run, &line, err);
    return train_world_vote(&run->world, rc, err);
}

/* For rank 0 of a run that has resumed from a set: complete the file. A file of
 * an older version does not say to which run directory it belongs, and a file
 * of an earlier start may not name all nodes of this start. */
static void line_complete(const train_state_t *run, const train_line_t *line,
                          const char *places)
{
    char *old = train_line_places(run->dir.path);
    err_t why = ERR_INIT;

    if ((line->inode == 0 || strcmp(old, places) != 0) &&
        train_line_write(run->dir.path, line, run->config->checkpoint.local,
                         places, &why) != ERR_OK)
        log_warn("train", "%s", why.text);
    free(old);
}

/* For rank 0: begin or continue the line. ERR_IO, ERR_MEMORY. On success *dirs
 * becomes the directories where sets of older lines may be; free() them. */
static err_code_t line_take(const train_state_t *run, char **dirs, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    char *places = NULL;
    err_code_t rc;

    if (!nodeset->resumed)
        nodeset->line = train_line_read(run->dir.path, false);
    rc = places_find(run, &places, err);
    if (rc != ERR_OK)
        return rc;
    *dirs = train_places_dirs(places, nodeset->line.where);
    if (nodeset->resumed)
        line_complete(run, &nodeset->line, places);
    else
        rc = line_begin(run, &nodeset->line, places, err);
    free(places);
    return rc;
}

err_code_t train_nodeset_accept(train_state_t *run, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    char *dirs = NULL;
    err_code_t rc = ERR_OK;

    if (nodeset == NULL)
        return left_clean(run, err);
    if (run->world.rank == 0)
        rc = line_take(run, &dirs, err);
    rc = train_world_vote(&run->world, rc, err);
    if (rc == ERR_OK)
        rc = line_tell(run, err);
    if (rc == ERR_OK)
        rc = dirs_tell(run, &dirs, err);
    if (rc == ERR_OK && nodeset->leads && nodeset->line.run != 0)
        (void)train_line_clean(&nodeset->line, dirs, nodeset->host);
    free(dirs);
    return rc;
}

err_code_t train_nodeset_back(train_state_t *run, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;

    if (nodeset == NULL)
        return ERR_OK;
    train_nodeset_drop(run);
    return train_nodeset_accept(run, err);
}

/* ---- the start ----------------------------------------------------------- */

/* Set *newest to the step of the newest checkpoint of the run directory, by its
 * name, or to -1 if there is none. Rank 0 only. */
static err_code_t newest_step(const train_checkpoint_config_t *config,
                              int64_t *newest, err_t *err)
{
    const hdf5io_io_t io = hdf5io_io_of(&config->checkpoint);
    int64_t *steps = NULL;
    int count = 0;
    err_code_t rc =
        hdf5io_dir_steps(&io, config->directory, &steps, &count, err);

    if (rc == ERR_OK)
        *newest = count > 0 ? steps[0] : -1;
    free(steps);
    return rc;
}

/* All ranks learn the step of the newest checkpoint, by its name. */
static err_code_t named_find(train_state_t *run, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    train_checkpoint_config_t config;
    err_code_t rc = ERR_OK;

    nodeset->named = -1;
    train_checkpoint_config_fill(run, &config);
    if (run->world.rank == 0)
        rc = newest_step(&config, &nodeset->named, err);
    train_checkpoint_config_free(&config);
    rc = train_world_vote(&run->world, rc, err);
    return rc == ERR_OK ? train_tell(&run->world.votes, 0, &nodeset->named,
                                     sizeof nodeset->named, err)
                        : rc;
}

/* Read the newest whole set of the step [least], or of a later step. */
static err_code_t set_read(train_state_t *run, int64_t least, bool *found,
                           hdf5io_checkpoint_info_t *info, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    const train_kept_t *kept = &run->replica.kept;
    hdf5io_nodeset_found_t set = {0};
    train_checkpoint_config_t config;
    train_kept_source_t source = {.least = least};
    err_code_t rc;

    train_checkpoint_config_fill(run, &config);
    source.config = nodeset->set.checkpoint = &config.checkpoint;
    source.set = &nodeset->set;
    source.found = &set;
    rc = train_kept_read(kept, &source, found, info, err);
    train_checkpoint_config_free(&config);
    nodeset->set.checkpoint = NULL;
    if (rc != ERR_OK || !*found)
        return rc;
    nodeset->resumed = true;
    nodeset->teller = set.teller;
    nodeset->set.keep = set.nonce;
    return ERR_OK;
}

/* As set_read, but a set of another model counts as no set. */
static err_code_t set_try(train_state_t *run, int64_t least, bool *found,
                          hdf5io_checkpoint_info_t *info, err_t *err)
{
    err_t why = ERR_INIT;
    const err_code_t rc = set_read(run, least, found, info, &why);

    if (rc == ERR_CONFIG) {
        if (run->world.rank == 0)
            log_warn("train", "the local checkpoints are not used: %s",
                     why.text);
        *found = false;
        return ERR_OK;
    }
    return rc == ERR_OK ? ERR_OK : err_copy(err, &why);
}

err_code_t train_nodeset_restore(train_state_t *run, bool *found,
                                 hdf5io_checkpoint_info_t *info, err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    err_code_t rc;

    *found = false;
    if (nodeset == NULL)
        return ERR_OK;
    if (run->world.rank == 0)
        nodeset->line = train_line_read(run->dir.path, true);
    rc = line_tell(run, err);
    if (rc != ERR_OK || nodeset->home == NULL)
        return rc;
    rc = named_find(run, err);
    if (rc == ERR_OK)
        rc = set_try(run, nodeset->named, found, info, err);
    nodeset->below = nodeset->named;
    return rc;
}

bool train_nodeset_hidden(const train_state_t *run, int64_t step)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;

    return nodeset != NULL && nodeset->home != NULL && step < nodeset->named;
}

err_code_t train_nodeset_restore_hidden(train_state_t *run, int64_t step,
                                        bool *found,
                                        hdf5io_checkpoint_info_t *info,
                                        err_t *err)
{
    *found = false;
    run->saving.nodeset->below = step;
    return set_try(run, step + 1, found, info, err);
}

void train_nodeset_drop(train_state_t *run)
{
    train_nodeset_t *nodeset = run->saving.nodeset;

    if (nodeset == NULL)
        return;
    nodeset->resumed = false;
    nodeset->set.keep = 0;
}

int train_nodeset_teller(const train_state_t *run)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;

    return nodeset != NULL && nodeset->resumed ? nodeset->teller : 0;
}

int64_t train_nodeset_below(const train_state_t *run, int64_t step)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;

    return nodeset != NULL && nodeset->resumed ? nodeset->below : step;
}

/* ---- saves --------------------------------------------------------------- */

bool train_nodeset_due(const train_state_t *run)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;
    const int64_t every = (int64_t)run->config->checkpoint.local_every.value;
    const bool last = run->progress.epoch + 1 >= run->config->train.epochs &&
                      run->progress.epoch_step == run->data.train.steps;

    return nodeset != NULL && nodeset->home != NULL &&
           run->progress.step % every == 0 && !last && !run->agreed.stop &&
           !run->local.apart && run->dir.saved_step != run->progress.step &&
           !train_saver_busy(run->saving.saver);
}

err_code_t train_nodeset_write(const train_save_t *save,
                               const hdf5io_votes_t *votes, err_t *err)
{
    train_state_t *run = save->context;
    train_nodeset_t *nodeset = run->saving.nodeset;
    const train_kept_t *kept = &run->replica.kept;
    hdf5io_checkpoint_config_t config = *save->config;
    hdf5io_nodeset_t set = nodeset->set;

    config.votes = votes;
    set.checkpoint = &config;
    return hdf5io_nodeset_write(&set, &save->progress, kept->tensors,
                                kept->count, &nodeset->written, err);
}

err_code_t train_nodeset_saved(train_state_t *run, int64_t step, err_code_t rc,
                               err_t *err)
{
    train_nodeset_t *nodeset = run->saving.nodeset;
    const bool says = run->world.rank == 0;

    if (rc == ERR_PEER || rc == ERR_DIVERGED)
        return rc;
    if (rc == ERR_OK) {
        nodeset->set.keep = nodeset->written;
        if (nodeset->failed && says)
            log_info("train",
                     "local checkpoints are written again; the first one is "
                     "that of step %lld",
                     (long long)step);
        nodeset->failed = false;
        return ERR_OK;
    }
    if (!nodeset->failed && says)
        log_warn("train",
                 "no local checkpoint of step %lld was written: %s; the run "
                 "goes on, and tries again every %lld steps",
                 (long long)step, err->text,
                 (long long)run->config->checkpoint.local_every.value);
    nodeset->failed = true;
    *err = (err_t)ERR_INIT;
    return ERR_OK;
}

void train_nodeset_end(const train_state_t *run, err_code_t rc)
{
    const train_nodeset_t *nodeset = run->saving.nodeset;
    err_t err = ERR_INIT;

    if (nodeset == NULL || nodeset->home == NULL || !nodeset->leads ||
        !run->life.opened || (rc != ERR_OK && rc != ERR_REQUEUE) ||
        run->dir.checkpoint_step != run->progress.step)
        return;
    if (hdf5io_nodeset_own(nodeset->home) &&
        file_remove_tree(nodeset->home, &err) != ERR_OK)
        log_warn("train", "cannot remove the local checkpoints: %s", err.text);
}
