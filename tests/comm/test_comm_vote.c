/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* After a vote all ranks have the error of the lowest rank that has one. */
#include "comm/comm_vote.h"

#include <criterion/criterion.h>
#include <string.h>

#include "lib/ranks.h"

/* Bit r of [failed]: rank r has an error. */
static int vote_one(comm_group_t *group, unsigned failed)
{
    const int rank = comm_group_rank(group), size = comm_group_size(group);
    const bool all = failed + 1 == 1U << size;
    err_t mine = ERR_INIT, err = ERR_INIT;
    char first[ERR_TEXT_MAX], name[32];
    int lowest = 0;
    err_code_t rc;

    if (failed >> rank & 1)
        err_set(&mine, rank % 2 == 0 ? ERR_MEMORY : ERR_IO, "reason %d", rank);
    rc = comm_vote(group, &mine, &err);
    if (failed == 0) {
        RANKS_CHECK(rc == ERR_OK && err.code == ERR_OK);
        return 0;
    }
    while ((failed >> lowest & 1) == 0)
        lowest++;
    snprintf(name, sizeof name, "rank %d on ", lowest);
    snprintf(first, sizeof first, "reason %d", lowest);
    RANKS_CHECK(rc == (lowest % 2 == 0 ? ERR_MEMORY : ERR_IO));
    RANKS_CHECK(err.code == rc && strstr(err.text, first) != NULL);
    RANKS_CHECK((strncmp(err.text, name, strlen(name)) == 0) == !all);
    return 0;
}

static int vote_main(const comm_oob_t *oob, void *argument)
{
    const comm_config_t config = {.backend = argument, .timeout = 60};
    comm_group_t *group = NULL;
    err_t err = ERR_INIT;

    RANKS_OK(comm_group_open(&config, oob, &group, &err), err);
    for (unsigned failed = 0; failed < 1U << oob->size; failed++)
        if (vote_one(group, failed) != 0)
            return 1;
    comm_group_close(group);
    return 0;
}

TestSuite(comm_vote, .init = ranks_transports, .timeout = 120);

Test(comm_vote, all_ranks_get_the_error_of_the_lowest)
{
    char alone[] = "self", threads[] = "threads", ucx[] = "ucx";
    int results[RANKS_MAX];

    cr_assert_eq(ranks_threads(1, vote_main, alone), 0);
    for (int ranks = 2; ranks <= 4; ranks++)
        cr_assert_eq(ranks_threads(ranks, vote_main, threads), 0);
    cr_assert_eq(ranks_forks(3, 100, vote_main, ucx, results), 0);
}
