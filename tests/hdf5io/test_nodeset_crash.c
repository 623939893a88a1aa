/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The crash matrix of node sets: at one of the calls of a local save the
 * process ends, or the call fails, or there is no space from then on. Then the
 * newest whole set must be found, with all its bits. CDDP_LONG=1 tests every
 * call.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crash_scenes.h"
#include "lib/io_tape.h"
#include "nodesets.h"

#define WRITES (1u << IO_TAPE_WRITE)
#define SPACE                                                                \
    (1u << IO_TAPE_OPEN | WRITES | 1u << IO_TAPE_SIZE | 1u << IO_TAPE_LINK | \
     1u << IO_TAPE_MKDIR)
#define SAMPLE 5 /* a short test takes every n-th call */

typedef struct fault {
    const char *name;
    io_tape_act_t act;
    int error;
    unsigned kinds;
} fault_t;

static const fault_t faults[] = {
    {"ends", IO_TAPE_STOP, 0, IO_TAPE_ALL},
    {"ends within a write", IO_TAPE_TEAR, 0, WRITES},
    {"EIO", IO_TAPE_FAIL, EIO, IO_TAPE_ALL & ~(1u << IO_TAPE_UNLINK)},
    {"ENOSPC", IO_TAPE_FAIL, ENOSPC, SPACE},
    {"full from here on", IO_TAPE_STAY, ENOSPC, SPACE},
    {"short write", IO_TAPE_SHORT, 0, WRITES},
};

enum { DONE, DONE_HURT, REFUSED, STRANGE };

/* In a child: save with the fault; returns its exit status. */
static int child_save(nodesets_t *sets, const fault_t *fault, long at)
{
    const io_tape_plan_t plan = {.root = sets->root,
                                 .kinds = fault->kinds,
                                 .at = at,
                                 .act = fault->act,
                                 .error = fault->error};
    err_code_t rc;
    long calls;

    io_tape_begin(&plan);
    rc = nodesets_save(sets, 20);
    calls = io_tape_end();
    if (rc == ERR_OK)
        return calls < at ? DONE : DONE_HURT;
    if (rc == ERR_IO && calls >= at)
        return REFUSED;
    fprintf(stderr, "%d after %ld calls: %s\n", (int)rc, calls, sets->err.text);
    return STRANGE;
}

static int save_in_child(nodesets_t *sets, const fault_t *fault, long at)
{
    int status;
    const pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0)
        _exit(child_save(sets, fault, at));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status), "%s at call %ld: status %d", fault->name, at,
              status);
    return WEXITSTATUS(status);
}

/* One case: sets of steps 10 and 15 are there, and 20 is saved. False: there is
 * no such call. */
static bool case_run(const fault_t *fault, long at)
{
    char *root = crash_root_make();
    nodesets_t sets = {.root = root, .ranks = 2, .per_node = 1, .copies = true};
    int64_t found;
    int end;

    nodesets_save_ok(&sets, 10);
    nodesets_save_ok(&sets, 15);
    end = save_in_child(&sets, fault, at);
    cr_assert_neq(end, STRANGE, "%s at call %ld", fault->name, at);
    found = nodesets_read(&sets);
    cr_assert((found == 15 && end != DONE && end != DONE_HURT) ||
                  (found == 20 && end != REFUSED),
              "%s at call %ld: the save ended with %d, and %ld was found",
              fault->name, at, end, (long)found);
    /* The next save works, and leaves nothing behind. */
    sets.keep = sets.found.nonce;
    nodesets_save_ok(&sets, 30);
    cr_assert_eq(nodesets_read(&sets), 30);
    for (int node = 0; node < 2; node++) {
        char *home = str_printf("%s/node-%d", root, node);

        cr_assert_eq(ckpt_count(home, "."), 0);
        cr_assert_leq(ckpt_count(home, ""), 2, "%s at call %ld", fault->name,
                      at);
        free(home);
    }
    ckpt_home_remove(root);
    return end != DONE;
}

Test(nodeset_crash, the_newest_whole_set_is_found_after_any_fault)
{
    const long step = getenv("CDDP_LONG") == NULL ? SAMPLE : 1;
    int cases = 0;

    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
        for (long at = 1 + (long)f % step; case_run(&faults[f], at); at += step)
            cases++;
    fprintf(stderr, "nodeset_crash: %d cases\n", cases);
    cr_assert_geq(cases, getenv("CDDP_LONG") == NULL ? 10 : 60);
}
