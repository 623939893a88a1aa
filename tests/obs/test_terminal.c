/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* What is drawn on a terminal: standard output is a pseudo-terminal here. */
#include "obs/terminal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "obs/progress.h"

/* Make standard output and standard error a terminal of [columns] columns;
 * returns the end at which its user sits. */
static int terminal_open(unsigned short columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    int user, program;

    cr_assert_eq(openpty(&user, &program, NULL, NULL, &size), 0);
    cr_assert_geq(dup2(program, STDOUT_FILENO), 0);
    cr_assert_geq(dup2(program, STDERR_FILENO), 0);
    close(program);
    cr_assert_eq(setenv("TERM", "xterm", 1), 0);
    return user;
}

/* What the terminal shows until [last] comes. */
static const char *shown(int user, const char *last)
{
    static char text[16384];
    size_t used = 0;

    do {
        const ssize_t got = read(user, text + used, sizeof text - 1 - used);

        cr_assert_gt(got, 0, "%s", text);
        used += (size_t)got;
        text[used] = '\0';
    } while (strstr(text, last) == NULL);
    return text;
}

Test(terminal, a_pipe_is_none)
{
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_not(obs_terminal_is(ends[1]));
    cr_assert_eq(obs_terminal_width(ends[1]), 80);
}

Test(terminal, a_dumb_one_cannot_draw)
{
    const int user = terminal_open(100);

    cr_assert(obs_terminal_is(STDOUT_FILENO));
    cr_assert_eq(setenv("TERM", "dumb", 1), 0);
    cr_assert_not(obs_terminal_is(STDOUT_FILENO));
    close(user);
}

Test(terminal, the_width_follows_the_window)
{
    const int user = terminal_open(100);
    struct winsize size = {.ws_row = 24, .ws_col = 61};

    cr_assert_eq(obs_terminal_width(STDOUT_FILENO), 100);
    cr_assert_eq(ioctl(user, TIOCSWINSZ, &size), 0);
    cr_assert_eq(obs_terminal_width(STDOUT_FILENO), 61);
    size.ws_col = 0;
    cr_assert_eq(ioctl(user, TIOCSWINSZ, &size), 0);
    cr_assert_eq(obs_terminal_width(STDOUT_FILENO), 80);
    close(user);
}

Test(terminal, a_line_is_cut_between_characters)
{
    char plain[] = "abcdef", wide[] = "a\xc3\xa4\xc3\xb6z", brief[] = "ab";

    obs_terminal_cut(plain, 4);
    cr_assert_str_eq(plain, "abc");
    obs_terminal_cut(wide, 3);
    cr_assert_str_eq(wide, "a\xc3\xa4");
    obs_terminal_cut(brief, 3);
    cr_assert_str_eq(brief, "ab");
}

/* The line of progress is erased before another line is printed, also by the
 * log, and at the end. It is never longer than the window is wide. */
Test(terminal, a_line_is_drawn_again_and_again, .timeout = 60)
{
    const int user = terminal_open(40);
    const obs_place_t first = {.epoch = 1,
                               .epochs = 2,
                               .epoch_steps = 1000,
                               .left = INFINITY,
                               .saved = NAN};
    obs_place_t place = first;
    obs_progress_t *progress = NULL;
    err_t err = ERR_INIT;

    cr_assert_eq(obs_progress_open(60, 1, &progress, &err), ERR_OK);
    for (int k = 1; k <= 3; k++) {
        place.step = k;
        cr_assert(obs_progress_due(progress, 1 + k));
        obs_progress_step(progress, &place, 1 + k);
        cr_assert_not(k > 1 && obs_progress_due(progress, 1.25 + k));
    }
    cr_expect_str_eq(shown(user, "step 3 of 2000  epoch 1/2, 0 %  loss 0 \r"),
                     "\r\033[Kstep 2 of 2000  epoch 1/2, 0 %  loss 0 \r"
                     "\r\033[Kstep 3 of 2000  epoch 1/2, 0 %  loss 0 \r");
    obs_progress_say(progress, 5, "saved");
    cr_expect_str_eq(shown(user, "\n"), "\r\033[Ksaved\r\n");
    log_warn("obs", "a sentence");
    cr_expect_eq(strncmp(shown(user, "\n"), "\r\033[K2", 5), 0);
    obs_progress_step(progress, &place, 6);
    obs_progress_close(progress);
    (void)shown(user, "loss 0 \r\r\033[K");
    log_warn("obs", "a sentence");
    cr_expect_eq(shown(user, "\n")[0], '2');
    close(user);
}
