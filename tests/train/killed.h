/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * killed: runs with checkpoint.local whose lives are killed. The kill comes
 * when a local checkpoint is newer than all checkpoints of the run directory.
 * The test starts a process for such a life. Ranks are threads of this process,
 * so all ranks die at once.
 */
#ifndef CDDP_TESTS_TRAIN_KILLED_H
#define CDDP_TESTS_TRAIN_KILLED_H

#include "train/saves.h"

#define KILLED_RANKS 2

/* The setting of checkpoint.local, DIR/local. */
extern char killed_option[1024];
/* The number of steps of the next life that is killed, and the number of
 * checkpoints that the lives before have written. */
extern int killed_steps, killed_checkpoints;

/* saves_open with a local checkpoint every two steps, and a checkpoint of the
 * run directory only at the end. settings[6] is killed_option, settings[7] is
 * [more]. */
void killed_open(harness_t *harness, const char *more);
/* Run a life that is killed. */
void killed_life(harness_t *harness);
/* Run the last life. The run must end with the bits of the undisturbed run
 * [whole], and nothing may stay on its nodes. [resumed]: how often the lives of
 * the run must have resumed. */
void killed_finish(harness_t *harness, int ranks, const harness_t *whole,
                   int resumed);

/* Make the undisturbed run. */
void killed_whole(harness_t *whole, const char *more);
/* Make two runs with the setting [more]: [whole] ends undisturbed, and the
 * first life of [parts] is killed. */
void killed_pair(harness_t *whole, harness_t *parts, const char *more);
void killed_pair_close(harness_t *whole, harness_t *parts);

/* The path of the only home in DIR/local, or of the newest set in it, to be
 * freed; NULL: there is none. */
char *killed_home(void);
char *killed_set(void);
/* Assert that there is no home. */
void killed_home_gone(void);

/* Rename [from] to [to] in the directory of the test. */
void killed_rename(const harness_t *harness, const char *from, const char *to);

#endif
