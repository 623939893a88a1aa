/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * A signal only sets a flag: at the next step boundary all ranks decide
 * together what to do. The flags are global variables, since a signal handler
 * can reach nothing else.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "slurm/job.h"

/* A third INT within this many seconds ends the process. */
#define IMPATIENCE 3

/* global: a handler can reach nothing else. The number of the signal that was
 * received; 0: none. */
static volatile sig_atomic_t got_checkpoint, got_term;

/* global: as above; the thread of a watch uses it, too. 0: no start-up; 1:
 * start-up, and no signal has come; 2: start-up, and the alarm is set. */
static atomic_int starting;

/* global: as above. Whether a third INT ends the process, and the times in
 * seconds of the two INT before. */
static volatile sig_atomic_t impatient;
static volatile time_t interrupts[2];

/* The signals that fault.signals may name. */
static const struct signal_row {
    const char *name;
    int number;
    bool checkpoint; /* SLURM_SIGNAL_CHECKPOINT; otherwise TERM */
} rows[] = {{"USR1", SIGUSR1, true}, {"USR2", SIGUSR2, true},
            {"XCPU", SIGXCPU, true}, {"TERM", SIGTERM, false},
            {"INT", SIGINT, false},  {"HUP", SIGHUP, false}};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

/* ---- handlers ------------------------------------------------------------ */

static void alarm_set(void)
{
    int before = 1;

    if (atomic_compare_exchange_strong(&starting, &before, 2))
        alarm(SLURM_START_PATIENCE);
}

static void on_checkpoint(int number)
{
    got_checkpoint = number;
    alarm_set();
}

static void on_term(int number)
{
    got_term = number;
    alarm_set();
}

static void on_interrupt(int number)
{
    struct timespec now = {0};

    on_term(number);
    if (!impatient || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return;
    if (interrupts[0] > 0 && now.tv_sec - interrupts[0] <= IMPATIENCE) {
        /* It takes effect when this handler returns. */
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    interrupts[0] = interrupts[1];
    interrupts[1] = now.tv_sec;
}

/* ---- installing ---------------------------------------------------------- */

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
        rc = install(SIGINT, on_interrupt, err);
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

/* The row of [name]; -1: there is none. */
static int row_of(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    return -1;
}

int slurm_signal_number(const char *name)
{
    const int row = row_of(name);

    return row < 0 ? 0 : rows[row].number;
}

err_code_t slurm_signal_choose(const char *const *names, int count, err_t *err)
{
    bool usr1 = false, term = false;
    err_code_t rc = ERR_OK;

    for (int i = 0; i < count && rc == ERR_OK; i++) {
        const int row = row_of(names[i]);

        if (row < 0)
            return err_set(err, ERR_CONFIG,
                           "signal '%s' is none of " SLURM_SIGNAL_NAMES,
                           names[i]);
        usr1 = usr1 || rows[row].number == SIGUSR1;
        term = term || rows[row].number == SIGTERM;
        if (rows[row].checkpoint)
            rc = install(rows[row].number, on_checkpoint, err);
    }
    if (rc == ERR_OK && !usr1)
        rc = install(SIGUSR1, SIG_IGN, err);
    if (rc == ERR_OK && !term)
        rc = install(SIGTERM, SIG_DFL, err);
    return rc;
}

void slurm_signal_start(void (*give_up)(int number))
{
    (void)install(SIGALRM, give_up, NULL);
    atomic_store(&starting, 1);
    if (slurm_signal_pending() != SLURM_SIGNAL_NONE)
        alarm_set();
}

void slurm_signal_started(void)
{
    if (atomic_exchange(&starting, 0) != 0)
        alarm(0);
}

void slurm_signal_late(void)
{
    alarm_set();
}

void slurm_signal_impatient(void)
{
    impatient = 1;
}

/* ---- asking -------------------------------------------------------------- */

slurm_signal_t slurm_signal_pending(void)
{
    if (got_term)
        return SLURM_SIGNAL_TERM;
    return got_checkpoint ? SLURM_SIGNAL_CHECKPOINT : SLURM_SIGNAL_NONE;
}

const char *slurm_signal_name(slurm_signal_t signal)
{
    static const char *const usual[] = {[SLURM_SIGNAL_NONE] = "another rank's",
                                        [SLURM_SIGNAL_TIME] = "time limit",
                                        [SLURM_SIGNAL_CHECKPOINT] = "USR1",
                                        [SLURM_SIGNAL_TERM] = "TERM"};
    const int number = signal == SLURM_SIGNAL_TERM         ? got_term
                       : signal == SLURM_SIGNAL_CHECKPOINT ? got_checkpoint
                                                           : 0;

    for (int i = 0; i < ROWS; i++)
        if (number != 0 && rows[i].number == number)
            return rows[i].name;
    return usual[signal];
}
