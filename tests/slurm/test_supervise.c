/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/supervise.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "base/err.h"

Test(supervise, the_record_counts_more_than_what_srun_says)
{
    cr_assert_eq(slurm_step_status(0, -1), 0);
    cr_assert_eq(slurm_step_status(65, -1), 65);
    cr_assert_eq(slurm_step_status(137, 78), 78);
    cr_assert_eq(slurm_step_status(137, 0), 0);
}

Test(supervise, what_is_no_status_of_cddp_is_a_failed_peer)
{
    cr_assert_eq(slurm_step_status(137, -1), ERR_PEER);
    cr_assert_eq(slurm_step_status(143, -1), ERR_PEER);
    cr_assert_eq(slurm_step_status(1, -1), ERR_PEER);
    cr_assert_eq(slurm_step_status(9, 12345), ERR_PEER);
    cr_assert_eq(slurm_step_status(127, -1), 127);
    cr_assert_eq(slurm_step_status(126, -1), 126);
}

Test(supervise, waiting_makes_no_room_on_a_full_disk)
{
    cr_assert(slurm_io_is_final("cannot write x: No space left on device"));
    cr_assert(slurm_io_is_final("x: Disk quota exceeded; free some"));
    cr_assert(slurm_io_is_final("x: Read-only file system"));
    cr_assert(!slurm_io_is_final("x: Stale file handle"));
    cr_assert(!slurm_io_is_final(""));
}

/* How a step ended, and what is to be done then. */
typedef struct row {
    const char *what;
    slurm_ended_t ended;
    slurm_action_t action;
    int status;
    double wait;
} row_t;

#define TIME .left = 3600, .needed = 60
#define LATE .left = 59, .needed = 60

static const row_t rows[] = {
    {"done", {.status = 0, TIME, .fruitless = 9}, SLURM_END, 0, 0},
    {"bad data", {.status = 65, TIME}, SLURM_END, 65, 0},
    {"no device", {.status = 69, TIME}, SLURM_END, 69, 0},
    {"diverged", {.status = 70, TIME}, SLURM_END, 70, 0},
    {"no memory", {.status = 71, TIME}, SLURM_END, 71, 0},
    {"in use", {.status = 73, TIME}, SLURM_END, 73, 0},
    {"not found", {.status = 127, TIME}, SLURM_END, 127, 0},
    {"time is over",
     {.status = 75, TIME, .fruitless = 2},
     SLURM_REQUEUE,
     75,
     0},
    {"slices too short",
     {.status = 75, TIME, .fruitless = 3},
     SLURM_END,
     70,
     0},
    {"a peer", {.status = 76, TIME, .fruitless = 1}, SLURM_RESTART, 76, 0},
    {"no limit", {.status = 76, .left = INFINITY}, SLURM_RESTART, 76, 0},
    {"a peer, late", {.status = 76, LATE}, SLURM_REQUEUE, 76, 0},
    {"no progress", {.status = 76, TIME, .fruitless = 3}, SLURM_END, 70, 0},
    {"cancelled",
     {.status = 76, TIME, .ended_by_slurm = true},
     SLURM_END,
     76,
     0},
    {"the job has ended",
     {.status = 76, TIME, .job_gone = true, .fruitless = 3},
     SLURM_END,
     75,
     0},
    {"IO", {.status = 74, TIME, .io_failures = 1}, SLURM_RESTART, 74, 10},
    {"IO again", {.status = 74, TIME, .io_failures = 2}, SLURM_RESTART, 74, 30},
    {"IO, 3rd", {.status = 74, TIME, .io_failures = 3}, SLURM_RESTART, 74, 60},
    {"IO, 4th", {.status = 74, TIME, .io_failures = 4}, SLURM_REQUEUE, 74, 0},
    {"IO, late", {.status = 74, LATE, .io_failures = 1}, SLURM_REQUEUE, 74, 10},
    {"IO, too late for the wait",
     {.status = 74, .left = 100, .needed = 60, .io_failures = 3},
     SLURM_REQUEUE,
     74,
     60},
    {"IO after a requeue",
     {.status = 74, TIME, .io_failures = 1, .io_requeued = true},
     SLURM_RESTART,
     74,
     10},
    {"IO, one requeue only",
     {.status = 74, TIME, .io_failures = 4, .io_requeued = true},
     SLURM_END,
     74,
     0},
    {"IO, late, one requeue only",
     {.status = 74, LATE, .io_failures = 1, .io_requeued = true},
     SLURM_END,
     74,
     0},
    {"disk full",
     {.status = 74, TIME, .io_failures = 1, .io_final = true},
     SLURM_END,
     74,
     0},
    {"no step was created",
     {.status = 76, TIME, .unlaunched = 1, .launched = true, .fruitless = 3},
     SLURM_RESTART,
     76,
     1},
    {"no step for a long time",
     {.status = 76, TIME, .unlaunched = 60, .launched = true},
     SLURM_RESTART,
     76,
     30},
    {"no step for too long",
     {.status = 76, TIME, .unlaunched = 61, .launched = true},
     SLURM_REQUEUE,
     76,
     0},
    {"busy nodes",
     {.status = 76, TIME, .unlaunched = 10, .busy = 10, .launched = true},
     SLURM_RESTART,
     76,
     10},
    {"busy nodes for too long",
     {.status = 76, TIME, .unlaunched = 12, .busy = 11, .launched = true},
     SLURM_REQUEUE,
     76,
     0},
    {"no step, late",
     {.status = 76, LATE, .unlaunched = 2, .launched = true},
     SLURM_REQUEUE,
     76,
     2},
    {"no step ever", {.status = 76, TIME, .unlaunched = 11}, SLURM_END, 69, 0},
};

Test(supervise, each_end_has_its_consequence)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row_t *row = &rows[i];
        const slurm_verdict_t got = slurm_decide(&row->ended);

        cr_expect_eq(got.action, row->action, "%s: action %d", row->what,
                     (int)got.action);
        cr_expect_eq(got.status, row->status, "%s: status %d", row->what,
                     got.status);
        cr_expect(row->action == SLURM_END || got.wait == row->wait,
                  "%s: waits %g s", row->what, got.wait);
        cr_expect_not_null(got.why, "%s", row->what);
    }
}
