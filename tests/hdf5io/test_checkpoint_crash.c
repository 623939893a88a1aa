/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The crash matrix of checkpoints: cddp saves, prunes or repairs, and at one of
 * its calls the process ends, or the call fails, or the storage is full from
 * then on. Then the newest whole checkpoint must be found, with all its bits.
 * The calls of HDF5 are tested, too. CDDP_LONG=1 tests every call.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "ckpt_fixture.h"
#include "crash_scenes.h"
#include "lib/io_tape.h"

#define WRITES (1u << IO_TAPE_WRITE)
#define SPACE                                                                \
    (1u << IO_TAPE_OPEN | WRITES | 1u << IO_TAPE_SIZE | 1u << IO_TAPE_LINK | \
     1u << IO_TAPE_MKDIR)

/* What happens at a call. */
typedef struct fault {
    const char *name;
    io_tape_act_t act;
    int error;
    unsigned kinds; /* of the calls at which it happens */
} fault_t;

static const fault_t faults[] = {
    {"ends", IO_TAPE_STOP, 0, IO_TAPE_ALL},
    {"ends within a write", IO_TAPE_TEAR, 0, WRITES},
    {"EIO", IO_TAPE_FAIL, EIO, IO_TAPE_ALL},
    {"ENOSPC", IO_TAPE_FAIL, ENOSPC, IO_TAPE_ALL},
    {"EDQUOT", IO_TAPE_FAIL, EDQUOT, IO_TAPE_ALL},
    {"ESTALE", IO_TAPE_FAIL, ESTALE, IO_TAPE_ALL},
    {"full from here on", IO_TAPE_STAY, ENOSPC, SPACE},
    {"short write", IO_TAPE_SHORT, 0, WRITES},
};
#define FAULTS (int)(sizeof faults / sizeof *faults)

/* fork is slow under the sanitizers, so each fault is tested at fewer calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SPARE 4
#else
#define SPARE 1
#endif

/* How the process that acted ended. */
enum { DONE, DONE_HURT, REFUSED, STRANGE };

/* One case, printed if it fails. */
typedef struct matter {
    const crash_scene_t *scene;
    const fault_t *fault;
    long at;
} matter_t;

/* In a child: act with the fault; returns its exit status. */
static int child_act(const matter_t *matter, const char *root, const char *home)
{
    const io_tape_plan_t plan = {.root = root,
                                 .kinds = matter->fault->kinds,
                                 .at = matter->at,
                                 .act = matter->fault->act,
                                 .error = matter->fault->error,
                                 .no_exchange = matter->scene->no_exchange};
    err_t err = ERR_INIT;
    err_code_t rc;
    long calls;

    io_tape_begin(&plan);
    rc = matter->scene->act(home, &err);
    calls = io_tape_end();
    if (rc == ERR_OK)
        return calls < matter->at ? DONE : DONE_HURT;
    if (calls < matter->at || rc != ERR_IO) {
        fprintf(stderr, "%d: %s\n", (int)rc, err.text);
        return STRANGE;
    }
    return REFUSED;
}

static int act_in_child(const matter_t *matter, const char *root,
                        const char *home)
{
    int status;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0)
        _exit(child_act(matter, root, home));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "%s, %s at call %ld: status %d",
              matter->scene->name, matter->fault->name, matter->at, status);
    return WEXITSTATUS(status);
}

/* One case. False: the act has no such call. */
static bool case_run(const matter_t *matter)
{
    char *root = crash_root_make();
    char *home = str_printf("%s/run/checkpoints", root);
    char *run = str_printf("%s/run", root);
    crash_state_t found;
    err_code_t code;
    err_t err = ERR_INIT;
    int end;

    cr_assert_eq(mkdir(run, 0777), 0);
    matter->scene->prepare(home);
    end = act_in_child(matter, root, home);
    found = crash_find(home, &code, &err);
    cr_assert(code == ERR_OK && end != STRANGE &&
                  crash_allowed(matter->scene, found,
                                end == DONE || end == DONE_HURT,
                                end == REFUSED),
              "%s, %s at call %ld: the act ended with %d; step %ld with the "
              "state %ld was found, status %d: %s",
              matter->scene->name, matter->fault->name, matter->at, end,
              (long)found.step, (long)found.seed, (int)code, err.text);
    crash_best_judge(home);
    crash_go_on(home);
    free(run);
    free(home);
    ckpt_home_remove(root);
    return end != DONE;
}

static int scene_run(const crash_scene_t *scene, int number)
{
    const long step = getenv("CDDP_LONG") == NULL ? scene->sample * SPARE : 1;
    int cases = 0;

    for (int f = 0; f < FAULTS; f++) {
        matter_t matter = {scene, &faults[f], 1 + (number + 3 * f) % step};

        while (case_run(&matter)) {
            matter.at += step;
            cases++;
        }
    }
    return cases;
}

Test(checkpoint_crash, the_newest_whole_checkpoint_is_found_after_any_fault)
{
    int cases = 0;

    for (int s = 0; s < crash_scene_count; s++) {
        const int n = scene_run(&crash_scenes[s], s);

        fprintf(stderr, "checkpoint_crash: %s: %d cases\n",
                crash_scenes[s].name, n);
        cases += n;
    }
    fprintf(stderr, "checkpoint_crash: %d cases in all\n", cases);
    cr_assert_geq(cases, getenv("CDDP_LONG") == NULL ? 150 / SPARE : 2000);
}
