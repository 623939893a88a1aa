/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/last_words.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

#define REASON                                                            \
    "UCX ended it on bytes from the network that no rank sends: perhaps " \
    "a stranger on the network, see Security in ADMIN.md"

/* global: the state of the handler, written before it is installed */
static struct {
    char path[4096];
    char life[256]; /* "STEP RESTARTS" */
    char line[512];
    bool (*in_transport)(void);
} left;

static void reason_leave(void)
{
    int fd;

    (void)!write(STDERR_FILENO, left.line, strlen(left.line));
    fd = open(left.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              0666);
    if (fd < 0)
        return;
    (void)!write(fd, left.life, strlen(left.life));
    close(fd);
}

/* Handler of SIGABRT. It calls only async-signal-safe functions. It raises the
 * signal again, so that the process ends when the handler returns, even if
 * abort() has not sent the signal. */
static void on_abort(int number)
{
    if (left.in_transport())
        reason_leave();
    (void)raise(number);
}

static bool fits(int length, size_t room)
{
    return length >= 0 && (size_t)length < room;
}

void train_last_words_install(const train_last_words_t *words)
{
    struct sigaction action = {.sa_handler = on_abort,
                               .sa_flags = SA_RESETHAND};

    if (!fits(snprintf(left.path, sizeof left.path, "%s/fell-%d", words->dir,
                       words->rank),
              sizeof left.path) ||
        !fits(snprintf(left.life, sizeof left.life, "%s %d", words->step_id,
                       words->restarts),
              sizeof left.life) ||
        !fits(snprintf(left.line, sizeof left.line,
                       "cddp-train: rank %d ends: " REASON "\n", words->rank),
              sizeof left.line))
        return;
    left.in_transport = words->in_transport;
    (void)unlink(left.path);
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGABRT, &action, NULL);
}

void train_last_words_add(const char *dir, const char *step_id, int restarts,
                          err_t *err)
{
    char *path, *life, *text = NULL;

    if (err->code != ERR_PEER || err->culprit < 0)
        return;
    path = str_printf("%s/fell-%d", dir, err->culprit);
    life = str_printf("%s %d", step_id, restarts);
    if (file_read_own(path, &text, NULL, NULL) == ERR_OK &&
        strcmp(text, life) == 0)
        err_suffix(err, "%s", REASON);
    free(text);
    free(life);
    free(path);
}
