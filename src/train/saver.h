/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * saver: writes checkpoints in a thread. Meanwhile the run makes its next
 * steps, or waits. If storage never answers, the thread waits for ever, but the
 * run does not.
 *
 * Who uses which memory: start copies what changes within a step, the state of
 * a comm hook. Parameters, running statistics and the optimizer's state stay as
 * they are until the next update, and the thread copies them meanwhile. settle,
 * which is called before an update, copies what is missing. From then on the
 * thread reads only its copy. It needs only the share that this rank writes.
 * On a device the mirror is such a copy already: it changes when it is pulled
 * again, after join.
 *
 * The threads of all ranks vote in a group of their own, so they need nothing
 * of the training's group. A dead rank, or one whose thread makes no progress,
 * ends them with ERR_PEER within fault.timeout, as in any group; a rank that
 * waits for storage has fault.io_timeout.
 *
 * Thread rule: one thread, that of the training.
 */
#ifndef CDDP_TRAIN_SAVER_H
#define CDDP_TRAIN_SAVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/trace.h"
#include "comm/comm.h"
#include "obs/spent.h"
#include "train/kept.h"

typedef struct train_saver train_saver_t;

typedef struct train_saver_plan {
    comm_group_t *parent; /* a group of the host's memory */
    double io_timeout;    /* seconds: fault.io_timeout */
    /* What is saved; outlives the saver. */
    const train_kept_t *kept;
    /* Training goes on during a save. False: training waits in join. */
    bool behind;
    /* The tensors are in memory that updates change, so that they are copied.
     * False: they are in a mirror, or training waits. */
    bool copies;
} train_saver_plan_t;

/* Open the group and the buffer for the copy, and start the thread. If a rank
 * has no memory or no thread for them, all ranks get its error. Collective;
 * blocks, bounded by the group's timeout. */
err_code_t train_saver_open(const train_saver_plan_t *plan, train_saver_t **out,
                            err_t *err);
/* Finish the save in progress, then free. NULL allowed. Waits for other ranks
 * no longer than the timeouts, and for its own storage as join does. If the
 * storage does not answer, the saver is not freed. */
void train_saver_close(train_saver_t *saver);

/* Before the first save: from now on the thread traces each save in [trace]. */
void train_saver_trace(train_saver_t *saver, trace_t *trace);

typedef struct train_save {
    /* Valid until join; its votes and its share are replaced. */
    const hdf5io_checkpoint_config_t *config;
    hdf5io_progress_t progress;
    int64_t saved_step; /* of the newest checkpoint, for messages; -1: none */
    void *context; /* passed to the functions. The thread calls them, except
                      [alone]. */
    /* (optional) May it be written? An error is the error of all ranks. */
    err_code_t (*allowed)(void *context, err_t *err);
    /* (optional) The checkpoint was published, [seconds] after start. */
    void (*published)(void *context, double seconds);
    /* (optional) Storage has not answered this rank for [seconds], more than
     * io_timeout, and the other ranks have given up the save. Called once, by
     * the training's thread, in join, wait or close. */
    void (*alone)(void *context, double seconds);
    /* (optional) The save has not ended, and storage has not failed to answer
     * for longer than io_timeout. Called repeatedly, by the training's thread,
     * in join, wait or close. */
    void (*waits)(void *context);
    /* (optional) Called with the saver's votes, in place of
     * hdf5io_checkpoint_write and [published]: it writes a local checkpoint. */
    err_code_t (*write)(const struct train_save *save,
                        const hdf5io_votes_t *votes, err_t *err);
} train_save_t;

/* Begin to save. No save is in progress. All ranks call this at the same step.
 * Does not wait for other ranks or for storage. */
void train_saver_start(train_saver_t *saver, const train_save_t *save);

/* Return whether a save was started and not joined; whether it has ended, so
 * that join does not wait; whether it has not, but has failed, as a rank is
 * lost: then the others' saves end, and this one's as soon as storage answers
 * it. NULL: false. They do not wait. */
bool train_saver_busy(train_saver_t *saver);
bool train_saver_ended(train_saver_t *saver);
bool train_saver_failed(train_saver_t *saver);

/* This rank ends because of [fault], an ERR_PEER: tell the savers of the other
 * ranks (comm_group_tell). NULL: nothing is done. Does not wait. */
void train_saver_tell(train_saver_t *saver, const err_t *fault);

/* From now on the thread also reports its progress to [group], which must be
 * closed after the saver. No save is in progress. */
void train_saver_also(train_saver_t *saver, comm_group_t *group);

/* Before the tensors change: return when all of them are copied. Cheap if they
 * are. Returns the seconds that this took. NULL: nothing is done. */
double train_saver_settle(train_saver_t *saver);

/* Wait for the end of the save in progress. Sets *seconds to its duration. All
 * ranks get one outcome: that of hdf5io_checkpoint_write, of allowed, or
 * ERR_DIVERGED if a tensor has numbers that are not finite. If the storage of
 * this rank does not answer for io_timeout and twice the group's timeout, this
 * rank alone gets ERR_PEER, as the others did before, or ERR_IO if there are no
 * others. Then the saver is stuck. */
err_code_t train_saver_join(train_saver_t *saver, double *seconds, err_t *err);
/* After join: was the save allowed, so that its error is that of
 * hdf5io_checkpoint_write? Equal on all ranks. */
bool train_saver_allowed(const train_saver_t *saver);
/* Wait for the end of the save in progress, but do not join it. Returns false
 * if the storage of this rank does not answer for as long as join waits: then
 * the saver is stuck. No save, or NULL: true. Local. */
bool train_saver_wait(train_saver_t *saver);
/* Has join, wait or close ended its wait for the thread, as storage does not
 * answer? A call of the system cannot be ended, so the thread still uses the
 * saver, the tensors and the share. All of them must stay until the process
 * ends. NULL: false. */
bool train_saver_stuck(train_saver_t *saver);

/* ---- what the run knows of a save ---------------------------------------- */

/* A checkpoint that was written. */
typedef struct train_saved {
    int64_t step, epoch;
    double seconds; /* from its start until it was published */
    double exposed; /* of these, seconds in which no step was made */
    double bytes;   /* of all its tensors */
} train_saved_t;

/* Saves that have failed since the newest checkpoint; see save_failed.h. */
typedef struct train_failures {
    int64_t row;   /* their number */
    int64_t again; /* step of the next try; 0: no step decides */
    double at;     /* clock instant of the newest one */
} train_failures_t;

/* The best evaluation, the best one whose checkpoint was written, and that of
 * the save in progress; see best.h. A step of -1: there is none. */
typedef struct train_best_mark {
    double value;
    int64_t step;
} train_best_mark_t;

typedef struct train_best {
    train_best_mark_t now, kept, saving;
} train_best_t;

/* The save in progress; see save.h. The saver's thread reads [saved] and
 * [spent], and sets [lost]. */
typedef struct train_saving {
    train_saver_t *saver; /* NULL: the training's thread writes checkpoints */
    bool behind;          /* training goes on during a save */
    /* Of rank 0: deletes old checkpoints. NULL: a save deletes them. */
    struct train_sweeper *sweeper;
    struct train_checkpoint_config *config;
    train_saved_t saved;  /* seconds and exposed are set at its end */
    hdf5io_skip_t newest; /* samples of its last step */
    obs_spent_t spent;    /* up to its step */
    double began;         /* clock instant */
    double exposed;       /* seconds in which it has kept training waiting */
    bool lost;            /* the run directory is no longer this run's */
    bool local;           /* it is a local checkpoint; see nodeset.h */
    struct train_nodeset *nodeset; /* NULL: there are no local checkpoints */
    /* On rank 0: the line of an earlier start, whose local checkpoints this
     * start does not use. NULL: there is none. */
    struct train_line *left;
    int64_t waits; /* saves that were due before the last one's end */
    train_failures_t failures;
    train_best_t best;
} train_saving_t;

#endif
