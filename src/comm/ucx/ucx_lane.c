/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_lane.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/mem.h"

/* ---- messages of lanes --------------------------------------------------- */

static ucp_tag_t lane_tag(const ucx_lane_t *lane, int source)
{
    check(lane->digest >> WATCH_DIGEST_BITS == 0 && source >= 0 &&
              source < lane->config.net->base->size && lane->task.index < 16,
          "a tag of digest %x, rank %d, lane %d", lane->digest, source,
          lane->task.index);
    return UCX_TAG_KIND(UCX_TAG_DATA) | (ucp_tag_t)source << 40 |
           (ucp_tag_t)lane->digest << 20 |
           (lane->task.number & UINT64_C(0xffff)) << 4 |
           (ucp_tag_t)lane->task.index;
}

static void lane_link(ucx_lane_t *lane, ucx_request_t *request)
{
    check(request->posted && !request->early && lane->posted != request,
          "a request of lane %d with rank %d is linked twice", lane->task.index,
          request->peer);
    request->previous = NULL;
    request->next = lane->posted;
    if (lane->posted != NULL)
        lane->posted->previous = request;
    lane->posted = request;
    lane->pending++;
}

static void lane_unlink(ucx_lane_t *lane, ucx_request_t *request)
{
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        lane->posted = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    check(lane->pending > 0,
          "a request of lane %d is over, but none was posted",
          lane->task.index);
    lane->pending--;
}

/* Fail the group, as this rank and [peer] exchange messages of different
 * sizes. */
static void sizes_differ(const ucx_lane_t *lane, int peer)
{
    const ucx_net_t *net = lane->config.net;
    err_t fault = ERR_INIT;

    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d and rank %d exchange messages of "
            "different sizes: all must start the same collectives in the same "
            "order",
            lane->task.number, comm_rank_name(net->base, net->base->rank),
            comm_rank_name(net->base, peer));
    net->fail(net->context, &fault);
}

/* Handle the end of a message with [peer]. If it failed, the buffer does not
 * have the data, so the lane must not continue. */
static void message_ended(ucx_lane_t *lane, int peer, size_t bytes,
                          ucs_status_t status, size_t got)
{
    lane->config.net->moves++;
    if ((status == UCS_OK && got == bytes) || status == UCS_ERR_CANCELED)
        return;
    lane->broken = true;
    if (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED)
        sizes_differ(lane, peer);
    else
        ucx_net_lost(lane->config.net, peer);
}

static void lane_completed(ucx_lane_t *lane, ucx_request_t *request,
                           ucs_status_t status, size_t got)
{
    if (ucx_request_early(request)) {
        request->status = status;
        request->got = got;
        return;
    }
    lane_unlink(lane, request);
    message_ended(lane, request->peer, request->bytes, status, got);
    ucx_request_free(request);
}

static void send_completed(void *request, ucs_status_t status, void *lane)
{
    lane_completed(lane, request, status, ((ucx_request_t *)request)->bytes);
}

static void recv_completed(void *request, ucs_status_t status,
                           const ucp_tag_recv_info_t *info, void *lane)
{
    lane_completed(lane, request, status, info->length);
}

/* Handle [answer], the result of a post: NULL (the message is done, with [got]
 * bytes), a request, or an error. */
static void lane_posted(ucx_lane_t *lane, int peer, ucs_status_ptr_t answer,
                        size_t bytes, size_t got)
{
    ucx_request_t *request = answer;

    if (answer == NULL) {
        message_ended(lane, peer, bytes, UCS_OK, got);
    } else if (UCS_PTR_IS_ERR(answer)) {
        message_ended(lane, peer, bytes, UCS_PTR_STATUS(answer), 0);
    } else if (ucx_request_posted(request)) {
        request->peer = peer;
        request->bytes = bytes;
        lane_link(lane, request);
    } else {
        message_ended(lane, peer, bytes, request->status, request->got);
        ucx_request_free(request);
    }
}

static void lane_send(void *context, int rank, const void *data, size_t bytes)
{
    ucx_lane_t *lane = context;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = send_completed,
                                 .user_data = lane};
    ucx_net_t *net = lane->config.net;
    ucp_ep_h endpoint = ucx_net_endpoint(net, rank);
    ucs_status_ptr_t answer;

    check(lane->alive && ucx_net_is_driven(net),
          "lane %d sends, and is over or not driven", lane->task.index);
    if (endpoint == NULL)
        return;
    answer = ucp_tag_send_nbx(endpoint, data, bytes,
                              lane_tag(lane, net->base->rank), &param);
    if (answer != NULL && !UCS_PTR_IS_ERR(answer))
        ((ucx_request_t *)answer)->got = bytes; /* in case it is early */
    lane_posted(lane, rank, answer, bytes, bytes);
}

static void lane_recv(void *context, int rank, void *data, size_t bytes)
{
    ucx_lane_t *lane = context;
    ucp_tag_recv_info_t info = {.length = bytes};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv = recv_completed,
                                 .user_data = lane,
                                 .recv_info.tag_info = &info};
    ucx_net_t *net = lane->config.net;
    ucs_status_ptr_t answer = ucp_tag_recv_nbx(
        net->worker, data, bytes, lane_tag(lane, rank), UINT64_MAX, &param);

    /* The sender connects to this rank, and will wait for its good-bye. */
    watch_connected(net->watch, rank);
    lane_posted(lane, rank, answer, bytes, info.length);
}

void ucx_lane_cancel(ucx_lane_t *lane)
{
    ucx_request_t *next;
    unsigned count = 0;

    for (ucx_request_t *one = lane->posted; one != NULL; one = one->next)
        count++;
    check(count == lane->pending, "lane %d lists %u requests of %u",
          lane->task.index, count, lane->pending);
    for (ucx_request_t *one = lane->posted; one != NULL; one = next) {
        next = one->next;
        ucp_request_cancel(lane->config.net->worker, one);
    }
}

static void lane_fail(void *context, const err_t *fault)
{
    const ucx_lane_t *lane = context;

    lane->config.net->fail(lane->config.net->context, fault);
}

/* Members are the ranks of the group. */
static const ucx_task_ops_t ranks_ops = {
    .send = lane_send, .recv = lane_recv, .fail = lane_fail};

/* ---- between nodes ------------------------------------------------------- */

/* The rank on [node] that owns the same part of the buffer as this rank. */
static int owner_of(const ucx_lane_t *lane, int node)
{
    const node_place_t *place = lane->config.place;

    return node_place_rank(place, node, place->local);
}

static void node_send(void *context, int node, const void *data, size_t bytes)
{
    lane_send(context, owner_of(context, node), data, bytes);
}

static void node_recv(void *context, int node, void *data, size_t bytes)
{
    lane_recv(context, owner_of(context, node), data, bytes);
}

/* Members are the nodes. On each node one rank takes part. */
static const ucx_task_ops_t nodes_ops = {
    .send = node_send, .recv = node_recv, .fail = lane_fail};

void ucx_lane_reduce_begin(ucx_lane_t *lane, void *data, size_t count)
{
    comm_algorithm_t algorithm = lane->work->plan.algorithm;
    ucx_task_t *part = &lane->part;

    *part = lane->task;
    part->ops = &nodes_ops;
    part->rank = lane->config.place->here;
    part->size = lane->config.place->nodes;
    lane->part_request = *lane->task.request;
    lane->part_request.data = data;
    lane->part_request.count = count;
    part->request = &lane->part_request;
    lane->part_algorithm = algorithm == COMM_BY_DOUBLING  ? ucx_doubling
                           : algorithm == COMM_BY_HALVING ? ucx_halving
                                                          : ucx_ring_even;
    ucx_task_begin(part);
}

bool ucx_lane_reduce(ucx_lane_t *lane)
{
    return lane->part_algorithm(&lane->part);
}

/* ---- open and begin ------------------------------------------------------ */

err_code_t ucx_lane_open(ucx_lane_t *lane, const ucx_lane_config_t *config,
                         err_t *err)
{
    const comm_group_t *base = config->net->base;
    size_t bytes = ucx_task_scratch(base->size);
    char *scratch = NULL;
    err_code_t rc = mem_new(char, bytes, "comm scratch", &scratch, err);

    lane->config = *config;
    lane->task = (ucx_task_t){.ops = &ranks_ops,
                              .context = lane,
                              .rank = base->rank,
                              .size = base->size,
                              .scratch = scratch,
                              .scratch_bytes = bytes,
                              .part = &lane->part};
    if (rc == ERR_OK)
        rc = mem_new(int64_t, (size_t)base->size * 2, "comm ranges",
                     &lane->task.ranges, err);
    return rc;
}

void ucx_lane_close(ucx_lane_t *lane)
{
    mem_free(lane->task.scratch);
    mem_free(lane->task.ranges);
}

void ucx_lane_begin(ucx_lane_t *lane, const ucx_work_t *work,
                    ucx_algorithm_t algorithm, uint32_t digest, int index)
{
    check(!lane->alive && lane->pending == 0 && lane->posted == NULL,
          "lane %d begins collective %llu with %u requests of another", index,
          (unsigned long long)work->number, lane->pending);
    lane->work = work;
    lane->algorithm = algorithm;
    lane->digest = digest;
    lane->alive = true;
    lane->broken = lane->idle = false;
    lane->task.request = &work->request;
    lane->task.number = work->number;
    lane->task.index = index;
    lane->task.lanes = work->plan.lanes;
    ucx_task_begin(&lane->task);
}
