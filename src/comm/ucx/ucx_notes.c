/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* The notes of a group's watch (watch.h) are sent and received over UCX. All of
 * this is for the driver. */
#include "base/check.h"
#include "base/clock.h"
#include "comm/ucx/ucx_group.h"

/* ---- sending ------------------------------------------------------------- */

static void note_sent(void *request, ucs_status_t status, void *argument)
{
    ucx_peer_t *peer = argument;
    ucx_group_t *group = peer->group;

    (void)status; /* the endpoint tells of a broken connection */
    if (ucx_request_early(request))
        return;
    ucx_request_free(request);
    watch_sent(group->watch, (int)(peer - group->peers));
}

bool ucx_notes_send(void *context, int rank, const watch_note_t *note)
{
    ucx_group_t *group = context;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = note_sent,
                                 .user_data = &group->peers[rank]};
    ucp_ep_h endpoint = ucx_net_endpoint(group, rank);
    ucs_status_ptr_t answer;

    if (endpoint == NULL)
        return false;
    answer = ucp_tag_send_nbx(endpoint, note, sizeof *note,
                              UCX_TAG_KIND(UCX_TAG_NOTE), &param);
    if (UCS_PTR_IS_ERR(answer))
        ucx_group_lost(group, rank);
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
        watch_hear(inbox->group->watch, &inbox->note, clock_now());
    if (status != UCS_ERR_CANCELED)
        inbox_post(inbox);
}

static void inbox_post(ucx_inbox_t *inbox)
{
    ucx_group_t *group = inbox->group;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = inbox_filled,
                                 .user_data = inbox};
    ucs_status_ptr_t answer;

    for (;;) {
        answer = ucp_tag_recv_nbx(
            group->worker, &inbox->note, sizeof inbox->note,
            UCX_TAG_KIND(UCX_TAG_NOTE), UCX_TAG_KIND_MASK, &param);
        if (UCS_PTR_IS_ERR(answer))
            return;
        if (answer != NULL && ucx_request_posted(answer))
            break;
        if (answer != NULL) /* the note had come already, as with NULL */
            ucx_request_free(answer);
        watch_hear(group->watch, &inbox->note, clock_now());
    }
    inbox->request = answer;
}

/* ---- open and close ------------------------------------------------------ */

void ucx_notes_open(ucx_group_t *group)
{
    for (int i = 0; i < UCX_INBOXES; i++) {
        group->inboxes[i].group = group;
        inbox_post(&group->inboxes[i]);
    }
}

void ucx_notes_close(ucx_group_t *group)
{
    for (int i = 0; i < UCX_INBOXES; i++)
        if (group->inboxes[i].request != NULL)
            ucp_request_cancel(group->worker, group->inboxes[i].request);
    ucp_worker_progress(group->worker);
}
