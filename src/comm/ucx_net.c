/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * What a group does with its UCP worker: endpoints, and the messages of lanes.
 * Endpoints to ranks of this node are made without error handling, for
 * UCX drops shared memory when it is asked for; endpoints to other nodes with
 * it, so that a broken connection is told.
 */
#include <inttypes.h>

#include "base/check.h"
#include "comm/ucx_group.h"

/* ---- endpoints ----------------------------------------------------------- */

static void endpoint_broken(void *argument, ucp_ep_h endpoint,
                            ucs_status_t status)
{
    ucx_peer_t *peer = argument;
    ucx_group_t *group = peer->group;

    (void)endpoint;
    (void)status;
    ucx_group_lost(group, (int)(peer - group->peers));
}

ucp_ep_h ucx_net_endpoint(ucx_group_t *group, int rank)
{
    ucx_peer_t *peer = &group->peers[rank];
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = peer->address,
        .err_mode = peer->mate ? UCP_ERR_HANDLING_MODE_NONE
                               : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = endpoint_broken, .arg = peer},
    };
    err_t fault = ERR_INIT;
    ucs_status_t status;

    if (peer->endpoint != NULL)
        return peer->endpoint;
    status = ucp_ep_create(group->worker, &params, &peer->endpoint);
    if (status == UCS_OK) {
        watch_connected(group->watch, rank);
        return peer->endpoint;
    }
    peer->endpoint = NULL;
    err_set_peer(&fault, comm_rank_name(&group->base, rank),
                 group->base.hellos[rank].host,
                 "UCX cannot reach rank %d on %s: %s",
                 comm_rank_name(&group->base, rank),
                 group->base.hellos[rank].host, ucs_status_string(status));
    ucx_group_fail(group, &fault);
    return NULL;
}

/* An error counts as held, too: whoever drives next is told of the peer. */
bool ucx_net_holds(ucx_group_t *group)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t answer = ucp_worker_flush_nbx(group->worker, &param);

    if (answer != NULL && !UCS_PTR_IS_ERR(answer))
        ucp_request_free(answer); /* it ends by itself */
    return answer != NULL;
}

/* ---- requests ------------------------------------------------------------ */

bool ucx_request_early(ucx_request_t *request)
{
    request->early = !request->posted;
    return request->early;
}

bool ucx_request_posted(ucx_request_t *request)
{
    request->posted = !request->early;
    return request->posted;
}

/* UCX gives the memory out again as we leave it. */
void ucx_request_free(ucx_request_t *request)
{
    request->posted = request->early = false;
    ucp_request_free(request);
}

/* ---- messages of lanes --------------------------------------------------- */

static ucp_tag_t lane_tag(const ucx_lane_t *lane, int source)
{
    return UCX_TAG_KIND(UCX_TAG_DATA) | (ucp_tag_t)source << 40 |
           (ucp_tag_t)lane->digest << 20 |
           (lane->number & UINT64_C(0xffff)) << 4 | (ucp_tag_t)lane->index;
}

static void lane_link(ucx_lane_t *lane, ucx_request_t *request)
{
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
          "a request of lane %d is over, but none was posted", lane->index);
    lane->pending--;
}

/* A message of [lane] is over. One that failed must not let the lane go on with
 * what is in the buffer: its peer is gone, and the fault will say so. */
static void lane_check(ucx_lane_t *lane, int peer, size_t bytes,
                       ucs_status_t status, size_t got)
{
    err_t fault = ERR_INIT;

    lane->group->moves++;
    if ((status == UCS_OK && got == bytes) || status == UCS_ERR_CANCELED)
        return;
    lane->broken = true;
    if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) {
        ucx_group_lost(lane->group, peer);
        return;
    }
    err_set(&fault, ERR_CONFIG,
            "collective %" PRIu64 ": rank %d and rank %d exchange messages of "
            "different sizes: all must start the same collectives in the same "
            "order",
            lane->number,
            comm_rank_name(&lane->group->base, lane->group->base.rank),
            comm_rank_name(&lane->group->base, peer));
    ucx_group_fail(lane->group, &fault);
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
    lane_check(lane, request->peer, request->bytes, status, got);
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

/* What a post answered: NULL (done, it brought [got]), a request, an error. */
static void lane_posted(ucx_lane_t *lane, int peer, ucs_status_ptr_t answer,
                        size_t bytes, size_t got)
{
    ucx_request_t *request = answer;

    if (answer == NULL) {
        lane_check(lane, peer, bytes, UCS_OK, got);
    } else if (UCS_PTR_IS_ERR(answer)) {
        lane_check(lane, peer, bytes, UCS_PTR_STATUS(answer), 0);
    } else if (ucx_request_posted(request)) {
        request->peer = peer;
        request->bytes = bytes;
        lane_link(lane, request);
    } else {
        lane_check(lane, peer, bytes, request->status, request->got);
        ucx_request_free(request);
    }
}

void ucx_lane_send(ucx_lane_t *lane, int rank, const void *data, size_t bytes)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = send_completed,
                                 .user_data = lane};
    ucp_ep_h endpoint = ucx_net_endpoint(lane->group, rank);
    ucs_status_ptr_t answer;

    if (endpoint == NULL)
        return;
    answer = ucp_tag_send_nbx(endpoint, data, bytes,
                              lane_tag(lane, lane->group->base.rank), &param);
    if (answer != NULL && !UCS_PTR_IS_ERR(answer))
        ((ucx_request_t *)answer)->got = bytes; /* if it was early */
    lane_posted(lane, rank, answer, bytes, bytes);
}

void ucx_lane_recv(ucx_lane_t *lane, int rank, void *data, size_t bytes)
{
    ucp_tag_recv_info_t info = {.length = bytes};
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_RECV_INFO,
                                 .cb.recv = recv_completed,
                                 .user_data = lane,
                                 .recv_info.tag_info = &info};
    ucs_status_ptr_t answer =
        ucp_tag_recv_nbx(lane->group->worker, data, bytes, lane_tag(lane, rank),
                         UINT64_MAX, &param);

    lane_posted(lane, rank, answer, bytes, info.length);
}

void ucx_lane_cancel(ucx_lane_t *lane)
{
    ucx_request_t *next;

    for (ucx_request_t *one = lane->posted; one != NULL; one = next) {
        next = one->next;
        ucp_request_cancel(lane->group->worker, one);
    }
}
