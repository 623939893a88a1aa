/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Who may connect to the sockets of UCX: the program for the kernel as a pure
 * function, and the sinks beside a listener on the loopback, opened by an
 * account without privileges. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/ucx/ucx_gate.h"

#define IP(a, b, c, d)                                                \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | \
     (uint32_t)(d))

/* ---- the program --------------------------------------------------------- */

/* Return whether [code], run as the kernel runs it, gives a packet from
 * [source] to UCX. */
static bool passes(const struct sock_filter *code, size_t count,
                   uint32_t source)
{
    uint32_t value = 0;

    for (size_t at = 0; at < count; at++) {
        const struct sock_filter *one = &code[at];
        bool jump;

        switch (one->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            cr_assert_eq(one->k, (uint32_t)SKF_NET_OFF + 12);
            value = source;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
            jump = one->code == (BPF_JMP | BPF_JGE | BPF_K) ? value >= one->k
                                                            : value > one->k;
            at += jump ? one->jt : one->jf;
            break;
        case BPF_RET | BPF_K:
            cr_assert_leq(one->k, 1u);
            return one->k == 0;
        default:
            cr_assert_fail("instruction %x", one->code);
        }
    }
    cr_assert_fail("no end");
    return false;
}

Test(ucx_gate, only_the_addresses_of_the_group_pass)
{
    uint32_t addresses[] = {IP(10, 0, 0, 7),        IP(10, 0, 0, 1),
                            IP(10, 0, 0, 2),        IP(10, 0, 0, 2),
                            IP(255, 255, 255, 255), IP(192, 168, 1, 5)};
    const uint32_t in[] = {IP(10, 0, 0, 1), IP(10, 0, 0, 2), IP(10, 0, 0, 7),
                           IP(192, 168, 1, 5), UINT32_MAX};
    const uint32_t out[] = {0,
                            IP(10, 0, 0, 0),
                            IP(10, 0, 0, 3),
                            IP(10, 0, 0, 6),
                            IP(10, 0, 0, 8),
                            IP(192, 168, 1, 4),
                            IP(192, 168, 1, 6),
                            IP(127, 0, 0, 1),
                            UINT32_MAX - 1};
    struct sock_filter code[UCX_GATE_CODE];
    size_t count = ucx_gate_program(addresses, 6, code);

    cr_assert_eq(count, 1 + 3 * 4 + 1);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        cr_expect(passes(code, count, in[i]), "%x", in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        cr_expect_not(passes(code, count, out[i]), "%x", out[i]);
    count = ucx_gate_program(addresses, 0, code);
    cr_expect_not(passes(code, count, IP(10, 0, 0, 1)));
}

/* More addresses than a program can list: all of them pass, and few others. */
Test(ucx_gate, many_scattered_addresses_are_merged)
{
    enum { COUNT = 3000 };
    uint32_t *addresses = calloc(COUNT, sizeof *addresses);
    struct sock_filter code[UCX_GATE_CODE];
    size_t count;

    for (uint32_t i = 0; i < COUNT; i++)
        addresses[i] =
            IP(10, 0, 0, 0) + 2 * i + (i >= COUNT / 2 ? 1u << 20 : 0);
    count = ucx_gate_program(addresses, COUNT, code);
    cr_assert_leq(count, UCX_GATE_CODE);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert(passes(code, count, addresses[i]), "%u", i);
    cr_expect_not(passes(code, count, IP(10, 0, 0, 0) + (1u << 19)));
    cr_expect_not(passes(code, count, IP(9, 255, 255, 255)));
    cr_expect_not(passes(code, count, addresses[COUNT - 1] + 1));
    free(addresses);
}

/* ---- the sockets --------------------------------------------------------- */

#define OWN IP(127, 0, 0, 1)
#define MEMBER IP(127, 0, 0, 2)   /* an address of the group */
#define STRANGER IP(127, 0, 0, 3) /* an address that is not */
#define TRIES 20
#define NOBODY 65534 /* an account that no file needs to list */

static void unprivileged(void)
{
    if (geteuid() == 0) {
        cr_assert_eq(setgid(NOBODY), 0);
        cr_assert_eq(setuid(NOBODY), 0);
    }
}

TestSuite(ucx_gate_sockets, .init = unprivileged, .timeout = 120);

static struct sockaddr_in place(uint32_t address, in_port_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = port,
                                .sin_addr.s_addr = htonl(address)};
}

/* Return a socket that listens at [at], as a socket of UCX does. [shared]:
 * other sockets may listen there, too. */
static int listener_at(struct sockaddr_in at, bool shared)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

    if (shared)
        cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one),
                     0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fd, 4 * TRIES), 0);
    return fd;
}

static in_port_t port_of(int fd)
{
    struct sockaddr_in own;
    socklen_t bytes = sizeof own;

    cr_assert_eq(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    return own.sin_port;
}

/* Close the gate of a worker whose address is [port], for MEMBER and, with
 * [loopback], for OWN. */
static err_code_t gate_close(in_port_t port, bool loopback,
                             const ucx_gate_fds_t *before,
                             ucx_gate_sinks_t *sinks, err_t *err)
{
    const ucx_fabric_t fabrics[2] = {
        {.count = 1, .ifaces = {{.address = OWN}}},
        {.count = 1, .ifaces = {{.address = MEMBER}}}};
    const uint8_t reached[2] = {0, 1};
    const ucx_gate_t gate = {.fabrics = fabrics,
                             .reached = reached,
                             .size = 2,
                             .loopback = loopback,
                             .worker = &port,
                             .bytes = sizeof port};

    return ucx_gate_close(&gate, before, sinks, err);
}

/* A listener with a gate. */
typedef struct guarded {
    int fd;
    in_port_t port;
    ucx_gate_sinks_t sinks;
} guarded_t;

static guarded_t guarded_new(bool loopback)
{
    static ucx_gate_fds_t before;
    guarded_t guarded = {0};
    err_t err = ERR_INIT;

    ucx_gate_look(&before);
    guarded.fd = listener_at(place(OWN, 0), false);
    guarded.port = port_of(guarded.fd);
    cr_assert_eq(
        gate_close(guarded.port, loopback, &before, &guarded.sinks, &err),
        ERR_OK, "%s", err.text);
    cr_assert_eq(guarded.sinks.count, 1);
    return guarded;
}

/* Begin to connect from [source] to [port] with this TTL. */
static int visit(uint32_t source, in_port_t port, int ttl)
{
    const struct sockaddr_in from = place(source, 0), to = place(OWN, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl), 0);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        cr_assert_eq(errno, EINPROGRESS, "%d", errno);
    return fd;
}

/* Accept [count] connections, which come from [source]. */
static void accept_from(int listener, uint32_t source, int count)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    struct sockaddr_in peer;
    socklen_t bytes;
    int fd;

    for (int i = 0; i < count; i++) {
        cr_assert_eq(poll(&wait, 1, -1), 1);
        bytes = sizeof peer;
        fd = accept(listener, (struct sockaddr *)&peer, &bytes);
        cr_assert_geq(fd, 0);
        cr_assert_eq(ntohl(peer.sin_addr.s_addr), source);
        close(fd);
    }
}

/* Accept [count] connections from MEMBER. There must be no further ones. */
static void members_accept(int listener, int count)
{
    int fd;

    accept_from(listener, MEMBER, count);
    fd = accept(listener, NULL, NULL);
    cr_expect_eq(fd, -1, "a stranger was accepted");
}

/* The loopback delivers in order: when the members that connected after the
 * strangers are accepted, the strangers have been refused. */
static void expect_members_only(const guarded_t *guarded)
{
    const uint32_t strangers[] = {STRANGER, OWN};
    int fds[TRIES], members[TRIES];

    for (int i = 0; i < TRIES; i++) {
        fds[i] = visit(strangers[i % 2], guarded->port, 64);
        close(visit(strangers[i % 2], guarded->port, 255));
        members[i] = visit(MEMBER, guarded->port, 64);
    }
    members_accept(guarded->fd, TRIES);
    for (int i = 0; i < TRIES; i++) {
        struct pollfd done = {.fd = fds[i], .events = POLLOUT};

        cr_expect_eq(poll(&done, 1, 0), 0); /* there was no answer */
        close(fds[i]);
        close(members[i]);
    }
}

Test(ucx_gate_sockets, only_members_come_to_the_listener)
{
    guarded_t guarded = guarded_new(false);

    cr_expect(fcntl(guarded.sinks.fds[0], F_GETFD) & FD_CLOEXEC);
    expect_members_only(&guarded);
    close(guarded.fd);
    ucx_gate_open(&guarded.sinks);
    cr_expect_eq(guarded.sinks.count, 0);
}

Test(ucx_gate_sockets, the_loopback_may_be_let_in)
{
    guarded_t guarded = guarded_new(true);
    int stranger = visit(STRANGER, guarded.port, 64);
    int own = visit(OWN, guarded.port, 64);
    int member = visit(MEMBER, guarded.port, 64);

    accept_from(guarded.fd, OWN, 1);
    members_accept(guarded.fd, 1);
    close(stranger);
    close(own);
    close(member);
}

/* A process of the same user may listen at this port, too; processes of
 * other users cannot. */
Test(ucx_gate_sockets, another_socket_at_the_port_changes_nothing)
{
    guarded_t guarded = guarded_new(false);
    int other = listener_at(place(OWN, guarded.port), true);
    int wide = listener_at(place(INADDR_ANY, guarded.port), true);

    expect_members_only(&guarded);
    cr_expect_eq(accept(other, NULL, NULL), -1);
    cr_expect_eq(accept(wide, NULL, NULL), -1);
    close(other);
    close(wide);
    expect_members_only(&guarded);
}

/* When the worker is gone and the sinks are still open, nobody is let in. */
Test(ucx_gate_sockets, sinks_are_closed_last)
{
    guarded_t guarded = guarded_new(false);
    struct sockaddr_in to = place(OWN, guarded.port);
    struct pollfd done = {.events = POLLOUT};
    bool refused;
    int fd;

    close(guarded.fd);
    done.fd = visit(MEMBER, guarded.port, 64);
    cr_expect_eq(poll(&done, 1, 0), 0);
    ucx_gate_open(&guarded.sinks);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    refused = connect(fd, (struct sockaddr *)&to, sizeof to) != 0 &&
              errno == ECONNREFUSED;
    cr_expect(refused);
}

Test(ucx_gate_sockets, other_sockets_are_left_alone)
{
    static ucx_gate_fds_t before;
    ucx_gate_sinks_t sinks = {0};
    int old = listener_at(place(OWN, 0), false), fd, shared = 1;
    socklen_t bytes = sizeof shared;
    err_t err = ERR_INIT;

    ucx_gate_look(&before);
    fd = listener_at(place(OWN, 0), false);
    cr_assert_eq(gate_close(port_of(old), false, &before, &sinks, &err),
                 ERR_OK);
    cr_expect_eq(sinks.count, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(getsockopt(i == 0 ? old : fd, SOL_SOCKET, SO_REUSEPORT,
                                &shared, &bytes),
                     0);
        cr_expect_eq(shared, 0);
    }
}

/* Without descriptors there is no sink, and the listener stays as it was. */
Test(ucx_gate_sockets, a_refusal_is_told)
{
    static ucx_gate_fds_t before;
    ucx_gate_sinks_t sinks = {0};
    struct rlimit limit;
    err_t err = ERR_INIT;
    err_code_t rc;
    int fd, stranger;

    ucx_gate_look(&before);
    fd = listener_at(place(OWN, 0), false);
    stranger = visit(STRANGER, port_of(fd), 64);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    rc = gate_close(port_of(fd), false, &before, &sinks, &err);
    limit.rlim_cur = limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_expect_eq(rc, ERR_UNAVAILABLE);
    cr_expect_eq(sinks.count, 0);
    cr_expect_str_eq(err.text, "the kernel does not let cddp choose who "
                               "connects: Too many open files");
    cr_assert_eq(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1), 1);
    cr_expect_geq(accept(fd, NULL, NULL), 0);
    close(stranger);
}
