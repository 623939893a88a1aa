/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The backend for ranks that boot_spawn_run has started: an exchange is a
 * message to the parent and its answer. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "boot/boot_backend.h"
#include "boot/spawn_wire.h"

/* A rank waits this many seconds longer than its parent, because the parent
 * knows which ranks are missing and can name them. */
#define PATIENCE 10.0

typedef struct spawn_rank {
    int fd;
} spawn_rank_t;

/* ---- messages ------------------------------------------------------------ */

static err_code_t parent_gone(err_t *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "the process that has started the ranks has ended");
}

static err_code_t parent_late(const boot_t *boot, err_t *err)
{
    return err_set(err, ERR_UNAVAILABLE,
                   "the process that has started the ranks did not answer for "
                   "%g s",
                   boot->timeout + PATIENCE);
}

/* Wait until the socket is ready for [events]. */
static err_code_t ready_wait(const boot_t *boot, short events, double deadline,
                             err_t *err)
{
    const spawn_rank_t *own = boot->state;
    const double left = deadline - clock_now();
    struct pollfd wait = {.fd = own->fd, .events = events};

    if (left <= 0)
        return parent_late(boot, err);
    (void)poll(&wait, 1, (int)(left * 1000) + 1);
    return ERR_OK;
}

static bool may_repeat(void)
{
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

static err_code_t send_all(const boot_t *boot, const void *data, size_t bytes,
                           double deadline, err_t *err)
{
    const spawn_rank_t *own = boot->state;
    const char *at = data;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && bytes > 0) {
        const ssize_t sent =
            send(own->fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            at += sent;
            bytes -= (size_t)sent;
        } else {
            rc = may_repeat() ? ready_wait(boot, POLLOUT, deadline, err)
                              : parent_gone(err);
        }
    }
    return rc;
}

static err_code_t take_all(const boot_t *boot, void *out, size_t bytes,
                           double deadline, err_t *err)
{
    const spawn_rank_t *own = boot->state;
    char *at = out;
    err_code_t rc = ERR_OK;

    while (rc == ERR_OK && bytes > 0) {
        const ssize_t got = recv(own->fd, at, bytes, MSG_DONTWAIT);

        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
        } else {
            rc = got < 0 && may_repeat()
                     ? ready_wait(boot, POLLIN, deadline, err)
                     : parent_gone(err);
        }
    }
    return rc;
}

/* ---- the backend --------------------------------------------------------- */

/* Read the answer of [bytes] bytes, or the fault that comes instead. */
static err_code_t answer_take(const boot_t *boot, size_t bytes, void *all,
                              double deadline, err_t *err)
{
    spawn_head_t head;
    err_t fault;
    err_code_t rc = take_all(boot, &head, sizeof head, deadline, err);

    if (rc != ERR_OK)
        return rc;
    if (head.kind == SPAWN_ANSWER && head.bytes == bytes)
        return take_all(boot, all, bytes, deadline, err);
    if (head.kind != SPAWN_FAULT || head.bytes != sizeof fault)
        return err_set(err, ERR_UNAVAILABLE,
                       "the process that has started the ranks sent a message "
                       "of kind %llu with %llu bytes: expected %zu bytes",
                       (unsigned long long)head.kind,
                       (unsigned long long)head.bytes, bytes);
    rc = take_all(boot, &fault, sizeof fault, deadline, err);
    return rc == ERR_OK ? err_copy(err, &fault) : rc;
}

static err_code_t spawn_exchange(boot_t *boot, const void *mine, size_t bytes,
                                 void *all, err_t *err)
{
    const spawn_head_t head = {.kind = SPAWN_GIVE, .bytes = bytes};
    const double deadline = clock_now() + boot->timeout + PATIENCE;
    err_code_t rc = send_all(boot, &head, sizeof head, deadline, err);

    if (rc == ERR_OK)
        rc = send_all(boot, mine, bytes, deadline, err);
    if (rc != ERR_OK)
        return rc;
    return answer_take(boot, (size_t)boot->size * bytes, all, deadline, err);
}

static void spawn_close(boot_t *boot)
{
    const spawn_head_t head = {.kind = SPAWN_LEAVE};
    spawn_rank_t *own = boot->state;

    /* An error is ignored: a parent that has ended needs no message. */
    (void)send_all(boot, &head, sizeof head, clock_now() + PATIENCE, NULL);
    close(own->fd);
    mem_free(own);
}

static const boot_backend_t spawn_backend = {
    .name = "spawn",
    .exchange = spawn_exchange,
    .close = spawn_close,
};

/* ---- open ---------------------------------------------------------------- */

void spawn_signals_fill(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGUSR1);
    sigaddset(out, SIGUSR2);
    sigaddset(out, SIGXCPU);
    sigaddset(out, SIGTERM);
    sigaddset(out, SIGINT);
    sigaddset(out, SIGHUP);
}

/* From now on this process does not outlive its parent. */
static err_code_t tie_to_parent(pid_t parent, err_t *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return err_set(err, ERR_UNAVAILABLE, "prctl: %s", strerror(errno));
    /* The parent may have ended before the call of prctl. */
    return getppid() == parent ? ERR_OK : parent_gone(err);
}

/* The parent has blocked the signals that it passes on until this process has
 * handlers for them. */
static void signals_open(void)
{
    sigset_t set;

    spawn_signals_fill(&set);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool boot_spawn_is_rank(void)
{
    return getenv(SPAWN_VARIABLE) != NULL;
}

err_code_t boot_spawn_open(const boot_config_t *config, boot_t **out,
                           err_t *err)
{
    const char *text = getenv(SPAWN_VARIABLE);
    int rank = 0, size = 0, fd = -1, parent = 0;
    spawn_rank_t *own = NULL;
    boot_t *boot = NULL;
    err_code_t rc;

    if (text == NULL ||
        sscanf(text, "%d %d %d %d", &rank, &size, &fd, &parent) != 4 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return err_set(err, ERR_CONFIG,
                       SPAWN_VARIABLE " is \"%s\", which only a process that "
                                      "starts ranks sets: unset it",
                       text == NULL ? "" : text);
    /* Programs that this rank starts must not take themselves for ranks. */
    (void)unsetenv(SPAWN_VARIABLE);
    rc = tie_to_parent((pid_t)parent, err);
    signals_open();
    if (rc == ERR_OK)
        rc = mem_new(spawn_rank_t, 1, "start-up", &own, err);
    if (rc == ERR_OK)
        rc = boot_new(&spawn_backend, config, &boot, err);
    if (rc != ERR_OK) {
        mem_free(own);
        return rc;
    }
    own->fd = fd;
    boot->rank = rank;
    boot->size = size;
    boot->state = own;
    *out = boot;
    return ERR_OK;
}
