/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_gate.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

/* Offset of the source address in an IPv4 packet. */
#define SOURCE ((uint32_t)SKF_NET_OFF + 12)

#define TTL_MOST 255
/* Places in the group of sockets that share a port: sockets are counted in the
 * order in which they joined the group. */
enum { PLACE_UCX, PLACE_SINK };

/* ---- the program --------------------------------------------------------- */

typedef struct range {
    uint32_t first, last;
} range_t;

static int addresses_compare(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return (one > other) - (one < other);
}

/* Merge the two neighbouring ranges with the fewest addresses between them. */
static size_t ranges_merge(range_t *ranges, size_t count)
{
    size_t best = 0;
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i + 1 < count; i++)
        if (ranges[i + 1].first - ranges[i].last <= least) {
            least = ranges[i + 1].first - ranges[i].last;
            best = i;
        }
    ranges[best].last = ranges[best + 1].last;
    memmove(ranges + best + 1, ranges + best + 2,
            (count - best - 2) * sizeof *ranges);
    return count - 1;
}

size_t ucx_gate_program(uint32_t *addresses, size_t count,
                        struct sock_filter code[UCX_GATE_CODE])
{
    range_t ranges[UCX_GATE_RANGES + 1];
    size_t used = 0, at = 0;

    qsort(addresses, count, sizeof *addresses, addresses_compare);
    for (size_t i = 0; i < count; i++) {
        if (used > 0 && addresses[i] - ranges[used - 1].last <= 1) {
            ranges[used - 1].last = addresses[i];
            continue;
        }
        ranges[used++] = (range_t){addresses[i], addresses[i]};
        if (used > UCX_GATE_RANGES)
            used = ranges_merge(ranges, used);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SOURCE);
    for (size_t i = 0; i < used; i++) {
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
                                                  ranges[i].first, 0, 2);
        code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K,
                                                  ranges[i].last, 1, 0);
        code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, PLACE_UCX);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, PLACE_SINK);
    return at;
}

/* ---- the sockets --------------------------------------------------------- */

static bool option_is(int fd, int option, int value)
{
    int found = -1;
    socklen_t bytes = sizeof found;

    return getsockopt(fd, SOL_SOCKET, option, &found, &bytes) == 0 &&
           found == value;
}

void ucx_gate_look(ucx_gate_fds_t *out)
{
    for (int fd = 0; fd < UCX_GATE_FDS; fd++)
        out->listens[fd] = option_is(fd, SO_ACCEPTCONN, 1) &&
                           option_is(fd, SO_DOMAIN, AF_INET) &&
                           option_is(fd, SO_TYPE, SOCK_STREAM);
}

/* Return whether [fd] is a socket of the worker: another thread of the program
 * may have opened one, too. */
static bool socket_is_worker(const ucx_gate_t *gate, int fd)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t bytes = sizeof own;

    return getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
           memmem(gate->worker, gate->bytes, &own.sin_port,
                  sizeof own.sin_port) != NULL;
}

/* Return whether ranks may connect from [address]. In a network that two
 * machines share, the kernel uses their addresses in that network only. */
static bool address_counts(const ucx_gate_t *gate, uint32_t address)
{
    const ucx_iface_t *iface = gate->iface;

    return iface == NULL ||
           (address & iface->mask) == (iface->address & iface->mask);
}

/* List the addresses from which ranks connect over the network. */
static size_t addresses_list(const ucx_gate_t *gate, uint32_t *out)
{
    size_t count = 0;

    for (int rank = 0; rank < gate->size; rank++) {
        const ucx_fabric_t *fabric = &gate->fabrics[rank];

        for (int i = 0; gate->reached[rank] && i < fabric->count; i++)
            if (address_counts(gate, fabric->ifaces[i].address))
                out[count++] = fabric->ifaces[i].address;
    }
    if (gate->loopback)
        out[count++] = INADDR_LOOPBACK;
    return count;
}

/* ---- the sinks ----------------------------------------------------------- */

static bool option_set(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/* Let [sink] listen where [fd] listens, and let [program] choose between them.
 * UCX's socket is the first one in their group, as it listens already. The
 * program is attached to UCX's socket last: the kernel refuses a program for a
 * socket that is in no group. */
static bool sink_join(int sink, int fd, const struct sock_fprog *program)
{
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;

    return option_set(fd, SOL_SOCKET, SO_REUSEPORT, 1) &&
           option_set(sink, SOL_SOCKET, SO_REUSEPORT, 1) &&
           getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
           bind(sink, (const struct sockaddr *)&own, bytes) == 0 &&
           listen(sink, 0) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program,
                      sizeof *program) == 0;
}

/* Open a sink beside socket [fd] of UCX. The sink does not answer packets
 * with a TTL below 255, and most programs send with 64. If somebody sends with
 * 255, the kernel answers one connection. This connection fills the sink's
 * queue, so the kernel drops all later ones. */
static err_code_t sink_open(int fd, const struct sock_fprog *program, int *out,
                            err_t *err)
{
    int sink = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    err_code_t rc = ERR_OK;

    if (sink >= 0 && option_set(sink, IPPROTO_IP, IP_MINTTL, TTL_MOST) &&
        sink_join(sink, fd, program)) {
        *out = sink;
        return ERR_OK;
    }
    rc = err_set(err, ERR_UNAVAILABLE,
                 "the kernel does not let cddp choose who connects: %s",
                 strerror(errno));
    if (sink >= 0)
        close(sink);
    return rc;
}

/* Open a sink beside each socket of the worker. */
static err_code_t sinks_open(const ucx_gate_t *gate,
                             const ucx_gate_fds_t *before,
                             const struct sock_fprog *program,
                             ucx_gate_sinks_t *sinks, err_t *err)
{
    ucx_gate_fds_t now;
    err_code_t rc = ERR_OK;

    ucx_gate_look(&now);
    for (int fd = 0; fd < UCX_GATE_FDS && rc == ERR_OK; fd++) {
        if (!now.listens[fd] || before->listens[fd] ||
            !socket_is_worker(gate, fd))
            continue;
        if (sinks->count == UCX_GATE_SINKS)
            return err_set(err, ERR_UNAVAILABLE,
                           "UCX listens on more than %d sockets",
                           UCX_GATE_SINKS);
        rc = sink_open(fd, program, &sinks->fds[sinks->count], err);
        sinks->count += rc == ERR_OK;
    }
    return rc;
}

err_code_t ucx_gate_close(const ucx_gate_t *gate, const ucx_gate_fds_t *before,
                          ucx_gate_sinks_t *sinks, err_t *err)
{
    struct sock_filter code[UCX_GATE_CODE];
    struct sock_fprog program = {.filter = code};
    uint32_t *addresses;
    err_code_t rc = mem_new(uint32_t, (size_t)gate->size * UCX_IFACES + 1,
                            "addresses of the ranks", &addresses, err);

    if (rc != ERR_OK)
        return rc;
    program.len = (unsigned short)ucx_gate_program(
        addresses, addresses_list(gate, addresses), code);
    mem_free(addresses);
    return sinks_open(gate, before, &program, sinks, err);
}

void ucx_gate_open(ucx_gate_sinks_t *sinks)
{
    for (int i = 0; i < sinks->count; i++)
        close(sinks->fds[i]);
    sinks->count = 0;
}
