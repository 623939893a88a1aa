/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Writing a node set in stages. Each stage ends with a vote, so that all ranks
 * continue or fail together:
 *   begin    rank 0 chooses the name of the set; the first rank of each node
 *            deletes old sets and makes the temporary directory
 *   data     every rank writes its part and hashes it; the ranks exchange the
 *            hashes of all parts and blocks
 *   copy     every rank sends its part to its partners
 *   publish  the first rank of each node writes the manifest and gives the
 *            directory its name
 * The parts have no header: all ranks know where each piece lies in its part.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "hdf5io/checkpoint_details.h"
#include "hdf5io/checkpoint_dir.h"
#include "hdf5io/checkpoint_share.h"
#include "hdf5io/checkpoint_vote.h"
#include "hdf5io/nodeset.h"
#include "hdf5io/nodeset_copy.h"

typedef struct writer {
    const hdf5io_nodeset_t *set;
    const hdf5io_votes_t *votes;
    hdf5io_io_t io;
    hdf5io_manifest_t manifest;
    hdf5io_details_t details;
    const hdf5io_share_t *share;
    hdf5io_share_t *own;      /* the share, if the configuration has none */
    hdf5io_ballot_t *ballots; /* [size] */
    hdf5io_nodeset_name_t name;
    bool leads;        /* this is the first rank of its node */
    char *tmp, *final; /* paths of the directory; NULL before stage begin */
} writer_t;

/* The files on a node need not survive a loss of power. */
static int no_sync(void *context, int fd)
{
    (void)context;
    (void)fd;
    return 0;
}

/* ---- the plan ------------------------------------------------------------ */

/* The files of a checkpoint become parts: there is no file of virtual datasets,
 * and the pieces of a part follow each other. */
static void parts_plan(hdf5io_manifest_t *m)
{
    m->file_count--;
    check(strcmp(m->files[m->file_count].name, MANIFEST_VIEW) == 0,
          "the last file is %s", m->files[m->file_count].name);
    free(m->files[m->file_count].name);
    for (int r = 0; r < m->world_size; r++) {
        if (m->file_of[r] < 0)
            continue;
        free(m->files[m->file_of[r]].name);
        m->files[m->file_of[r]].name = hdf5io_nodeset_part(r);
    }
    for (int i = 0; i < m->piece_count; i++) {
        hdf5io_manifest_file_t *file = &m->files[m->pieces[i].file];

        m->pieces[i].offset = (int64_t)file->bytes;
        file->bytes += (uint64_t)m->pieces[i].count * sizeof(float);
    }
}

static err_code_t plan(writer_t *w, const hdf5io_progress_t *progress,
                       const hdf5io_tensor_t *tensors, int count, err_t *err)
{
    hdf5io_checkpoint_config_t config = *w->set->checkpoint;
    err_code_t rc;

    config.mpi = NULL;
    config.heads = NULL;
    config.format = MANIFEST_VERSION;
    rc = hdf5io_manifest_build(&config, progress, tensors, count, &w->manifest,
                               err);
    if (rc == ERR_OK)
        parts_plan(&w->manifest);
    if (rc == ERR_OK)
        rc = hdf5io_details_open(&w->manifest, w->votes, &w->details, err);
    if (rc == ERR_OK && config.share == NULL)
        rc = hdf5io_share_open(tensors, count, w->votes->rank, w->votes->size,
                               &w->own, err);
    w->share = config.share != NULL ? config.share : w->own;
    return rc;
}

/* ---- stage begin --------------------------------------------------------- */

/* Make the home, to which only this user has access: otherwise another user
 * could put a set there, and a run would use it. */
static err_code_t home_make(const char *home, err_t *err)
{
    err_code_t rc = file_make_dirs(home, err);

    if (rc == ERR_OK && !hdf5io_nodeset_own(home))
        return err_set(err, ERR_IO,
                       "%s: it is no directory of this user; remove it", home);
    if (rc == ERR_OK && chmod(home, 0700) != 0)
        rc = err_set(err, ERR_IO, "%s: cannot change its permissions: %s", home,
                     strerror(errno));
    return rc;
}

static void begin(writer_t *w, err_t *err)
{
    if (home_make(w->set->home, err) != ERR_OK)
        return;
    hdf5io_nodeset_clean(w->set->home, w->set->keep);
    if (mkdir(w->tmp, 0700) != 0)
        err_set(err, ERR_IO, "%s: cannot create: %s", w->tmp, strerror(errno));
}

static err_code_t stage_begin(writer_t *w, err_t *planned, bool *agreed,
                              err_t *err)
{
    uint64_t mine[VOTE_NUMBERS] = {hdf5io_dir_nonce()};
    char name[HDF5IO_NODESET_NAME];
    err_t own = ERR_INIT;
    err_code_t rc =
        hdf5io_vote(w->votes, planned, mine, w->ballots, agreed, err);

    if (rc != ERR_OK)
        return rc;
    w->name.nonce = w->ballots[0].numbers[0];
    hdf5io_nodeset_print(w->name, name);
    w->tmp = str_printf("%s/.tmp-%s", w->set->home, name);
    w->final = str_printf("%s/%s", w->set->home, name);
    if (w->leads)
        begin(w, &own);
    return hdf5io_vote(w->votes, &own, NULL, NULL, agreed, err);
}

/* ---- stage data ---------------------------------------------------------- */

/* Enter the hashes of this rank's part. The numbers in memory are hashed: if
 * the file has other bytes, they are found as damage. */
static err_code_t part_hash(const writer_t *w, hdf5io_manifest_file_t *file,
                            err_t *err)
{
    hdf5io_summing_t *summing = NULL;
    hdf5io_sums_t sums = {0};
    err_code_t rc = hdf5io_summing_open(file->bytes, w->manifest.block_bytes,
                                        &summing, err);

    if (rc != ERR_OK)
        return rc;
    for (int i = 0; i < hdf5io_share_runs(w->share); i++) {
        const hdf5io_run_t run = hdf5io_share_run(w->share, i);

        hdf5io_summing_add(summing, run.data,
                           (size_t)run.count * sizeof(float));
    }
    hdf5io_summing_end(summing, &sums);
    hdf5io_summing_close(summing);
    mem_free(file->blocks);
    file->blocks = sums.blocks;
    file->hash = sums.hash;
    return ERR_OK;
}

static err_code_t part_fill(const writer_t *w, int fd, const char *path,
                            err_t *err)
{
    off_t at = 0;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < hdf5io_share_runs(w->share) && rc == ERR_OK; i++) {
        const hdf5io_run_t run = hdf5io_share_run(w->share, i);
        const size_t bytes = (size_t)run.count * sizeof(float);

        rc = hdf5io_io_write(&w->io, fd, path,
                             &(hdf5io_io_data_t){run.data, bytes, at}, err);
        at += (off_t)bytes;
    }
    return rc;
}

/* Write this rank's part, if it has one. */
static void part_write(writer_t *w, err_t *err)
{
    const int number = hdf5io_details_file(&w->details);
    char *path;
    int fd;

    if (number < 0)
        return;
    path = str_printf("%s/%s", w->tmp, w->manifest.files[number].name);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        err_set(err, ERR_IO, "%s: cannot create: %s", path, strerror(errno));
    else if (part_fill(w, fd, path, err) == ERR_OK)
        part_hash(w, &w->manifest.files[number], err);
    if (fd >= 0 && close(fd) != 0 && err->code == ERR_OK)
        err_set(err, ERR_IO, "%s: close failed: %s", path, strerror(errno));
    free(path);
}

static err_code_t stage_data(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;
    err_code_t rc;

    part_write(w, &mine);
    rc = hdf5io_vote(w->votes, &mine, NULL, NULL, agreed, err);
    return rc == ERR_OK ? hdf5io_details_hashes(&w->details, agreed, err) : rc;
}

/* ---- stage copy ---------------------------------------------------------- */

static err_code_t stage_copy(writer_t *w, bool *agreed, err_t *err)
{
    const hdf5io_nodeset_copy_t copy = {.set = w->set,
                                        .io = &w->io,
                                        .directory = w->tmp,
                                        .manifest = &w->manifest,
                                        .share = w->share};
    err_t mine = ERR_INIT;

    if (w->set->partners != NULL)
        hdf5io_nodeset_copy(&copy, &mine);
    return hdf5io_vote(w->votes, &mine, NULL, NULL, agreed, err);
}

/* ---- stage publish ------------------------------------------------------- */

static void publish(writer_t *w, err_t *err)
{
    char *path = str_printf("%s/%s", w->tmp, MANIFEST_NAME);
    str_buf_t text = {0};
    err_code_t rc = hdf5io_manifest_print(&w->manifest, &text, err);

    if (rc == ERR_OK)
        rc = hdf5io_io_create(&w->io, path, text.text, text.length, err);
    if (rc == ERR_OK)
        hdf5io_io_rename(&w->io, w->tmp, w->final, err);
    str_buf_free(&text);
    free(path);
}

static err_code_t stage_publish(writer_t *w, bool *agreed, err_t *err)
{
    err_t mine = ERR_INIT;

    if (w->leads)
        publish(w, &mine);
    return hdf5io_vote(w->votes, &mine, NULL, NULL, agreed, err);
}

/* ---- all stages ---------------------------------------------------------- */

/* All ranks know of a failure: delete what was written. */
static void debris_remove(const writer_t *w)
{
    if (w->leads && w->tmp != NULL)
        hdf5io_nodeset_clean(w->set->home, w->set->keep);
}

static err_code_t stages(writer_t *w, err_t *planned, err_t *err)
{
    bool agreed = true;
    err_code_t rc = stage_begin(w, planned, &agreed, err);

    if (rc == ERR_OK)
        rc = stage_data(w, &agreed, err);
    if (rc == ERR_OK)
        rc = stage_copy(w, &agreed, err);
    if (rc == ERR_OK)
        rc = stage_publish(w, &agreed, err);
    if (rc != ERR_OK && agreed)
        debris_remove(w);
    return rc;
}

err_code_t hdf5io_nodeset_write(const hdf5io_nodeset_t *set,
                                const hdf5io_progress_t *progress,
                                const hdf5io_tensor_t *tensors, int count,
                                uint64_t *nonce, err_t *err)
{
    int ranks;
    writer_t w = {.set = set,
                  .votes = set->checkpoint->votes,
                  .io = hdf5io_io_of(set->checkpoint),
                  .name = {.step = progress->step}};
    err_t planned = ERR_INIT;
    err_code_t rc = mem_new(hdf5io_ballot_t, (size_t)w.votes->size, "a vote",
                            &w.ballots, err);

    if (rc != ERR_OK)
        return rc;
    w.io.sync = no_sync;
    w.leads = hdf5io_nodeset_place(set, w.votes->rank, &ranks) == 0;
    plan(&w, progress, tensors, count, &planned);
    rc = stages(&w, &planned, err);
    if (rc == ERR_OK)
        *nonce = w.name.nonce;
    free(w.final);
    free(w.tmp);
    hdf5io_details_close(&w.details);
    hdf5io_share_close(w.own);
    hdf5io_manifest_free(&w.manifest);
    mem_free(w.ballots);
    return rc;
}
