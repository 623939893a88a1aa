/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Who can connect to a rank? The test has ranks on two machines, which are
 * network namespaces on one switch, and on that switch a stranger, who sends
 * the 13 bytes at which UCX's TCP transport aborts. Needs root and iproute2.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "lib/ranks.h"

#define RANKS 4 /* two on each machine */
#define PORTS 16

static void unset(void)
{
    unsetenv("UCX_TLS");
    unsetenv("UCX_NET_DEVICES");
    unsetenv("CDDP_NET_GATE");
}

TestSuite(strangers, .init = unset, .timeout = 240);

/* ---- machines ------------------------------------------------------------ */

static const char *const machines[] = {"sw", "a", "b", "s"};

static char *machine(const char *name)
{
    return str_printf("cddp%ld%s", (long)getpid(), name);
}

/* Run ip [format] with each @x replaced by the name of machine x. */
static bool ip(const char *command)
{
    str_buf_t text = {0};
    bool done;

    str_buf_add(&text, "ip ");
    for (const char *c = command; *c != '\0'; c++)
        if (*c == '@')
            str_buf_add(&text, "cddp%ld", (long)getpid());
        else
            str_buf_add(&text, "%c", *c);
    str_buf_add(&text, " 2>/dev/null");
    done = system(text.text) == 0;
    str_buf_free(&text);
    return done;
}

static void machines_remove(void)
{
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        char *command = str_printf("netns del @%s", machines[i]);

        (void)ip(command);
        free(command);
    }
}

/* Make machine [name]: eth0 in 10.99.0.0/24 on the switch; a network that only
 * this machine has; and a bridge with an address that every machine uses. */
static bool machine_make(const char *name, int number)
{
    const char *const commands[] = {
        "netns add @%s",
        "-n @%s link set lo up",
        "-n @sw link add p%s type veth peer name eth0 netns @%s",
        "-n @sw link set p%s master br0 up",
        "-n @%s addr add 10.99.0.%d/24 dev eth0",
        "-n @%s link set eth0 up",
        "-n @%s link add own0 type veth peer name own1",
        "-n @%s link set own1 up",
        "-n @%s addr add 10.98.%d.1/24 dev own0",
        "-n @%s link set own0 up",
        "-n @%s link add docker0 type veth peer name docker1",
        "-n @%s link set docker1 up",
        "-n @%s addr add 172.17.0.1/16 dev docker0",
        "-n @%s link set docker0 up"};
    bool made = true;

    for (size_t i = 0; made && i < sizeof commands / sizeof *commands; i++) {
        char *command = strstr(commands[i], "netns @") != NULL
                            ? str_printf(commands[i], name, name)
                            : str_printf(commands[i], name, number);

        made = ip(command);
        free(command);
    }
    return made;
}

static bool machines_make(void)
{
    return ip("netns add @sw") && ip("-n @sw link add br0 type bridge") &&
           ip("-n @sw link set br0 up") && machine_make("a", 1) &&
           machine_make("b", 2) && machine_make("s", 3);
}

/* From now on the calling process runs on machine [name]. */
static bool machine_enter(const char *name)
{
    char *called = str_printf("/run/netns/%s", name);
    int fd = open(called, O_RDONLY | O_CLOEXEC);
    bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;

    if (fd >= 0)
        close(fd);
    free(called);
    return entered;
}

/* ---- what listens -------------------------------------------------------- */

typedef struct ports {
    int count;
    struct sockaddr_in at[PORTS];
    int others; /* number of listening sockets that are not IPv4 */
} ports_t;

/* Return whether [ports] has the place [at] already. Each place comes twice, as
 * a sink listens at the place of each socket of UCX. */
static bool ports_have(const ports_t *ports, const struct sockaddr_in *at)
{
    for (int i = 0; i < ports->count; i++)
        if (ports->at[i].sin_port == at->sin_port &&
            ports->at[i].sin_addr.s_addr == at->sin_addr.s_addr)
            return true;
    return false;
}

/* The places where sockets of this process listen. */
static ports_t ports_find(void)
{
    ports_t ports = {0};

    for (int fd = 3; fd < 1024 && ports.count < PORTS; fd++) {
        struct sockaddr_storage own;
        socklen_t bytes = sizeof own, room = sizeof(int);
        int listens = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &room) != 0 ||
            !listens || getsockname(fd, (struct sockaddr *)&own, &bytes) != 0 ||
            own.ss_family == AF_UNIX)
            continue;
        memcpy(&ports.at[ports.count], &own, sizeof *ports.at);
        if (own.ss_family != AF_INET)
            ports.others++;
        else if (!ports_have(&ports, &ports.at[ports.count]))
            ports.count++;
    }
    return ports;
}

/* ---- strangers ----------------------------------------------------------- */

/* Connect to [at] within [milliseconds]. Returns the socket, or -1 if that
 * fails. */
static int reach(const struct sockaddr_in *at, int milliseconds)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    socklen_t bytes = sizeof(int);
    int error = -1;

    if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0)
        return fd;
    if (errno == EINPROGRESS && poll(&wait, 1, milliseconds) == 1 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0)
        return fd;
    close(fd);
    return -1;
}

/* UCX's magic number, and the header of a message that is too long. */
static const unsigned char thirteen[13] = {0x78, 0x56, 0x34, 0x12, 0xbe,
                                           0xba, 0xfe, 0xca, 0x00, 0xff,
                                           0xff, 0xff, 0x7f};

/* Fork a process on machine [name] that sends the bytes to all [ports] and
 * waits until the connections are closed. Returns the number of ports it
 * reached. */
static int attack(const char *name, const ports_t *ports, int count)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int reached = 0;

        if (!machine_enter(name))
            _exit(255);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < ports[i].count; j++) {
                int fd = reach(&ports[i].at[j], 500);
                struct pollfd closed = {.fd = fd, .events = POLLIN};

                if (fd < 0)
                    continue;
                reached++;
                (void)!send(fd, thirteen, sizeof thirteen, MSG_NOSIGNAL);
                (void)poll(&closed, 1, 20000);
            }
        _exit(reached);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- a rank that falls --------------------------------------------------- */

/* file descriptor to which the signal handler writes; global for the handler */
static int guilt = -1;

static void on_abort(int number)
{
    const char answer = comm_in_transport() ? 'g' : 'n';

    (void)number;
    (void)!write(guilt, &answer, 1);
}

/* ---- the ranks ----------------------------------------------------------- */

typedef struct rank_plan {
    /* machine of the first half of the ranks, and of the second half */
    char *names[2];
    char *strangers[2]; /* machines from which a stranger connects */
    int first, last; /* last byte of the addresses 10.99.0.x that may listen */
    bool silent;     /* nothing may listen */
    bool falls;      /* the attack ends a rank */
} rank_plan_t;

static int listeners_check(const rank_plan_t *plan, const ports_t *mine)
{
    RANKS_CHECK(mine->others == 0);
    RANKS_CHECK(plan->silent ? mine->count == 0 : mine->count > 0);
    for (int i = 0; i < mine->count; i++) {
        const uint32_t at = ntohl(mine->at[i].sin_addr.s_addr);

        RANKS_CHECK(at >= (10u << 24 | 99u << 16) + (uint32_t)plan->first);
        RANKS_CHECK(at <= (10u << 24 | 99u << 16) + (uint32_t)plan->last);
    }
    return 0;
}

static int sum_check(comm_group_t *group)
{
    float data[5000];
    comm_work_t *work;
    err_t err = ERR_INIT;

    for (int i = 0; i < 5000; i++)
        data[i] = 1;
    if (comm_allreduce_start(group, data, 5000, COMM_FLOAT32, COMM_SUM, &work,
                             &err) == COMM_FAILED)
        RANKS_OK(err.code, err);
    RANKS_OK(comm_work_wait(work, &err), err);
    for (int i = 0; i < 5000; i++)
        RANKS_CHECK(data[i] == (float)comm_group_size(group));
    return 0;
}

static int rank_main(const comm_oob_t *given, void *argument)
{
    const rank_plan_t *plan = argument;
    comm_config_t config = {.backend = "ucx", .timeout = 20};
    comm_oob_t oob = *given;
    ports_t mine, all[RANKS];
    comm_group_t *group;
    err_t err = ERR_INIT;
    char ready = 1, both[RANKS];
    int reached = 0;

    if (plan->names[0] != NULL) {
        oob.host = plan->names[oob.rank >= RANKS / 2];
        RANKS_CHECK(machine_enter(oob.host));
    }
    RANKS_OK(comm_group_open(&config, &oob, &group, &err), err);
    mine = ports_find();
    if (listeners_check(plan, &mine) != 0)
        return 1;
    if (plan->falls)
        signal(SIGABRT, on_abort);
    RANKS_OK(oob.exchange(oob.context, &mine, sizeof mine, all, &err), err);
    if (sum_check(group) != 0)
        return 1;
    if (oob.rank == 0 && plan->strangers[0] != NULL)
        reached = attack(plan->strangers[0], all + 1, RANKS - 1);
    /* from the ranks' own machine */
    if (oob.rank == 0 && plan->strangers[1] != NULL)
        reached += attack(plan->strangers[1], all + 1, 1);
    RANKS_CHECK(oob.rank != 0 || (reached > 0) == plan->falls);
    if (plan->falls) { /* the attack has ended the other ranks */
        err_t why = ERR_INIT;

        (void)comm_barrier(group, &why);
        RANKS_CHECK(why.code == ERR_PEER);
        return 0;
    }
    RANKS_OK(oob.exchange(oob.context, &ready, 1, both, &err), err);
    if (sum_check(group) != 0)
        return 1;
    comm_group_close(group);
    return 0;
}

static void plan_fill(rank_plan_t *plan)
{
    *plan = (rank_plan_t){.names = {machine("a"), machine("b")},
                          .strangers = {machine("s"), machine("a")},
                          .first = 1,
                          .last = 2};
}

static void plan_free(rank_plan_t *plan)
{
    for (int i = 0; i < 2; i++) {
        free(plan->names[i]);
        free(plan->strangers[i]);
    }
}

/* ---- tests --------------------------------------------------------------- */

/* Ranks of one node use no network at all, whatever networks the machine has.
 */
Test(strangers, ranks_of_one_node_listen_to_nobody)
{
    rank_plan_t plan = {.silent = true};
    int results[RANKS];

    cr_assert_eq(ranks_forks(RANKS, 100, rank_main, &plan, results), 0);
}

/* Ranks listen only on the network that both machines share, and accept neither
 * strangers there nor other processes on a machine of the group. */
Test(strangers, ranks_of_several_nodes_listen_to_each_other)
{
    rank_plan_t plan;
    int results[RANKS];

    if (geteuid() != 0 || !machines_make()) {
        machines_remove();
        cr_skip_test("needs root, iproute2 and network namespaces");
    }
    plan_fill(&plan);
    cr_expect_eq(ranks_forks(RANKS, 100, rank_main, &plan, results), 0);
    plan_free(&plan);
    machines_remove();
}

/* This test is like the one before, but ranks also reach each other over TCP
 * within a machine. So other processes of this machine can connect. */
Test(strangers, ranks_that_use_tcp_within_a_node_listen_to_no_other_machine)
{
    rank_plan_t plan;
    int results[RANKS];

    if (geteuid() != 0 || !machines_make()) {
        machines_remove();
        cr_skip_test("needs root, iproute2 and network namespaces");
    }
    setenv("UCX_TLS", "tcp,self", 1);
    plan_fill(&plan);
    free(plan.strangers[1]);
    plan.strangers[1] = NULL;
    cr_expect_eq(ranks_forks(RANKS, 100, rank_main, &plan, results), 0);
    plan_free(&plan);
    machines_remove();
}

/* Without the gate the stranger's bytes make UCX abort a rank, and the other
 * ranks report which one. This shows what the gate is for, and that the bytes
 * above are effective. */
Test(strangers, thirteen_bytes_end_a_rank_whose_gate_is_open)
{
    rank_plan_t plan;
    int results[RANKS], pipes[2];
    char answer = 0;

    if (geteuid() != 0 || !machines_make()) {
        machines_remove();
        cr_skip_test("needs root, iproute2 and network namespaces");
    }
    cr_assert_eq(pipe(pipes), 0);
    guilt = pipes[1];
    setenv("CDDP_NET_GATE", "off", 1);
    plan_fill(&plan);
    plan.falls = true;
    (void)ranks_forks(RANKS, 100, rank_main, &plan, results);
    cr_expect_eq(results[0], 0);
    cr_expect_eq(results[1], 128 + SIGABRT);
    cr_assert_eq(read(pipes[0], &answer, 1), 1);
    cr_expect_eq(answer, 'g');
    plan_free(&plan);
    machines_remove();
}
