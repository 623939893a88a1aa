/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The power fails while cddp works on a directory of checkpoints, or right
 * after that. In every state that POSIX allows then, a start finds a whole
 * checkpoint: one that was durable before, or the new one. It must be the new
 * one if that was published before the power failed. CDDP_LONG=1 tries more
 * states.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "base/str.h"
#include "ckpt_fixture.h"
#include "crash_scenes.h"
#include "lib/power_loss.h"

#define SHORT_STATES 50
#define LONG_STATES 500
/* After every n-th state one more checkpoint is written. */
#define GO_ON_EVERY 8

static int state_count(void)
{
    return getenv("CDDP_LONG") == NULL ? SHORT_STATES : LONG_STATES;
}

/* An act while it is recorded. */
typedef struct session {
    power_loss_t *power;
    char *root, *home;
    char *name; /* of the directory that the new checkpoint gets */
    bool named;
    int promised; /* it is durable after this number of changes, -1: never */
} session_t;

static void session_note(void *context, const io_tape_call_t *call)
{
    session_t *session = context;

    power_loss_note(session->power, call);
    if (call->kind == IO_TAPE_RENAME &&
        strcmp(strrchr(call->to, '/') + 1, session->name) == 0)
        session->named = true;
    if (call->kind == IO_TAPE_SYNC && session->named && session->promised < 0 &&
        strcmp(call->path, session->home) == 0)
        session->promised = power_loss_count(session->power);
}

static void session_begin(session_t *session, const crash_scene_t *scene)
{
    char *run;

    *session = (session_t){.root = crash_root_make(), .promised = -1};
    session->home = str_printf("%s/run/checkpoints", session->root);
    session->name = str_printf("step-%010" PRId64, scene->after.step);
    run = str_printf("%s/run", session->root);
    cr_assert_eq(mkdir(run, 0777), 0);
    free(run);
    scene->prepare(session->home);
    session->power = power_loss_open(session->root);
}

static void session_end(session_t *session)
{
    power_loss_close(session->power);
    free(session->name);
    free(session->home);
    ckpt_home_remove(session->root);
}

static void session_act(session_t *session, const crash_scene_t *scene)
{
    const io_tape_plan_t plan = {.root = session->root,
                                 .no_exchange = scene->no_exchange,
                                 .note = session_note,
                                 .context = session};
    err_t err = ERR_INIT;

    io_tape_begin(&plan);
    cr_assert_eq(scene->act(session->home, &err), ERR_OK, "%s: %s", scene->name,
                 err.text);
    io_tape_end();
}

/* Judge one state after [count] changes. */
static void state_judge(const session_t *session, const crash_scene_t *scene,
                        int count, uint64_t seed)
{
    const bool done = count == power_loss_count(session->power) ||
                      (session->promised >= 0 && count >= session->promised);
    char *root = crash_root_make();
    char *home = str_printf("%s/run/checkpoints", root);
    crash_state_t found;
    err_code_t code;
    err_t err = ERR_INIT;

    power_loss_store(session->power, count, seed, root);
    found = crash_find(home, &code, &err);
    cr_assert(code == ERR_OK && crash_allowed(scene, found, done, false),
              "%s, %d of %d changes (durable from %d on), state %" PRIu64
              ": step %" PRId64 " with the state %" PRId64
              " was found, status %d: %s",
              scene->name, count, power_loss_count(session->power),
              session->promised, seed, found.step, found.seed, (int)code,
              err.text);
    crash_best_judge(home);
    if (seed % GO_ON_EVERY == 0)
        crash_go_on(home);
    free(home);
    ckpt_home_remove(root);
}

Test(checkpoint_power, what_is_durable_is_found_after_the_power_failed)
{
    int states = 0;

    for (int s = 0; s < crash_scene_count; s++) {
        const crash_scene_t *scene = &crash_scenes[s];
        session_t session;
        rng_t rng;

        session_begin(&session, scene);
        session_act(&session, scene);
        rng_open(&rng, 1, RNG_INIT, (uint64_t)s, 0);
        for (int i = 0; i < state_count(); i++, states++) {
            const int all = power_loss_count(session.power);
            const int count = (int)rng_below(&rng, (uint64_t)all + 1);

            state_judge(&session, scene, i % 5 == 0 ? all : count,
                        (uint64_t)states);
        }
        session_end(&session);
    }
    fprintf(stderr, "checkpoint_power: %d cases\n", states);
}

/* ---- a run that goes on after a kill, and then a loss of power ------------
 */

/* The newest checkpoint in [home], as a start finds it. The caller frees it. */
static char *newest_path(const char *home)
{
    char **paths = NULL, *newest = NULL;
    int count = 0;

    cr_assert_eq(hdf5io_checkpoint_list(home, &paths, &count, NULL), ERR_OK);
    for (int i = 0; i < count; i++) {
        if (i == 0)
            newest = paths[i];
        else
            free(paths[i]);
    }
    free(paths);
    return newest;
}

/* A process was killed after [count] changes; the next process gives the newest
 * checkpoint its name, if it has none. After that, no loss of power may remove
 * this checkpoint. Returns the number of states that were judged. */
static int adoption_judge(session_t *session, int count)
{
    char *root = crash_root_make();
    char *home = str_printf("%s/run/checkpoints", root), *path;
    const io_tape_plan_t plan = {
        .root = root, .note = power_loss_note, .context = session->power};
    crash_scene_t found = {.name = "adopted"};
    int states = 0;
    err_code_t code;
    err_t err = ERR_INIT;

    power_loss_continue(session->power, count, root);
    found.after = crash_find(home, &code, &err);
    cr_assert_eq(code, ERR_OK, "%s", err.text);
    path = newest_path(home);
    if (strstr(path, "/.tmp-") != NULL) {
        io_tape_begin(&plan);
        cr_assert_eq(hdf5io_checkpoint_adopt(home, path, &err), ERR_OK, "%s",
                     err.text);
        io_tape_end();
        while (states < SHORT_STATES) {
            state_judge(session, &found, power_loss_count(session->power),
                        (uint64_t)states);
            states++;
        }
    }
    free(path);
    free(home);
    ckpt_home_remove(root);
    return states;
}

Test(checkpoint_power, what_a_killed_save_left_is_durable_once_it_has_a_name)
{
    const crash_scene_t *scene = &crash_scenes[1];
    session_t session;
    int states = 0;

    session_begin(&session, scene);
    session_act(&session, scene);
    /* From the last change backwards, as power_loss_continue drops the record
     * after [count] changes. */
    for (int count = power_loss_count(session.power); count > 0; count--)
        states += adoption_judge(&session, count);
    session_end(&session);
    fprintf(stderr, "checkpoint_power: adopted: %d cases\n", states);
    cr_assert_gt(states, 0);
}
