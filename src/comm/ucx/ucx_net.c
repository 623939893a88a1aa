/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Endpoints of a group. Those to ranks of this node are made without UCX's
 * error handling, as UCX does not use shared memory where that is asked for.
 * Those to other nodes are made with it, so that UCX tells of a broken
 * connection.
 */
#include "base/check.h"
#include "comm/ucx/ucx_group.h"

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
        .err_mode = peer->local ? UCP_ERR_HANDLING_MODE_NONE
                                : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = endpoint_broken, .arg = peer},
    };
    err_t fault = ERR_INIT;
    ucs_status_t status;

    check(rank != group->base.rank && rank >= 0 && rank < group->base.size,
          "rank %d of %d sends to rank %d", group->base.rank, group->base.size,
          rank);
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
