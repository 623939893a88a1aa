/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Which rank is to blame, with simulated time. */
#include <criterion/criterion.h>
#include <string.h>

#include "comm/watch/watch.h"
#include "comm/watch/watch_liveness.h"

#define TIMEOUT 8.0 /* seconds; beats are sent every second */

static liveness_t liveness;
static const char *reason;

static void setup(void)
{
    err_t err = ERR_INIT;

    cr_assert_eq(liveness_open(1, 3, TIMEOUT, 100, &liveness, &err), ERR_OK);
    for (int rank = 0; rank < 3; rank++)
        liveness.peers[rank].watched = true;
    reason = NULL;
}

static void teardown(void)
{
    liveness_close(&liveness);
}

TestSuite(watch_liveness, .init = setup, .fini = teardown);

/* Seconds [from] to [to] pass; each rank whose bit is set in [beating] sends
 * [beat] every second. */
static void pass(int from, int to, unsigned beating, watch_beat_t beat)
{
    for (int now = from; now <= to; now++) {
        for (int rank = 0; rank < 3; rank++)
            if (beating & 1u << rank)
                liveness_heard(&liveness, rank, &beat, now);
        cr_assert_not(liveness_tick(&liveness, now));
    }
}

static int suspect(double now)
{
    return liveness_suspect(&liveness, 5, 101, now, &reason);
}

Test(watch_liveness, who_does_not_beat)
{
    watch_beat_t beat = {.entered = 6};

    pass(101, 107, 1, beat); /* rank 2 has been silent since 100 */
    cr_assert_eq(suspect(107.9), -1);
    cr_assert_eq(suspect(108), 2);
    cr_assert_not_null(strstr(reason, "no sign of life"));
}

Test(watch_liveness, who_beats_but_does_not_enter)
{
    watch_beat_t beat = {.entered = 5};

    pass(101, 110, 5, beat);
    cr_assert_eq(suspect(110), 0);
    cr_assert_not_null(strstr(reason, "no progress"));
    /* Nobody waits for the rank: there is no suspect. */
    cr_assert_eq(liveness_suspect(&liveness, UINT64_MAX, 101, 110, &reason),
                 -1);
    /* This rank has not waited long enough. */
    cr_assert_eq(liveness_suspect(&liveness, 5, 103, 110, &reason), -1);
}

Test(watch_liveness, progress_clears)
{
    watch_beat_t beat = {.entered = 5};

    pass(101, 106, 5, beat);
    beat.progress = 1;
    pass(107, 112, 5, beat);
    cr_assert_eq(suspect(112), -1);
    cr_assert_eq(suspect(114.9), -1);
    cr_assert_eq(suspect(115), 0);
}

Test(watch_liveness, who_waits_or_has_entered_is_no_suspect)
{
    watch_beat_t waiting = {.entered = 5, .waiting = true};
    watch_beat_t entered = {.entered = 6};

    pass(101, 120, 1, waiting);
    liveness_heard(&liveness, 2, &entered, 120);
    cr_assert_eq(suspect(120), -1);
}

Test(watch_liveness, a_lost_peer_may_have_said_good_bye)
{
    liveness_lost(&liveness, 2, 103);
    cr_assert_eq(suspect(103), -1);
    cr_assert_leq(liveness_look(&liveness, 200), 104);
    cr_assert_eq(suspect(104), 2);
    liveness.peers[2].parted = true;
    cr_assert_eq(suspect(104), -1);
    cr_assert_eq(liveness_look(&liveness, 200), 200);
}

/* A rank that has answered our good-bye sends no good-bye of its own. It is not
 * blamed when it is silent, gone or busy, while we still wait for others. */
Test(watch_liveness, who_answered_our_good_bye_owes_us_nothing)
{
    watch_beat_t busy = {.entered = 5};

    liveness_heard(&liveness, 0, &busy, 101);
    cr_assert_eq(suspect(120), 0);
    liveness.peers[0].parted = true;
    cr_assert_neq(suspect(120), 0);
    liveness_lost(&liveness, 0, 121);
    cr_assert_neq(suspect(130), 0);
    cr_assert_eq(liveness_look(&liveness, 200), 200);
}

Test(watch_liveness, a_jump_of_our_clock_restarts_all)
{
    watch_beat_t beat = {.entered = 6};

    pass(101, 102, 5, beat);
    cr_assert(liveness_tick(&liveness, 1000));
    cr_assert_eq(suspect(1000), -1);
    cr_assert_eq(suspect(1007.9), -1);
    cr_assert_eq(suspect(1008), 0);
}

Test(watch_liveness, interval)
{
    cr_assert_eq(watch_interval(4), 0.5);
    cr_assert_eq(watch_interval(60), 1);
}
