/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * crash_scenes: what cddp does with a directory of checkpoints (saving,
 * replacing, retiring, going back, pruning, repairing), each with the states
 * that a later start may find if it is cut off. The states are those of
 * ckpt_fixture.h.
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
    /* What may be found if the act was cut off or failed; none: nothing was
     * there before, and nothing may be found. */
    crash_state_t before[CRASH_STATES_MAX];
    /* What must be found after it succeeded, and may be found as soon as it was
     * cut off. */
    crash_state_t after;
} crash_scene_t;

extern const crash_scene_t crash_scenes[];
extern const int crash_scene_count;

/* Make a directory in memory, or else in TMPDIR; its path contains no link.
 * ckpt_home_remove removes it. */
char *crash_root_make(void);

/* What a start in [home] finds, with all its bits. Fails the test if two ranks
 * find different states, or one that no scene makes. *code is that of reading;
 * {0, 0}: nothing. */
crash_state_t crash_find(const char *home, err_code_t *code, err_t *err);

/* The checkpoint that best.json names must be there, and intact. */
void crash_best_judge(const char *home);

/* Is [found] one of those that the scene allows? [done]: the act was
 * successful; [failed]: it was not. Neither: it was cut off. */
bool crash_allowed(const crash_scene_t *scene, crash_state_t found, bool done,
                   bool failed);

/* The next save must work, be found, and leave nothing behind. */
void crash_go_on(const char *home);

#endif
