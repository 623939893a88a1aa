/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "slurm/ask.h"

#include <criterion/criterion.h>
#include <string.h>

Test(ask, reads_all_that_a_program_prints)
{
    const char *const args[] = {"sh", "-c", "echo one; echo two", NULL};
    char out[64];
    err_t err = ERR_INIT;

    cr_assert_eq(slurm_ask(args, out, sizeof out, &err), ERR_OK, "%s",
                 err.text);
    cr_assert_str_eq(out, "one\ntwo\n");
}

Test(ask, a_program_that_fails_is_missing_or_says_too_much_is_an_error)
{
    const char *const fails[] = {"sh", "-c", "exit 3", NULL};
    const char *const missing[] = {"/nonexistent/scontrol", NULL};
    const char *const long_one[] = {"sh", "-c", "echo 12345678", NULL};
    char out[8];
    err_t err = ERR_INIT;

    cr_assert_eq(slurm_ask(fails, out, sizeof out, &err), ERR_UNAVAILABLE);
    cr_assert_not_null(strstr(err.text, "sh failed"));
    cr_assert_eq(slurm_ask(missing, out, sizeof out, &err), ERR_UNAVAILABLE);
    cr_assert_not_null(strstr(err.text, "/nonexistent/scontrol"));
    cr_assert_eq(slurm_ask(long_one, out, sizeof out, &err), ERR_UNAVAILABLE);
}

Test(ask, a_command_tells_how_it_ended)
{
    const char *const fails[] = {"sh", "-c", "exit 3", NULL};
    const char *const dies[] = {"sh", "-c", "kill -9 $$", NULL};
    const char *const missing[] = {"/nonexistent/scontrol", NULL};
    slurm_command_t command = {.args = fails, .timeout = SLURM_ASK_TIMEOUT};
    char out[8];
    int status = 0;

    cr_assert_eq(slurm_command_read(&command, out, sizeof out, &status, NULL),
                 ERR_OK);
    cr_assert_eq(status, 3);
    command.args = dies;
    cr_assert_eq(slurm_command_read(&command, out, sizeof out, &status, NULL),
                 ERR_OK);
    cr_assert_eq(status, 137);
    command.args = missing;
    cr_assert_eq(slurm_command_read(&command, out, sizeof out, &status, NULL),
                 ERR_UNAVAILABLE);
    cr_assert_eq(status, 127);
}

/* The program would run for an hour; only its death ends the wait. */
Test(ask, a_program_that_does_not_answer_is_killed)
{
    const char *const args[] = {"sleep", "3600", NULL};
    const slurm_command_t command = {.args = args, .timeout = 0.05};
    char out[8];
    int status = 0;

    cr_assert_eq(slurm_command_read(&command, out, sizeof out, &status, NULL),
                 ERR_UNAVAILABLE);
    cr_assert_eq(status, -1);
}
