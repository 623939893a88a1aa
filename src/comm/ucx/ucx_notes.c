/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/ucx/ucx_notes.h"

#include "base/check.h"
#include "base/clock.h"

/* ---- sending ------------------------------------------------------------- */

static void note_sent(void *request, ucs_status_t status, void *argument)
{
    ucx_peer_t *peer = argument;
    ucx_net_t *net = peer->net;

    (void)status; /* the endpoint reports a broken connection */
    if (ucx_request_early(request))
        return;
    ucx_request_free(request);
    watch_sent(net->watch, (int)(peer - net->peers));
}

bool ucx_notes_send(ucx_net_t *net, int rank, const watch_note_t *note)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = note_sent,
                                 .user_data = &net->peers[rank]};
    ucp_ep_h endpoint = ucx_net_endpoint(net, rank);
    ucs_status_ptr_t answer;

    if (endpoint == NULL)
        return false;
    answer = ucp_tag_send_nbx(endpoint, note, sizeof *note,
                              UCX_TAG_KIND(UCX_TAG_NOTE), &param);
    if (UCS_PTR_IS_ERR(answer))
        ucx_net_lost(net, rank);
    else if (answer != NULL && ucx_request_posted(answer))
        return true;
    else if (answer != NULL)
        ucx_request_free(answer);
    return false;
}

/* ---- receiving ----------------------------------------------------------- */

static void inbox_post(ucx_inbox_t *inbox);

static void inbox_filled(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *argument)
{
    ucx_inbox_t *inbox = argument;

    (void)info;
    if (ucx_request_early(request))
        return;
    check(inbox->request == request, "a note comes to the inbox of another");
    ucx_request_free(request);
    inbox->request = NULL;
    if (status == UCS_OK)
        watch_hear(inbox->net->watch, &inbox->note, clock_now());
    if (status != UCS_ERR_CANCELED)
        inbox_post(inbox);
}

static void inbox_post(ucx_inbox_t *inbox)
{
    ucx_net_t *net = inbox->net;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = inbox_filled,
                                 .user_data = inbox};
    ucs_status_ptr_t answer;

    for (;;) {
        answer = ucp_tag_recv_nbx(net->worker, &inbox->note, sizeof inbox->note,
                                  UCX_TAG_KIND(UCX_TAG_NOTE), UCX_TAG_KIND_MASK,
                                  &param);
        if (UCS_PTR_IS_ERR(answer))
            return;
        if (answer != NULL && ucx_request_posted(answer))
            break;
        if (answer != NULL) /* complete already, too */
            ucx_request_free(answer);
        watch_hear(net->watch, &inbox->note, clock_now());
    }
    inbox->request = answer;
}

/* ---- open and close ------------------------------------------------------ */

void ucx_notes_open(ucx_net_t *net)
{
    for (int i = 0; i < UCX_INBOXES; i++) {
        net->inboxes[i].net = net;
        inbox_post(&net->inboxes[i]);
    }
}

void ucx_notes_close(ucx_net_t *net)
{
    for (int i = 0; i < UCX_INBOXES; i++)
        if (net->inboxes[i].request != NULL)
            ucp_request_cancel(net->worker, net->inboxes[i].request);
    ucp_worker_progress(net->worker);
}
