/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Ranks as threads exchange through a shared table and a barrier. Ranks as
 * processes each have a socket pair to the parent, which serves the exchange:
 * it reads one message of every rank (a length, then bytes) and sends all of
 * them to each rank.
 */
#include "lib/ranks.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void ranks_transports(void)
{
    setenv("UCX_TLS", "self,sysv,posix,cma,tcp", 0);
    setenv("UCX_NET_DEVICES", "lo", 0);
}

/* ---- threads ------------------------------------------------------------- */

typedef struct ranks_team {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, arrived, gone;
    unsigned round;
    char *all; /* contributions of all ranks to this round */
} ranks_team_t;

typedef struct ranks_seat {
    ranks_team_t *team;
    ranks_main_t main;
    void *argument;
    int rank, result;
    pthread_t thread;
} ranks_seat_t;

/* Wait for the other ranks of [round]. Returns false if one has returned
 * without joining. */
static bool team_meet(ranks_team_t *team, unsigned round)
{
    if (++team->arrived == team->count) {
        team->arrived = 0;
        team->round++;
        pthread_cond_broadcast(&team->changed);
        return true;
    }
    while (team->round == round && team->gone == 0)
        pthread_cond_wait(&team->changed, &team->lock);
    return team->round != round;
}

static err_code_t team_exchange(void *context, const void *mine, size_t bytes,
                                void *all, err_t *err)
{
    ranks_seat_t *seat = context;
    ranks_team_t *team = seat->team;
    err_code_t code = ERR_OK;

    pthread_mutex_lock(&team->lock);
    if (team->all == NULL)
        team->all = malloc((size_t)team->count * bytes + 1);
    memcpy(team->all + (size_t)seat->rank * bytes, mine, bytes);
    if (!team_meet(team, team->round))
        code = err_set(err, ERR_PEER, "a rank left before the exchange");
    else
        memcpy(all, team->all, (size_t)team->count * bytes);
    /* Second meeting: no rank begins the next round before all have read this
     * one. */
    if (code == ERR_OK && !team_meet(team, team->round))
        code = err_set(err, ERR_PEER, "a rank left during the exchange");
    if (team->arrived == 0) {
        free(team->all);
        team->all = NULL;
    }
    pthread_mutex_unlock(&team->lock);
    return code;
}

static void *seat_run(void *argument)
{
    ranks_seat_t *seat = argument;
    comm_oob_t oob = {.context = seat,
                      .rank = seat->rank,
                      .size = seat->team->count,
                      .exchange = team_exchange};

    seat->result = seat->main(&oob, seat->argument);
    pthread_mutex_lock(&seat->team->lock);
    seat->team->gone++;
    pthread_cond_broadcast(&seat->team->changed);
    pthread_mutex_unlock(&seat->team->lock);
    return NULL;
}

int ranks_threads(int count, ranks_main_t main, void *argument)
{
    ranks_team_t team = {.count = count};
    ranks_seat_t seats[RANKS_MAX];
    int failed = 0;

    pthread_mutex_init(&team.lock, NULL);
    pthread_cond_init(&team.changed, NULL);
    for (int rank = 0; rank < count; rank++) {
        seats[rank] = (ranks_seat_t){
            .team = &team, .main = main, .argument = argument, .rank = rank};
        if (pthread_create(&seats[rank].thread, NULL, seat_run, &seats[rank]))
            abort(); /* a test whose ranks cannot start must fail */
    }
    for (int rank = 0; rank < count; rank++) {
        pthread_join(seats[rank].thread, NULL);
        failed += seats[rank].result != 0;
    }
    free(team.all);
    pthread_cond_destroy(&team.changed);
    pthread_mutex_destroy(&team.lock);
    return failed;
}

/* ---- processes ----------------------------------------------------------- */

typedef struct ranks_child {
    pid_t pid;
    int socket; /* the parent's end; -1 once the child has ended */
    /* the child's part of the current exchange; NULL: not received */
    char *mine;
    size_t bytes;
} ranks_child_t;

/* sent in place of a length: the exchange failed */
#define RANKS_ABSENT UINT64_MAX

static bool socket_move(int fd, void *data, size_t bytes, bool out)
{
    char *at = data;

    while (bytes > 0) {
        ssize_t moved = out ? send(fd, at, bytes, MSG_NOSIGNAL)
                            : recv(fd, at, bytes, MSG_WAITALL);

        if (moved <= 0) {
            if (moved < 0 && errno == EINTR)
                continue;
            return false;
        }
        at += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

static err_code_t child_exchange(void *context, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    ranks_child_t *child = context;
    uint64_t length = bytes;
    char *copy = malloc(bytes + 1);
    bool well;

    memcpy(copy, mine, bytes);
    well = socket_move(child->socket, &length, sizeof length, true) &&
           socket_move(child->socket, copy, bytes, true) &&
           socket_move(child->socket, &length, sizeof length, false) &&
           length != RANKS_ABSENT &&
           socket_move(child->socket, all, length, false);
    free(copy);
    return well ? ERR_OK
                : err_set(err, ERR_PEER, "a rank left before the exchange");
}

/* The thread sanitizer's shadow memory uses huge pages (tests/sanitize). A rank
 * that is a process writes to a few bytes here and there: to clear huge pages
 * would take it longer than all that it computes. */
static void child_small_pages(void)
{
#ifdef __SANITIZE_THREAD__
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* if it fails it is only slower */
#endif
}

static void child_run(const comm_oob_t *oob, ranks_main_t main, void *argument)
{
    int result;

    child_small_pages();
    result = main(oob, argument);
    fflush(NULL);
    /* not exit: the test framework's exit handlers belong to the parent */
    _exit(result);
}

static void child_start(ranks_child_t *children, int rank, int count,
                        ranks_main_t main, void *argument)
{
    int pair[2];

    fflush(NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        abort();
    children[rank] = (ranks_child_t){.socket = pair[0]};
    children[rank].pid = fork();
    if (children[rank].pid < 0)
        abort();
    if (children[rank].pid == 0) {
        ranks_child_t self = {.socket = pair[1]};
        comm_oob_t oob = {.context = &self,
                          .rank = rank,
                          .size = count,
                          .exchange = child_exchange};

        for (int i = 0; i <= rank; i++)
            close(children[i].socket);
        child_run(&oob, main, argument);
    }
    close(pair[1]);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Read one part from [child]. If the child has ended instead, reap it and store
 * how it ended in *result. */
static void child_serve(ranks_child_t *child, int *result)
{
    uint64_t length;
    int status = 0;

    if (child->mine == NULL &&
        socket_move(child->socket, &length, sizeof length, false)) {
        child->bytes = length;
        child->mine = malloc(length + 1);
        if (socket_move(child->socket, child->mine, length, false))
            return;
    }
    waitpid(child->pid, &status, 0);
    *result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    close(child->socket);
    child->socket = -1;
}

/* Answer the exchange if every rank has sent its part, or if a rank has ended.
 */
static void children_answer(ranks_child_t *children, int count)
{
    int given = 0, gone = 0;

    for (int i = 0; i < count; i++) {
        given += children[i].socket >= 0 && children[i].mine != NULL;
        gone += children[i].socket < 0;
    }
    if (given == 0 || (gone == 0 && given < count))
        return;
    for (int i = 0; i < count; i++) {
        uint64_t total =
            gone ? RANKS_ABSENT : (uint64_t)count * children[i].bytes;

        if (children[i].socket < 0 || children[i].mine == NULL)
            continue;
        socket_move(children[i].socket, &total, sizeof total, true);
        for (int j = 0; gone == 0 && j < count; j++)
            socket_move(children[i].socket, children[j].mine, children[j].bytes,
                        true);
    }
    for (int i = 0; i < count; i++) {
        free(children[i].mine);
        children[i].mine = NULL;
    }
}

/* Are all remaining ranks stopped (SIGSTOP), so that no message will come? */
static bool children_stopped(const ranks_child_t *children, int count)
{
    for (int i = 0; i < count; i++) {
        siginfo_t info = {.si_pid = 0};

        if (children[i].socket < 0)
            continue;
        if (waitid(P_PID, (id_t)children[i].pid, &info,
                   WSTOPPED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            return false;
    }
    return true;
}

#define LOOK_MS 20 /* how often stopped ranks are looked for */

/* Serve until all children have ended (returns true), until time [instant], or
 * until all that remain are stopped. */
static bool children_serve(ranks_child_t *children, int count, double instant,
                           int *results)
{
    for (;;) {
        struct pollfd fds[RANKS_MAX];
        double left = instant - now();
        int alive = 0;

        for (int i = 0; i < count; i++) {
            fds[i] =
                (struct pollfd){.fd = children[i].socket, .events = POLLIN};
            alive += children[i].socket >= 0;
        }
        if (alive == 0)
            return true;
        if (left <= 0 || (alive < count && children_stopped(children, count)))
            return false;
        /* No event tells that a rank has stopped itself. */
        if (poll(fds, (nfds_t)count, LOOK_MS) <= 0)
            continue;
        for (int i = 0; i < count; i++)
            if (fds[i].fd >= 0 && fds[i].revents != 0)
                child_serve(&children[i], &results[i]);
        children_answer(children, count);
    }
}

int ranks_forks(int count, double seconds, ranks_main_t main, void *argument,
                int *results)
{
    ranks_child_t children[RANKS_MAX];
    int failed = 0;

    for (int rank = 0; rank < count; rank++) {
        results[rank] = 0;
        child_start(children, rank, count, main, argument);
    }
    if (!children_serve(children, count, now() + seconds, results))
        for (int rank = 0; rank < count; rank++)
            if (children[rank].socket >= 0) {
                kill(children[rank].pid, SIGKILL);
                waitpid(children[rank].pid, NULL, 0);
                close(children[rank].socket);
                results[rank] = RANKS_KILLED;
            }
    for (int rank = 0; rank < count; rank++) {
        free(children[rank].mine);
        failed += results[rank] != 0;
    }
    return failed;
}
