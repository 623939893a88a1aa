/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_local.h"

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

/* Maximum seconds for a culprit to end by itself. */
#define KILL_SECONDS 10

/* A hash of the cores that this rank may use: of the machine and of the
 * affinity mask. Containers of one machine share its cores under several host
 * names, so the machine is not known by its host name. */
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

err_code_t ucx_local_info(ucx_info_t *info, int *fd, err_t *err)
{
    int made;

    memset(info, 0, sizeof *info);
    info->pid = getpid();
    if (getrandom(&info->nonce, sizeof info->nonce, 0) !=
        (ssize_t)sizeof info->nonce)
        return err_set(err, ERR_IO, "no random number for the comm group: %s",
                       strerror(errno));
    info->cpus = cores_hash();
    ucx_fabric_find(&info->fabric);
    made = memfd_create("cddp-comm", MFD_CLOEXEC);
    if (made >= 0 && write(made, &info->nonce, sizeof info->nonce) !=
                         (ssize_t)sizeof info->nonce) {
        close(made);
        made = -1;
    }
    info->fd = made;
    *fd = made;
    return ERR_OK;
}

/* Return whether the process of [info] shows its nonce in this rank's /proc.
 * *pidfd is set to that process. The pidfd is opened before the nonce is read,
 * so it is not of a later process with the same id. */
static bool info_verify(const ucx_info_t *info, int *pidfd)
{
    char path[64];
    uint64_t nonce = 0;
    ssize_t got;
    int fd, process = -1;

    if (info->fd < 0)
        return false;
    if (info->pid != getpid())
        process = (int)syscall(SYS_pidfd_open, (pid_t)info->pid, 0);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)info->pid,
             (long long)info->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : pread(fd, &nonce, sizeof nonce, 0);
    if (fd >= 0)
        close(fd);
    if (got == (ssize_t)sizeof nonce && nonce == info->nonce) {
        *pidfd = process; /* -1: the kernel has no pidfds; only beats tell of a
                             death */
        return true;
    }
    if (process >= 0)
        close(process);
    return false;
}

/* Busy waiting is worth it only if every rank that shares our cores has one for
 * its owner, and one more is left. */
static void cores_count(const ucx_info_t *infos, int size, int rank,
                        ucx_local_t *out)
{
    int sharing = 0;

    for (int other = 0; other < size; other++)
        sharing += infos[other].cpus == infos[rank].cpus;
    out->spin = thread_cores() > sharing;
    out->core = thread_cores() >= sharing; /* owners only */
}

err_code_t ucx_local_find(ucx_net_t *net, const comm_oob_t *oob,
                          const ucx_info_t *infos, ucx_local_t *out, err_t *err)
{
    const comm_hello_t *hellos = net->base->hellos;
    const node_place_t *place = &out->place;
    size_t size = (size_t)oob->size;
    char *mine, *all;
    err_code_t rc =
        mem_new(char, size + size * size, "comm local ranks", &mine, err);

    if (rc != ERR_OK)
        return rc;
    all = mine + size;
    for (int rank = 0; rank < oob->size; rank++)
        if (strcmp(hellos[rank].host, hellos[oob->rank].host) == 0)
            mine[rank] = info_verify(&infos[rank], &net->peers[rank].pidfd);
    rc = oob->exchange(oob->context, mine, size, all, err);
    for (int rank = 0; rc == ERR_OK && rank < oob->size; rank++)
        net->peers[rank].local =
            node_place_together(all, oob->size, oob->rank, rank);
    if (rc == ERR_OK)
        rc = node_place_open(all, oob->size, oob->rank, &out->place, err);
    check(rc != ERR_OK ||
              (place->local < place->count &&
               node_place_rank(place, place->here, place->local) == oob->rank),
          "rank %d is not rank %d of node %d", oob->rank, place->local,
          place->here);
    if (rc == ERR_OK)
        cores_count(infos, oob->size, oob->rank, out);
    mem_free(mine);
    return rc;
}

void ucx_local_close(ucx_net_t *net)
{
    for (int rank = 0; net->peers != NULL && rank < net->base->size; rank++) {
        if (net->peers[rank].pidfd >= 0)
            close(net->peers[rank].pidfd);
        net->peers[rank].pidfd = -1;
    }
}

/* A culprit that still sends beats has been told of the fault and may be about
 * to end, so it gets time. A culprit that sends none gets no time. */
void ucx_local_end(const ucx_net_t *net, const err_t *fault)
{
    int culprit = comm_rank_find(net->base, fault->culprit);
    double wait = 0.75 * net->base->timeout;
    struct pollfd process = {.events = POLLIN};

    if (culprit < 0 || culprit == net->base->rank ||
        !net->peers[culprit].local || net->peers[culprit].pidfd < 0)
        return;
    if (wait > KILL_SECONDS)
        wait = KILL_SECONDS;
    if (clock_now() - watch_last_beat(net->watch, culprit) > wait / 2)
        wait = 0;
    process.fd = net->peers[culprit].pidfd;
    if (poll(&process, 1, (int)(wait * 1000)) != 0)
        return; /* it has ended */
    if (syscall(SYS_pidfd_send_signal, process.fd, SIGKILL, NULL, 0) == 0)
        log_warn("comm", "rank %d, process %lld, stalled: killed it",
                 fault->culprit, (long long)net->base->hellos[culprit].pid);
}
