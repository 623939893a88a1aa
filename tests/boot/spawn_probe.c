/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * spawn_probe RANKS TIMEOUT PATIENCE MODE [ARG]: the program of test_spawn.
 * It starts itself as RANKS ranks, and each rank does what MODE says. A rank
 * exits with its err_code_t unless MODE says otherwise.
 *
 * - rounds: many exchanges, of different lengths.
 * - agree: boot_agree; rank 1 has another hash.
 * - status LIST: rank r exits with entry r of LIST, for example 0,75,3.
 * - die: rank 1 is killed before the second exchange.
 * - quit: rank 1 exits with 70 before the second exchange.
 * - leave: rank 1 closes its handle before the second exchange.
 * - late: rank 1 never comes to the second exchange.
 * - lengths: rank 1 gives another length than the others.
 * - wait [before]: each rank prints "rank R is PID", waits for a signal, prints
 *   the signal and exits with 75. With "before", the parent has had a signal
 *   before it starts the ranks.
 * - early: a rank gets a signal before it has a handler for it.
 * - hang: rank 0 exits with 65, the others never exit.
 * - lines: each rank prints 300 lines.
 * - child: a program that a rank starts must not see the rank's socket.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"

#define RANKS_MAX 16

typedef err_code_t probe_fn(boot_t *boot, const char *arg, err_t *err);

static volatile sig_atomic_t caught;

static void catch (int number)
{
    caught = number;
}

static unsigned char blob_byte(int rank, int round, size_t k)
{
    return (unsigned char)(rank * 31 + round * 7 + (int)(k % 251));
}

static err_code_t exchange_round(boot_t *boot, int round, size_t bytes,
                                 err_t *err)
{
    const size_t size = (size_t)boot_size(boot);
    unsigned char *mine = malloc(bytes + 1), *all = malloc(size * bytes + 1);
    err_code_t rc;

    if (mine == NULL || all == NULL)
        abort();
    for (size_t k = 0; k < bytes; k++)
        mine[k] = blob_byte(boot_rank(boot), round, k);
    rc = boot_exchange(boot, mine, bytes, all, err);
    for (size_t i = 0; rc == ERR_OK && i < size * bytes; i++)
        if (all[i] != blob_byte((int)(i / bytes), round, i % bytes))
            rc = err_set(err, ERR_DATA, "round %d of %zu bytes: wrong", round,
                         bytes);
    free(mine);
    free(all);
    return rc;
}

static err_code_t do_rounds(boot_t *boot, const char *arg, err_t *err)
{
    err_code_t rc = ERR_OK;

    (void)arg;
    for (int round = 0; round < 200 && rc == ERR_OK; round++)
        rc = exchange_round(boot, round, (size_t)(round * 7 % 64), err);
    /* More than a socket holds. */
    return rc == ERR_OK ? exchange_round(boot, 200, 1000003, err) : rc;
}

static err_code_t do_agree(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    return boot_agree(boot, "configuration", boot_rank(boot) == 1 ? 1 : 2, err);
}

static err_code_t do_status(boot_t *boot, const char *arg, err_t *err)
{
    for (int r = 0; r < boot_rank(boot); r++)
        arg = strchr(arg, ',') + 1;
    err_set(err, (err_code_t)atoi(arg), "as asked for");
    return err->code;
}

/* One exchange, then something happens to rank 1, then another exchange. */
static err_code_t second_round(boot_t *boot, void (*happens)(void), err_t *err)
{
    err_code_t rc = exchange_round(boot, 0, 8, err);

    if (boot_rank(boot) == 1)
        happens();
    return rc == ERR_OK ? exchange_round(boot, 1, 8, err) : rc;
}

static void be_killed(void)
{
    raise(SIGKILL);
}

static void quit(void)
{
    _exit(ERR_DIVERGED);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static err_code_t do_die(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    return second_round(boot, be_killed, err);
}

static err_code_t do_quit(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    return second_round(boot, quit, err);
}

static err_code_t do_leave(boot_t *boot, const char *arg, err_t *err)
{
    err_code_t rc = exchange_round(boot, 0, 8, err);

    (void)arg;
    return rc == ERR_OK && boot_rank(boot) != 1
               ? exchange_round(boot, 1, 8, err)
               : rc;
}

static err_code_t do_late(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    return second_round(boot, sleep_on, err);
}

static err_code_t do_lengths(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    return exchange_round(boot, 0, boot_rank(boot) == 1 ? 16 : 8, err);
}

static err_code_t do_wait(boot_t *boot, const char *arg, err_t *err)
{
    sigset_t all, none;

    (void)arg;
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &all, NULL);
    printf("rank %d is %d\n", boot_rank(boot), (int)getpid());
    fflush(stdout);
    while (caught == 0)
        sigsuspend(&none);
    printf("rank %d: signal %d\n", boot_rank(boot), (int)caught);
    return err_set(err, ERR_REQUEUE, "as asked for");
}

static err_code_t do_early(boot_t *boot, const char *arg, err_t *err)
{
    (void)boot;
    (void)arg;
    return caught == SIGTERM
               ? ERR_OK
               : err_set(err, ERR_DATA, "the signal was lost: %d", (int)caught);
}

static err_code_t do_hang(boot_t *boot, const char *arg, err_t *err)
{
    (void)arg;
    if (boot_rank(boot) != 0)
        sleep_on();
    return err_set(err, ERR_DATA, "as asked for");
}

static err_code_t do_lines(boot_t *boot, const char *arg, err_t *err)
{
    char line[101];

    (void)arg;
    (void)err;
    memset(line, 'a' + boot_rank(boot), sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 300; i++)
        if (write(STDOUT_FILENO, line, sizeof line) != (ssize_t)sizeof line)
            return ERR_IO;
    return ERR_OK;
}

static err_code_t do_child(boot_t *boot, const char *arg, err_t *err)
{
    (void)boot;
    (void)arg;
    /* The program must not have the variable CDDP_SPAWN, and no socket may be
     * among its open files. */
    return system("test -z \"$CDDP_SPAWN\" && "
                  "ls -l /proc/self/fd | grep -c socket: | grep -qx 0") == 0
               ? ERR_OK
               : err_set(err, ERR_DATA, "a program of a rank sees its socket");
}

static const struct {
    const char *name;
    probe_fn *run;
} modes[] = {
    {"rounds", do_rounds},   {"agree", do_agree}, {"status", do_status},
    {"die", do_die},         {"quit", do_quit},   {"leave", do_leave},
    {"late", do_late},       {"wait", do_wait},   {"early", do_early},
    {"lengths", do_lengths}, {"hang", do_hang},   {"lines", do_lines},
    {"child", do_child},
};

static int rank_main(const char *mode, const char *arg, double timeout)
{
    const boot_config_t config = {.timeout = timeout};
    struct sigaction action = {.sa_handler = catch};
    boot_t *boot = NULL;
    err_t err = ERR_INIT;
    err_code_t rc = ERR_USAGE;
    int rank;

    if (strcmp(mode, "early") == 0)
        raise(SIGTERM);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    if (boot_open(&config, &boot, &err) != ERR_OK) {
        fprintf(stderr, "probe: %s\n", err.text);
        return (int)err.code;
    }
    rank = boot_rank(boot);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, mode) == 0)
            rc = modes[i].run(boot, arg, &err);
    boot_close(boot);
    if (rc != ERR_OK)
        fprintf(stderr, "rank %d: %s\n", rank, err.text);
    return (int)rc;
}

static int early_usr1(void)
{
    return SIGUSR1;
}

int main(int argc, char **argv)
{
    boot_spawn_t spawn = {.argv = argv};
    err_t err = ERR_INIT;
    int status = 0;

    if (argc < 5)
        return ERR_USAGE;
    spawn.count = atoi(argv[1]);
    spawn.timeout = atof(argv[2]);
    spawn.patience = atof(argv[3]);
    if (boot_spawn_is_rank())
        return rank_main(argv[4], argv[5], spawn.timeout);
    if (argc > 5 && strcmp(argv[5], "before") == 0)
        spawn.early = early_usr1;
    if (boot_spawn_run(&spawn, &status, &err) != ERR_OK) {
        fprintf(stderr, "probe: %s\n", err.text);
        return (int)err.code;
    }
    return status;
}
