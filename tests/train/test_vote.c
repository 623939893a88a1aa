/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/vote.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "lib/ranks.h"

typedef struct plan {
    int failed[RANKS_MAX]; /* 1: this rank reports an error */
    bool speakers[RANKS_MAX];
} plan_t;

static int vote_main(const comm_oob_t *oob, void *argument)
{
    plan_t *plan = argument;
    train_votes_t votes = {.context = oob->context,
                           .rank = oob->rank,
                           .size = oob->size,
                           .exchange = oob->exchange};
    err_code_t rc = ERR_OK;
    err_t err = ERR_INIT;
    int first = -1;
    char expected[128], host[64] = "";
    bool all = true;

    for (int r = oob->size - 1; r >= 0; r--)
        if (plan->failed[r])
            first = r;
    if (plan->failed[oob->rank])
        rc = err_set(&err, ERR_DATA, "rank %d is sad", oob->rank);
    rc = train_vote(&votes, rc, &plan->speakers[oob->rank], &err);
    RANKS_CHECK(rc == (first < 0 ? ERR_OK : ERR_DATA));
    for (int r = 0; r < oob->size; r++)
        all = all && plan->failed[r];
    gethostname(host, sizeof host - 1);
    if (first >= 0) {
        if (all)
            snprintf(expected, sizeof expected, "rank %d is sad", first);
        else
            snprintf(expected, sizeof expected, "rank %d on %s: rank %d is sad",
                     first, host, first);
        RANKS_CHECK(strcmp(err.text, expected) == 0);
    }
    return 0;
}

static int tell_main(const comm_oob_t *oob, void *argument)
{
    const int *from = argument;
    train_votes_t votes = {.context = oob->context,
                           .rank = oob->rank,
                           .size = oob->size,
                           .exchange = oob->exchange};
    int64_t numbers[2] = {oob->rank, -oob->rank};
    err_t err = ERR_INIT;

    RANKS_CHECK(train_tell(&votes, *from, numbers, sizeof numbers, &err) ==
                ERR_OK);
    RANKS_CHECK(numbers[0] == *from && numbers[1] == -*from);
    return 0;
}

Test(vote, everybody_learns_what_one_rank_tells)
{
    for (int from = 0; from < 3; from++)
        cr_assert_eq(ranks_threads(3, tell_main, &from), 0);
}

Test(vote, all_well_is_ok)
{
    plan_t plan = {.failed = {0}};

    for (int n = 1; n <= 5; n++) {
        cr_assert_eq(ranks_threads(n, vote_main, &plan), 0);
        for (int r = 0; r < n; r++)
            cr_assert_eq(plan.speakers[r], r == 0, "rank %d of %d", r, n);
    }
}

Test(vote, what_all_met_needs_no_place)
{
    plan_t plan = {.failed = {1, 1, 1}};

    cr_assert_eq(ranks_threads(3, vote_main, &plan), 0);
}

Test(vote, everybody_hears_the_lowest_failed_rank_and_it_alone_speaks)
{
    plan_t plan = {.failed = {0, 0, 1, 1}};

    cr_assert_eq(ranks_threads(5, vote_main, &plan), 0);
    for (int r = 0; r < 5; r++)
        cr_assert_eq(plan.speakers[r], r == 2, "rank %d", r);
}
