/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The parent of ranks that are processes of this machine: starts them, serves
 * their exchanges, passes signals on, and waits for their ends. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "boot/boot.h"
#include "boot/spawn_hub.h"
#include "boot/spawn_wire.h"

#define LOOK_EVERY 1.0 /* seconds between two looks at deadlines */

typedef struct parent {
    const boot_spawn_t *spawn;
    spawn_hub_t *hub;
    pid_t *pids; /* of the ranks; 0: not started, or ended */
    int alive;
    struct pollfd *polls; /* the signals, then the ranks */
    sigset_t before;      /* signals that were blocked */
    int signals;          /* a signalfd; -1: none */
    double failed_at;     /* when the first rank failed; NAN: none has */
    int status;           /* the highest so far */
} parent_t;

/* ---- signals ------------------------------------------------------------- */

static err_code_t signals_open(parent_t *parent, err_t *err)
{
    struct sigaction now;
    sigset_t set;

    spawn_signals_fill(&set);
    sigaddset(&set, SIGCHLD);
    /* Under nohup, HUP is ignored: do not pass it on. */
    if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
        sigdelset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, &parent->before);
    parent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (parent->signals < 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot watch signals: %s",
                       strerror(errno));
    return ERR_OK;
}

static void all_kill(const parent_t *parent, int number)
{
    for (int r = 0; r < parent->spawn->count; r++)
        if (parent->pids[r] > 0)
            (void)kill(parent->pids[r], number);
}

static void signals_take(parent_t *parent)
{
    struct signalfd_siginfo info;

    /* Signals from the terminal (SI_KERNEL) are not passed on: the terminal
     * sends them to the ranks itself. */
    while (read(parent->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL)
            all_kill(parent, (int)info.ssi_signo);
}

/* ---- start --------------------------------------------------------------- */

/* The environment of a rank, whose variable is in [own]. The caller frees
 * *out, but not its texts. */
static err_code_t environment_make(char *own, char ***out, err_t *err)
{
    const size_t name = strlen(SPAWN_VARIABLE "=");
    size_t count = 0, used = 0;
    char **list = NULL;
    err_code_t rc;

    while (environ[count] != NULL)
        count++;
    rc = mem_new(char *, count + 2, "an environment", &list, err);
    if (rc != ERR_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], SPAWN_VARIABLE "=", name) != 0)
            list[used++] = environ[i];
    list[used] = own;
    *out = list;
    return ERR_OK;
}

/* Start a process with the signals of spawn_signals_fill blocked. Returns an
 * error number. */
static int process_start(const parent_t *parent, const char *program,
                         char *const *environment, pid_t *out)
{
    posix_spawnattr_t attr;
    sigset_t set, own;
    int rc;

    spawn_signals_fill(&own);
    (void)sigorset(&set, &parent->before, &own);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &set);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    rc = posix_spawn(out, program, NULL, &attr, parent->spawn->argv,
                     environment);
    posix_spawnattr_destroy(&attr);
    return rc;
}

static err_code_t rank_start(parent_t *parent, const char *program, int rank,
                             err_t *err)
{
    char own[96];
    char **environment = NULL;
    int ends[2], failed;
    err_code_t rc;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, ERR_UNAVAILABLE, "socketpair: %s", strerror(errno));
    snprintf(own, sizeof own, SPAWN_VARIABLE "=%d %d %d %d", rank,
             parent->spawn->count, ends[1], (int)getpid());
    rc = environment_make(own, &environment, err);
    if (rc == ERR_OK) {
        (void)fcntl(ends[1], F_SETFD, 0);
        failed =
            process_start(parent, program, environment, &parent->pids[rank]);
        if (failed != 0) {
            parent->pids[rank] = 0;
            rc = err_set(err, ERR_UNAVAILABLE, "cannot start %s as rank %d: %s",
                         program, rank, strerror(failed));
        }
    }
    mem_free(environment);
    close(ends[1]);
    if (rc != ERR_OK) {
        close(ends[0]);
        return rc;
    }
    parent->alive++;
    spawn_hub_add(parent->hub, rank, ends[0]);
    return ERR_OK;
}

/* Start all ranks. */
static err_code_t ranks_start(parent_t *parent, err_t *err)
{
    char program[4096];
    const ssize_t length =
        readlink("/proc/self/exe", program, sizeof program - 1);
    err_code_t rc = ERR_OK;

    if (length < 0)
        return err_set(err, ERR_UNAVAILABLE,
                       "cannot find the file of this program: "
                       "/proc/self/exe: %s",
                       strerror(errno));
    program[length] = '\0';
    for (int r = 0; r < parent->spawn->count && rc == ERR_OK; r++)
        rc = rank_start(parent, program, r, err);
    if (rc == ERR_OK && parent->spawn->early != NULL &&
        parent->spawn->early() != 0)
        all_kill(parent, parent->spawn->early());
    return rc;
}

/* ---- ends ---------------------------------------------------------------- */

/* A rank that was killed counts as a failed peer; one that Ctrl-C has ended
 * counts as in a shell. */
static int rank_code(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    return WTERMSIG(status) == SIGINT ? 128 + SIGINT : ERR_PEER;
}

static void rank_ended(parent_t *parent, int rank, int status)
{
    const int pid = (int)parent->pids[rank];
    const bool killed = WIFSIGNALED(status);
    const int code = rank_code(status);
    char how[128];

    parent->pids[rank] = 0;
    parent->alive--;
    if (killed)
        snprintf(how, sizeof how, "(process %d) was killed by signal %d (%s)",
                 pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "(process %d) has ended with status %d", pid,
                 code);
    if (killed)
        log_warn("boot", "rank %d %s", rank, how);
    spawn_hub_ended(parent->hub, rank, how);
    if (code > parent->status)
        parent->status = code;
    if (code != ERR_OK && isnan(parent->failed_at))
        parent->failed_at = clock_now();
}

static void ranks_look(parent_t *parent)
{
    for (int r = 0; r < parent->spawn->count; r++) {
        int status = 0;

        if (parent->pids[r] > 0 &&
            waitpid(parent->pids[r], &status, WNOHANG) == parent->pids[r])
            rank_ended(parent, r, status);
    }
}

/* End ranks that outlive the failure of another one. */
static void outlive_check(parent_t *parent)
{
    if (isnan(parent->failed_at) ||
        clock_now() - parent->failed_at < parent->spawn->patience)
        return;
    log_warn("boot",
             "%d of %d ranks still run %g s after another one has failed: they "
             "are killed",
             parent->alive, parent->spawn->count, parent->spawn->patience);
    parent->failed_at = clock_now();
    all_kill(parent, SIGKILL);
}

static void ranks_wait(parent_t *parent)
{
    while (parent->alive > 0) {
        parent->polls[0] =
            (struct pollfd){.fd = parent->signals, .events = POLLIN};
        spawn_hub_polls(parent->hub, parent->polls + 1);
        if (poll(parent->polls, (nfds_t)parent->spawn->count + 1,
                 (int)(LOOK_EVERY * 1000)) < 0)
            continue;
        spawn_hub_serve(parent->hub, parent->polls + 1);
        signals_take(parent);
        ranks_look(parent);
        outlive_check(parent);
    }
}

/* After an error: end the ranks that were started. */
static void ranks_end(parent_t *parent)
{
    all_kill(parent, SIGKILL);
    for (int r = 0; r < parent->spawn->count; r++)
        while (parent->pids[r] > 0 && waitpid(parent->pids[r], NULL, 0) < 0 &&
               errno == EINTR) {
        }
}

err_code_t boot_spawn_run(const boot_spawn_t *spawn, int *status, err_t *err)
{
    const size_t count = (size_t)spawn->count;
    parent_t parent = {.spawn = spawn, .signals = -1, .failed_at = NAN};
    err_code_t rc = signals_open(&parent, err);

    if (rc == ERR_OK)
        rc = mem_new(pid_t, count, "ranks", &parent.pids, err);
    if (rc == ERR_OK)
        rc = mem_new(struct pollfd, count + 1, "ranks", &parent.polls, err);
    if (rc == ERR_OK)
        rc = spawn_hub_new(spawn->count, spawn->timeout, &parent.hub, err);
    if (rc == ERR_OK) {
        rc = ranks_start(&parent, err);
        if (rc == ERR_OK)
            ranks_wait(&parent);
        else
            ranks_end(&parent);
    }
    *status = parent.status;
    spawn_hub_free(parent.hub);
    mem_free(parent.polls);
    mem_free(parent.pids);
    if (parent.signals >= 0)
        close(parent.signals);
    (void)sigprocmask(SIG_SETMASK, &parent.before, NULL);
    return rc;
}
