/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * usage: ucx_exchange wake|busy SMALLEST LARGEST [ROUNDS]  (bytes, 2 MPI ranks)
 *
 * The least that any all-reduce of two ranks on two nodes needs: each rank
 * sends its buffer to the other and receives the other's buffer, with UCX only
 * and without sum, deadline or thread. "wake": the worker has a descriptor to
 * sleep on, as ours has (UCP_FEATURE_WAKEUP); "busy": the worker can only be
 * polled, as in Open MPI. Over TCP the difference is the kernel's work for
 * nested epoll descriptors on every message. The measurement is that of
 * mpi_allreduce.c; MPI only transports addresses and results. Prints
 * "bytes,median_us" per size.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <ucp/api/ucp.h>

#include "probe.h"

#define WARM_UP 100
#define ADDRESS_MOST 4096

typedef struct exchange {
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    ucp_tag_t tag; /* tag of the last exchange */
    int pending;
} exchange_t;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "ucx_exchange: cannot %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- one exchange -------------------------------------------------------- */

static void completed(exchange_t *exchange, void *request, ucs_status_t status)
{
    need(status == UCS_OK, "exchange a message");
    exchange->pending--;
    ucp_request_free(request);
}

static void sent(void *request, ucs_status_t status, void *exchange)
{
    completed(exchange, request, status);
}

static void received(void *request, ucs_status_t status,
                     const ucp_tag_recv_info_t *info, void *exchange)
{
    (void)info;
    completed(exchange, request, status);
}

static void posted(exchange_t *exchange, ucs_status_ptr_t answer)
{
    need(!UCS_PTR_IS_ERR(answer), "post a message");
    exchange->pending += answer != NULL;
}

static void run(exchange_t *exchange, const void *mine, void *theirs,
                size_t bytes)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                 .user_data = exchange};

    exchange->tag++;
    param.cb.recv = received;
    posted(exchange, ucp_tag_recv_nbx(exchange->worker, theirs, bytes,
                                      exchange->tag, UINT64_MAX, &param));
    param.cb.send = sent;
    posted(exchange, ucp_tag_send_nbx(exchange->endpoint, mine, bytes,
                                      exchange->tag, &param));
    while (exchange->pending > 0)
        ucp_worker_progress(exchange->worker);
}

/* ---- a connection -------------------------------------------------------- */

/* Make the worker's file descriptor one to sleep on, although nothing sleeps on
 * it. */
static void watch(ucp_worker_h worker)
{
    struct epoll_event event = {.events = EPOLLIN};
    int outer = epoll_create1(EPOLL_CLOEXEC), fd;

    need(ucp_worker_get_efd(worker, &fd) == UCS_OK &&
             epoll_ctl(outer, EPOLL_CTL_ADD, fd, &event) == 0,
         "watch the worker");
}

/* Connect with reporting of peer errors. With it UCX also avoids shared memory
 * between two simulated nodes of one machine. */
static void connect_to(exchange_t *exchange, int peer)
{
    static char mine[ADDRESS_MOST], theirs[ADDRESS_MOST];
    ucp_ep_params_t params = {.field_mask =
                                  UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .address = (const ucp_address_t *)theirs,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER};
    ucp_address_t *address;
    size_t bytes;

    need(ucp_worker_get_address(exchange->worker, &address, &bytes) == UCS_OK &&
             bytes <= sizeof mine,
         "tell the worker's address");
    memcpy(mine, address, bytes);
    MPI_Sendrecv(mine, ADDRESS_MOST, MPI_CHAR, peer, 0, theirs, ADDRESS_MOST,
                 MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    need(ucp_ep_create(exchange->worker, &params, &exchange->endpoint) ==
             UCS_OK,
         "reach the other rank");
}

static void open_worker(exchange_t *exchange, bool wake)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG |
                                       (wake ? UCP_FEATURE_WAKEUP : 0)};
    ucp_worker_params_t worker = {.field_mask =
                                      UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_context_h context;
    ucp_config_t *config;

    need(ucp_config_read(NULL, NULL, &config) == UCS_OK, "read UCX's settings");
    need(ucp_config_modify(config, "TX_SEG_SIZE", "64k") == UCS_OK &&
             ucp_config_modify(config, "RX_SEG_SIZE", "64k") == UCS_OK,
         "set the segments that cddp sets");
    need(ucp_init(&params, config, &context) == UCS_OK, "start UCX");
    ucp_config_release(config);
    need(ucp_worker_create(context, &worker, &exchange->worker) == UCS_OK,
         "create a worker");
    if (wake)
        watch(exchange->worker);
}

/* ---- measuring ----------------------------------------------------------- */

static double measure(exchange_t *exchange, char *mine, char *theirs,
                      size_t bytes, size_t asked)
{
    static double times[PROBE_ROUNDS_MAX];
    const size_t rounds = probe_rounds(bytes, asked);

    for (size_t i = 0; i < WARM_UP + rounds; i++) {
        double begin;

        memset(mine, (int)i, bytes);
        run(exchange, NULL, NULL, 0); /* a barrier */
        begin = probe_now();
        run(exchange, mine, theirs, bytes);
        if (i >= WARM_UP)
            times[i - WARM_UP] = probe_now() - begin;
        need(memcmp(mine, theirs, bytes) == 0, "get what the other rank sent");
    }
    return probe_median(times, rounds);
}

int main(int argc, char **argv)
{
    exchange_t exchange = {0};
    size_t smallest, largest, rounds;
    char *mine, *theirs;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    need(argc >= 4 && size == 2, "run: see the head of ucx_exchange.c");
    smallest = strtoull(argv[2], NULL, 10);
    largest = strtoull(argv[3], NULL, 10);
    rounds = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    mine = malloc(largest);
    theirs = malloc(largest);
    need(smallest > 0 && mine != NULL && theirs != NULL, "hold two buffers");
    open_worker(&exchange, strcmp(argv[1], "wake") == 0);
    connect_to(&exchange, !rank);
    for (size_t bytes = smallest; bytes > 0;) {
        double median = measure(&exchange, mine, theirs, bytes, rounds);

        if (rank == 0)
            printf("%zu,%.3f\n", bytes, median * 1e6);
        bytes = probe_next(bytes, largest);
    }
    /* UCX's objects are freed when the process ends */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
