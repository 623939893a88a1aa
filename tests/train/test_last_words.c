/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The file that a rank leaves when UCX ends its process, and the ranks that
 * read it. tests/comm/ucx/test_ucx_strangers.c shows that UCX does end a
 * process.
 */
#include "train/last_words.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static char dir[] = "/tmp/cddp-words-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void teardown(void)
{
    cr_assert_eq(file_remove_tree(dir, NULL), ERR_OK);
}

TestSuite(last_words, .init = setup, .fini = teardown);

static bool yes(void)
{
    return true;
}

static bool no(void)
{
    return false;
}

/* Fork a process as rank 3, in which [ends] raises SIGABRT. Returns what it
 * wrote to standard error; the caller frees it. */
static char *fall(bool (*in_transport)(void), void (*ends)(void))
{
    char *log = str_printf("%s/stderr", dir), *said = NULL;
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        const struct rlimit none = {0, 0};

        (void)setrlimit(RLIMIT_CORE, &none);
        dup2(open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        train_last_words_install(
            &(train_last_words_t){.dir = dir,
                                  .step_id = "12.0",
                                  .restarts = 1,
                                  .rank = 3,
                                  .in_transport = in_transport});
        ends();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    cr_assert_eq(file_read(log, &said, NULL, NULL), ERR_OK);
    free(log);
    return said;
}

static void hear(const char *step_id, int restarts, int culprit, bool heard)
{
    err_t err = ERR_INIT;

    err_set_peer(&err, culprit, "n2", "rank %d died", culprit);
    train_last_words_add(dir, step_id, restarts, &err);
    cr_expect_eq(strstr(err.text, "a stranger on the network, see Security in "
                                  "ADMIN.md") != NULL,
                 heard, "%s", err.text);
    cr_expect_eq(strncmp(err.text, "rank ", 5), 0);
    cr_expect_eq(err.culprit, culprit);
}

Test(last_words, a_rank_that_the_transport_ends_says_so)
{
    char *said = fall(yes, abort);

    cr_expect_not_null(strstr(said, "cddp-train: rank 3 ends: UCX ended it"),
                       "%s", said);
    hear("12.0", 1, 3, true);
    hear("12.0", 0, 3, false); /* an earlier life of the job */
    hear("13.0", 1, 3, false);
    hear("12.0", 1, 2, false);
    free(said);
}

Test(last_words, any_other_abort_is_not_blamed_on_strangers)
{
    char *said = fall(yes, abort);

    free(said);
    /* as in the next life: the file of the previous one is gone */
    said = fall(no, abort);
    cr_expect_str_eq(said, "");
    hear("12.0", 1, 3, false);
    free(said);
}

/* Like `kill -ABRT` by a user who wants a core file. */
static void killed(void)
{
    (void)kill(getpid(), SIGABRT);
}

Test(last_words, a_signal_from_outside_ends_it_too)
{
    char *said = fall(no, killed);

    cr_expect_str_eq(said, "");
    free(said);
}

/* Somebody who may write to the directory cannot make the run overwrite another
 * file. */
Test(last_words, a_planted_link_is_not_followed)
{
    char *link = str_printf("%s/fell-3", dir);
    char *victim = str_printf("%s/victim", dir), *text = NULL;

    cr_assert_eq(file_publish(victim, "12.0 1", 6, NULL), ERR_OK);
    cr_assert_eq(symlink(victim, link), 0);
    hear("12.0", 1, 3, false);
    free(fall(yes, abort)); /* removes the link, not the file it points to */
    cr_assert_eq(file_read(victim, &text, NULL, NULL), ERR_OK);
    cr_assert_str_eq(text, "12.0 1");
    hear("12.0", 1, 3, true);
    free(text);
    free(victim);
    free(link);
}
