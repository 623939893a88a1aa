/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * crash_scenes: the acts of cddp on a directory of checkpoints (saving,
 * replacing, retiring, going back, pruning, repairing). Each scene has the
 * states that a later start may find if the act is interrupted. The states are
 * those of ckpt_fixture.h.
 */
#ifndef CDDP_TESTS_CRASH_SCENES_H
#define CDDP_TESTS_CRASH_SCENES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define CRASH_STATES_MAX 4

/* The state made from [seed], as a checkpoint of [step]; seed 0: none. */
typedef struct crash_state {
    int64_t seed, step;
} crash_state_t;

typedef struct crash_scene {
    const char *name;
    bool no_exchange; /* names cannot be exchanged, as on NFS */
    int sample;       /* a short test takes every n-th call */
    /* Make the checkpoints that were there before, in RUN/checkpoints. */
    void (*prepare)(const char *home);
    err_code_t (*act)(const char *home, err_t *err);
    /* The states that a start may find if the act was interrupted or failed. If
     * before[0] is {0, 0}, there was no checkpoint before, and a start may find
     * none. */
    crash_state_t before[CRASH_STATES_MAX];
    /* The state that a start must find after the act succeeded. A start may
     * also find it if the act was interrupted. */
    crash_state_t after;
} crash_scene_t;

extern const crash_scene_t crash_scenes[];
extern const int crash_scene_count;

/* Make a directory in memory, or else in TMPDIR; its path contains no link.
 * ckpt_home_remove removes it. */
char *crash_root_make(void);

/* The state that a start in [home] finds; {0, 0}: none. The test fails if two
 * ranks find different states, or bits that no scene saves. *code is the status
 * of reading. */
crash_state_t crash_find(const char *home, err_code_t *code, err_t *err);

/* The checkpoint that best.json names must be there, and intact. */
void crash_best_judge(const char *home);

/* Is [found] one of the states that the scene allows? [done]: the act
 * succeeded; [failed]: the act failed; neither: the act was interrupted. */
bool crash_allowed(const crash_scene_t *scene, crash_state_t found, bool done,
                   bool failed);

/* The next save must work, be found, and leave nothing behind. */
void crash_go_on(const char *home);

#endif
