/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Endpoints and requests. An endpoint to a rank of this node is made without
 * UCX's error handling, because with it UCX uses no shared memory. An endpoint
 * to another node is made with error handling, so that UCX reports a broken
 * connection.
 */
#include "comm/ucx/ucx_net.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

bool ucx_net_is_driven(const ucx_net_t *net)
{
    return atomic_load(&net->driver) == (unsigned long)pthread_self();
}

void ucx_net_lost(ucx_net_t *net, int rank)
{
    check(ucx_net_is_driven(net), "rank %d is lost, and nobody drives", rank);
    watch_lost(net->watch, rank, clock_now());
}

/* ---- endpoints ----------------------------------------------------------- */

static void endpoint_broken(void *argument, ucp_ep_h endpoint,
                            ucs_status_t status)
{
    ucx_peer_t *peer = argument;

    (void)endpoint;
    (void)status;
    ucx_net_lost(peer->net, (int)(peer - peer->net->peers));
}

/* Fail the group, as no endpoint to [rank] could be made. */
static void endpoint_failed(ucx_net_t *net, int rank, ucs_status_t status)
{
    int name = comm_rank_name(net->base, rank);
    const char *host = net->base->hellos[rank].host;
    err_t fault = ERR_INIT;

    err_set_peer(&fault, name, host, "UCX cannot reach rank %d on %s: %s", name,
                 host, ucs_status_string(status));
    net->fail(net->context, &fault);
}

/* Note how [endpoint] reaches [rank], if [rank] is the first peer on another
 * host. */
static void route_note(ucx_net_t *net, int rank, ucp_ep_h endpoint)
{
    const comm_hello_t *hellos = net->base->hellos;

    if (!atomic_load_explicit(&net->routed, memory_order_relaxed) &&
        strcmp(hellos[rank].host, hellos[net->base->rank].host) != 0 &&
        ucx_route_find(endpoint, net->route))
        atomic_store_explicit(&net->routed, true, memory_order_release);
}

const char *ucx_net_route(const ucx_net_t *net)
{
    return atomic_load_explicit(&net->routed, memory_order_acquire) ? net->route
                                                                    : NULL;
}

ucp_ep_h ucx_net_endpoint(ucx_net_t *net, int rank)
{
    ucx_peer_t *peer = &net->peers[rank];
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = peer->address,
        .err_mode = peer->local ? UCP_ERR_HANDLING_MODE_NONE
                                : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = endpoint_broken, .arg = peer},
    };
    ucs_status_t status;

    check(rank != net->base->rank && rank >= 0 && rank < net->base->size,
          "rank %d of %d sends to rank %d", net->base->rank, net->base->size,
          rank);
    if (peer->endpoint != NULL)
        return peer->endpoint;
    status = ucp_ep_create(net->worker, &params, &peer->endpoint);
    if (status == UCS_OK) {
        watch_connected(net->watch, rank);
        route_note(net, rank, peer->endpoint);
    } else {
        peer->endpoint = NULL;
        endpoint_failed(net, rank, status);
    }
    return peer->endpoint;
}

/* An error counts as held, too: then the next driver is told of the peer. */
bool ucx_net_holds(ucx_net_t *net)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t answer = ucp_worker_flush_nbx(net->worker, &param);

    if (answer != NULL && !UCS_PTR_IS_ERR(answer))
        ucp_request_free(answer); /* the flush ends by itself */
    return answer != NULL;
}

/* ---- requests ------------------------------------------------------------ */

bool ucx_request_early(ucx_request_t *request)
{
    check(!request->early, "a request with rank %d completes twice",
          request->peer);
    request->early = !request->posted;
    return request->early;
}

bool ucx_request_posted(ucx_request_t *request)
{
    request->posted = !request->early;
    return request->posted;
}

/* UCX uses the memory again without clearing it, so it is cleared here. */
void ucx_request_free(ucx_request_t *request)
{
    request->posted = request->early = false;
    ucp_request_free(request);
}
