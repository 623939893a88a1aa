/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * killed: runs with checkpoint.local, and lives that are killed when there is a
 * local checkpoint that is newer than all checkpoints of the run directory.
 * Ranks are threads of a process that the test starts for such a life, so all
 * of them die at once.
 */
#ifndef CDDP_TESTS_TRAIN_KILLED_H
#define CDDP_TESTS_TRAIN_KILLED_H

#include "train/saves.h"

#define KILLED_RANKS 2

/* The setting of checkpoint.local, DIR/local. */
extern char killed_option[1024];
/* Of the next life that is killed: its steps, and the checkpoints of the lives
 * before it. */
extern int killed_steps, killed_checkpoints;

/* saves_open with local checkpoints every two steps, and no others before the
 * end. settings[6] is killed_option, settings[7] is [more]. */
void killed_open(harness_t *harness, const char *more);
/* A life that is killed. */
void killed_life(harness_t *harness);
/* The run ends with the bits of the undisturbed run [whole], and nothing stays
 * on its nodes. [resumed]: how often the lives of the run have resumed. */
void killed_finish(harness_t *harness, int ranks, const harness_t *whole,
                   int resumed);

/* The undisturbed run. */
void killed_whole(harness_t *whole, const char *more);
/* Two runs with the setting [more]: [whole] has ended undisturbed, and the
 * first life of [parts] was killed. */
void killed_pair(harness_t *whole, harness_t *parts, const char *more);
void killed_pair_close(harness_t *whole, harness_t *parts);

/* The path of the only home in DIR/local, or of the newest set in it, to be
 * freed; NULL: there is none. */
char *killed_home(void);
char *killed_set(void);

/* Rename [from] to [to] in the directory of the test. */
void killed_rename(const harness_t *harness, const char *from, const char *to);

#endif
