/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Which ranks are on this node? A host name may lie (containers, images), so a
 * peer of the same name must also show a nonce through /proc: it keeps the
 * nonce in a memfd, and whoever can read it there sees the same kernel and the
 * same process ids, so that a pidfd of that id is the peer. Both sides must
 * have verified each other, because endpoints must be of one kind on both.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "comm/ucx/ucx_group.h"

/* The cores that this rank may use: a hash of the machine that has them and of
 * the affinity mask. Containers and network namespaces of one machine share its
 * cores though they are several hosts, so the host name would not do. */
static uint64_t cores_hash(void)
{
    struct {
        char machine[256];
        cpu_set_t cpus;
    } cores;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    memset(&cores, 0, sizeof cores);
    if (file == NULL ||
        fgets(cores.machine, sizeof cores.machine, file) == NULL)
        (void)gethostname(cores.machine, sizeof cores.machine - 1);
    if (file != NULL)
        fclose(file);
    (void)sched_getaffinity(0, sizeof cores.cpus, &cores.cpus);
    return hash_bytes(&cores, sizeof cores);
}

err_code_t ucx_local_card(ucx_card_t *card, int *fd, err_t *err)
{
    int made;

    memset(card, 0, sizeof *card);
    card->pid = getpid();
    if (getrandom(&card->nonce, sizeof card->nonce, 0) !=
        (ssize_t)sizeof card->nonce)
        return err_set(err, ERR_IO, "no random number for the comm group: %s",
                       strerror(errno));
    card->cpus = cores_hash();
    ucx_fabric_find(&card->fabric);
    made = memfd_create("cddp-comm", MFD_CLOEXEC);
    if (made >= 0 && write(made, &card->nonce, sizeof card->nonce) !=
                         (ssize_t)sizeof card->nonce) {
        close(made);
        made = -1;
    }
    card->fd = made; /* without it all peers are treated as remote */
    *fd = made;
    return ERR_OK;
}

/* A pidfd is got before the nonce is read: so it cannot be of a process that
 * got the same id afterwards. */
static bool local_verify(const ucx_card_t *card, int *pidfd)
{
    char path[64];
    uint64_t nonce = 0;
    ssize_t got;
    int fd, process = -1;

    if (card->fd < 0)
        return false;
    if (card->pid != getpid())
        process = (int)syscall(SYS_pidfd_open, (pid_t)card->pid, 0);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)card->pid,
             (long long)card->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : pread(fd, &nonce, sizeof nonce, 0);
    if (fd >= 0)
        close(fd);
    if (got == (ssize_t)sizeof nonce && nonce == card->nonce) {
        *pidfd = process; /* -1 where the kernel has none: beats remain */
        return true;
    }
    if (process >= 0)
        close(process);
    return false;
}

/* Busy waiting pays only if every rank that shares our cores has one for its
 * owner and there is one over. */
static void cores_count(ucx_group_t *group, const ucx_card_t *cards)
{
    int sharing = 0;

    for (int rank = 0; rank < group->base.size; rank++)
        sharing += cards[rank].cpus == cards[group->base.rank].cpus;
    group->spin = thread_cores() > sharing;
    group->core = thread_cores() >= sharing; /* owners only */
}

err_code_t ucx_local_find(ucx_group_t *group, const comm_oob_t *oob,
                          const comm_hello_t *hellos, const ucx_card_t *cards,
                          err_t *err)
{
    size_t size = (size_t)oob->size;
    char *mine, *all;
    err_code_t rc =
        mem_new(char, size + size * size, "comm local ranks", &mine, err);

    if (rc != ERR_OK)
        return rc;
    all = mine + size;
    for (int rank = 0; rank < oob->size; rank++)
        if (strcmp(hellos[rank].host, hellos[oob->rank].host) == 0)
            mine[rank] = local_verify(&cards[rank], &group->peers[rank].pidfd);
    rc = oob->exchange(oob->context, mine, size, all, err);
    for (int rank = 0; rc == ERR_OK && rank < oob->size; rank++)
        group->peers[rank].local =
            node_place_together(all, oob->size, oob->rank, rank);
    if (rc == ERR_OK)
        rc = node_place_open(all, oob->size, oob->rank, &group->place, err);
    check(rc != ERR_OK || (group->place.local < group->place.count &&
                           node_place_rank(&group->place, group->place.here,
                                           group->place.local) == oob->rank),
          "rank %d is not rank %d of node %d", oob->rank, group->place.local,
          group->place.here);
    if (rc == ERR_OK)
        cores_count(group, cards);
    mem_free(mine);
    return rc;
}

/* A culprit that still beats has been told of its fault and may be on its way
 * out: it gets a moment. One that gives no sign of life gets none. */
void ucx_local_end(ucx_group_t *group)
{
    int culprit = comm_rank_find(&group->base, group->fault.culprit);
    double patience = 0.75 * group->base.timeout;
    struct pollfd process = {.events = POLLIN};

    if (!atomic_load(&group->failed) || culprit < 0 ||
        culprit == group->base.rank || !group->peers[culprit].local ||
        group->peers[culprit].pidfd < 0)
        return;
    if (patience > 10)
        patience = 10;
    if (clock_now() - watch_last_beat(group->watch, culprit) > patience / 2)
        patience = 0;
    process.fd = group->peers[culprit].pidfd;
    if (poll(&process, 1, (int)(patience * 1000)) != 0)
        return; /* it has ended */
    if (syscall(SYS_pidfd_send_signal, process.fd, SIGKILL, NULL, 0) == 0)
        log_warn("comm", "rank %d, process %lld, stalled: killed it",
                 group->fault.culprit,
                 (long long)group->base.hellos[culprit].pid);
}
