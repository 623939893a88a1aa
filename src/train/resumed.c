/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/resumed.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/str.h"
#include "hdf5io/checkpoint_manifest.h"
#include "train/changes.h"
#include "train/marks.h"

#define CHANGES_LOGGED 30 /* changed keys that are logged, one line each */
#define CHANGES_NAMED 5   /* changed keys that an error message names */

/* ---- other data -----------------------------------------------------------
 */

err_code_t train_resumed_data(const train_resumed_t *resumed, err_t *err)
{
    const hdf5io_progress_t *was = resumed->progress;
    const int64_t total = resumed->samples;
    const char *text = "data.train holds %lld samples, but %lld when the "
                       "checkpoint was written: %s";

    if (was->data_samples == 0 || was->data_samples == total)
        return ERR_OK;
    if (resumed->config->train.reproducible)
        return err_set(err, ERR_DATA, text, (long long)total,
                       (long long)was->data_samples,
                       "train.reproducible cannot hold over that; restore the "
                       "data or start with --fresh");
    if (resumed->logs)
        log_warn("train", text, (long long)total, (long long)was->data_samples,
                 "the order of samples changes from here on, and this epoch "
                 "may see some twice or not at all");
    return ERR_OK;
}

/* Check that the data of one split has not changed: otherwise a warning, or an
 * error with train.reproducible. */
static err_code_t split_check(const train_resumed_t *resumed,
                              const train_marks_pair_t *pair, const char *split,
                              err_t *err)
{
    char say[ERR_TEXT_MAX / 2];

    if (train_marks_same(pair, split, say, sizeof say))
        return ERR_OK;
    if (resumed->config->train.reproducible)
        return err_set(err, ERR_DATA,
                       "%s: train.reproducible cannot hold over that; restore "
                       "the data or start with --fresh",
                       say);
    log_warn("train", "%s: the run goes on with what is there now", say);
    return ERR_OK;
}

/* Log if the checkpoint keeps too few hashes to find all changes of the data.
 */
static void unknown_say(const train_resumed_t *resumed,
                        const hdf5io_manifest_t *manifest, const char *path)
{
    bool whole = true;

    for (int i = 0; i < manifest->mark_count; i++)
        whole = whole && manifest->marks[i].whole;
    if (manifest->mark_count == 0 && resumed->mark_count > 0)
        log_warn("train",
                 "%s keeps no hashes of its data: whether the data is the same "
                 "now is not known",
                 path);
    else if (!whole && resumed->config->data.validate == TRAIN_VALIDATE_FULL)
        log_warn("train",
                 "%s keeps hashes of a sample of its data only, as "
                 "data.validate was quick then: changes outside of the sample "
                 "are not known",
                 path);
}

err_code_t train_resumed_marks(const train_resumed_t *resumed, const char *path,
                               err_t *err)
{
    const int64_t total = resumed->samples;
    hdf5io_manifest_t manifest;
    train_marks_pair_t pair;
    uint64_t hash;
    err_code_t rc = hdf5io_manifest_load(path, &manifest, &hash, err);

    if (rc != ERR_OK)
        return rc;
    pair = (train_marks_pair_t){.then = manifest.marks,
                                .then_count = manifest.mark_count,
                                .now = resumed->marks,
                                .now_count = resumed->mark_count};
    /* If the number of samples changed, train_resumed_data has said so, and
     * the marks cannot be compared. */
    if (manifest.progress.data_samples == total)
        rc = split_check(resumed, &pair, "train", err);
    if (rc == ERR_OK)
        rc = split_check(resumed, &pair, "valid", err);
    if (rc == ERR_OK)
        unknown_say(resumed, &manifest, path);
    hdf5io_manifest_free(&manifest);
    return rc;
}

/* ---- other settings ------------------------------------------------------ */

/* Return whether the checkpoint is of a complete run: nothing is left to
 * train. */
static bool is_complete(const train_resumed_t *resumed)
{
    const hdf5io_progress_t *progress = resumed->progress;
    const int64_t left = resumed->config->train.epochs - progress->epoch;

    return left <= 0 ||
           (left == 1 && progress->epoch_step == resumed->epoch_steps);
}

/* Return whether the checkpoint at [path] is in this run directory. */
static bool is_own(const train_resumed_t *resumed, const char *path)
{
    char *parent = str_printf("%s/..", path);
    char *own = str_printf("%s/checkpoints", resumed->config->run.dir);
    struct stat a, b;
    const bool same = stat(parent, &a) == 0 && stat(own, &b) == 0 &&
                      a.st_dev == b.st_dev && a.st_ino == b.st_ino;

    free(own);
    free(parent);
    return same;
}

/* Refuse: the results in this directory would be attributed to settings that
 * were never used for training. */
static err_code_t complete_refuse(const train_resumed_t *resumed,
                                  const train_changes_t *changes, err_t *err)
{
    str_buf_t list = {0};

    train_changes_print(changes, CHANGES_NAMED, &list);
    err_set(err, ERR_CONFIG,
            "run directory %s is complete with another configuration (%s): "
            "raise train.epochs, choose run.name, or --fresh",
            resumed->config->run.dir, list.text);
    str_buf_free(&list);
    return ERR_CONFIG;
}

/* Log each change. */
static void changes_say(const train_resumed_t *resumed,
                        const train_changes_t *changes)
{
    const long long step = (long long)resumed->progress->step;

    for (int i = 0; i < changes->count && i < CHANGES_LOGGED; i++)
        log_warn("train", "changed since step %lld: %s %s -> %s", step,
                 changes->items[i].key, changes->items[i].was,
                 changes->items[i].now);
    if (changes->count > CHANGES_LOGGED)
        log_warn("train", "changed since step %lld: %d more keys", step,
                 changes->count - CHANGES_LOGGED);
}

/* Log if nothing is left to train and the results come from the checkpoint of
 * another run, whatever this run file asks for. */
static void elsewhere_say(const train_resumed_t *resumed, const char *path)
{
    if (is_complete(resumed) && !is_own(resumed, path))
        log_warn("train",
                 "%s is the end of another run: nothing is trained here, and "
                 "the results are those of its weights and settings; raise "
                 "train.epochs (now %lld) to train on",
                 path, (long long)resumed->config->train.epochs);
}

/* Log a changed seed. For most checkpoints the comparison of settings shows it,
 * but a checkpoint written by another program has no settings. */
static void seed_say(const train_resumed_t *resumed)
{
    if (resumed->progress->seed != (uint64_t)resumed->config->run.seed)
        log_warn("train",
                 "run.seed is %lld but the checkpoint was made with "
                 "%llu: order and dropout change from here on",
                 (long long)resumed->config->run.seed,
                 (unsigned long long)resumed->progress->seed);
}

err_code_t train_resumed_settings(const train_resumed_t *resumed,
                                  const char *path, err_t *err)
{
    train_changes_t changes = {0};
    hdf5io_manifest_t manifest;
    err_t why = ERR_INIT;
    uint64_t hash;
    err_code_t rc = hdf5io_manifest_load(path, &manifest, &hash, err);

    if (rc != ERR_OK)
        return rc;
    if (manifest.config_text[0] == '\0')
        seed_say(resumed);
    else if (train_changes_find(manifest.config_text, resumed->config, &changes,
                                &why) != ERR_OK)
        log_warn("train", "%s: what has changed since is not known: %s", path,
                 why.text);
    else if (changes.count > changes.defaults && is_complete(resumed) &&
             is_own(resumed, path))
        rc = complete_refuse(resumed, &changes, err);
    else
        changes_say(resumed, &changes);
    if (rc == ERR_OK)
        elsewhere_say(resumed, path);
    train_changes_free(&changes);
    hdf5io_manifest_free(&manifest);
    return rc;
}
