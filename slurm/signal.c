/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A signal only sets a flag: at the next step boundary all ranks decide
 * together what to do. The flags are global variables, since a signal handler
 * can reach nothing else.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "slurm/job.h"

/* global: a handler can reach nothing else */
static volatile sig_atomic_t got_checkpoint, got_term;

static void on_checkpoint(int number)
{
    (void)number;
    got_checkpoint = 1;
}

static void on_term(int number)
{
    (void)number;
    got_term = 1;
}

static err_code_t install(int number, void (*handler)(int), err_t *err)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, NULL) != 0)
        return err_set(err, ERR_CONFIG, "cannot handle signal %s: %s",
                       strsignal(number), strerror(errno));
    return ERR_OK;
}

/* A closed terminal (HUP) ends the run like TERM. Under nohup, HUP is ignored
 * already and stays so. */
static err_code_t install_hangup(err_t *err)
{
    struct sigaction now;

    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        return ERR_OK;
    return install(SIGHUP, on_term, err);
}

err_code_t slurm_signal_install(err_t *err)
{
    err_code_t rc = install(SIGUSR1, on_checkpoint, err);

    if (rc == ERR_OK)
        rc = install(SIGTERM, on_term, err);
    if (rc == ERR_OK)
        rc = install(SIGINT, on_term, err);
    if (rc == ERR_OK)
        rc = install_hangup(err);
    /* If the reader of our output goes away, the run must not end. */
    if (rc == ERR_OK)
        rc = install(SIGPIPE, SIG_IGN, err);
    /* Nor must a limit on file sizes end the run: the write then fails with an
     * error. */
    if (rc == ERR_OK)
        rc = install(SIGXFSZ, SIG_IGN, err);
    return rc;
}

slurm_signal_t slurm_signal_pending(void)
{
    if (got_term)
        return SLURM_SIGNAL_TERM;
    return got_checkpoint ? SLURM_SIGNAL_CHECKPOINT : SLURM_SIGNAL_NONE;
}
