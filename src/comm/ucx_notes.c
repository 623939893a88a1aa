/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Notes between comm threads: beats, faults, leaving. A rank beats for its
 * neighbours: all ranks of a small group, those at distances 1, 2, 4 ... of a
 * large one. News of a fault goes to all neighbours, who pass it on once: so
 * all know it within log2(size) hops, whoever has died on the way.
 *
 * Per peer one note is on its way at most; further ones are wishes (a bit per
 * kind) and are filled in when they are sent. So a peer that takes nothing
 * costs one small message, and nothing is allocated.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "comm/ucx_group.h"

/* Up to this size every rank is everybody's neighbour. */
#define NEIGHBOURS_ALL 32

/* ---- faults -------------------------------------------------------------- */

void ucx_group_fail(ucx_group_t *group, const err_t *fault)
{
    pthread_mutex_lock(&group->lock);
    if (!atomic_load(&group->failed)) {
        group->fault = *fault;
        atomic_store(&group->failed, true);
    }
    pthread_mutex_unlock(&group->lock);
}

/* What this rank has been waiting for, of the collectives that are under way;
 * an empty text if nothing. */
static void waited_for(ucx_group_t *group, char *text, size_t bytes)
{
    const char *phase = atomic_load(&group->phase);
    uint64_t oldest = ucx_group_finished(group);
    const ucx_work_t *work = NULL;

    text[0] = '\0';
    if (oldest >= atomic_load(&group->submitted))
        return;
    for (int i = 0; i < UCX_ACTIVE; i++)
        if (group->active[i].work != NULL &&
            group->active[i].work->number == oldest)
            work = group->active[i].work;
    snprintf(text, bytes,
             "; rank %d waits in %s, step %" PRId64 ", for %s %" PRIu64,
             comm_rank_name(&group->base, group->base.rank),
             phase == NULL ? "start" : phase, atomic_load(&group->step),
             work == NULL ? "collective" : comm_kind_name(work->request.kind),
             oldest);
}

void ucx_group_blame(ucx_group_t *group, int culprit, const char *reason)
{
    const char *host = group->base.hellos[culprit].host;
    const liveness_beat_t *last = &group->liveness.peers[culprit].last;
    int name = comm_rank_name(&group->base, culprit);
    err_t fault = ERR_INIT;
    char waiting[128];

    waited_for(group, waiting, sizeof waiting);
    err_set_peer(&fault, name, host,
                 "rank %d on %s %s (it last reported step %" PRId64 ", %s%s)",
                 name, host, reason, last->step,
                 last->phase[0] != '\0' ? last->phase : "no phase yet",
                 waiting);
    ucx_group_fail(group, &fault);
}

uint64_t ucx_group_finished(ucx_group_t *group)
{
    double since;
    uint64_t oldest = atomic_load(&group->submitted);
    uint64_t node = ucx_node_oldest(group, &since);

    if (group->taken < atomic_load(&group->queued))
        oldest = group->queue[group->taken % COMM_WORKS_MAX]->number;
    if (node < oldest)
        oldest = node;

    for (int i = 0; i < UCX_ACTIVE; i++)
        if (group->active[i].work != NULL &&
            group->active[i].work->number < oldest)
            oldest = group->active[i].work->number;
    return oldest;
}

void ucx_left_check(ucx_group_t *group)
{
    double since;
    uint64_t node;

    if (group->left_rank < 0)
        return;
    node = ucx_node_oldest(group, &since);
    if (node != UINT64_MAX && node >= group->left_finished)
        ucx_group_blame(group, group->left_rank, "left the group early");
    for (int i = 0; i < UCX_ACTIVE; i++)
        if (group->active[i].work != NULL &&
            group->active[i].work->number >= group->left_finished)
            ucx_group_blame(group, group->left_rank, "left the group early");
}

/* ---- sending ------------------------------------------------------------- */

static void note_fill(ucx_group_t *group, ucx_note_t *note, int kind)
{
    const char *phase = atomic_load(&group->phase);
    double polled = clock_now() - atomic_load(&group->polled);

    memset(note, 0, sizeof *note);
    note->kind = kind;
    note->from = group->base.rank;
    note->culprit = -1;
    note->beat.entered = atomic_load(&group->submitted);
    note->beat.finished = ucx_group_finished(group);
    note->beat.progress = atomic_load(&group->progress);
    note->beat.step = atomic_load(&group->step);
    note->beat.waiting = atomic_load(&group->waiting) > 0 ||
                         polled < 2 * liveness_interval(group->base.timeout);
    if (phase != NULL)
        snprintf(note->beat.phase, sizeof note->beat.phase, "%s", phase);
    if (kind == NOTE_CALL)
        note->call = group->calls.mine;
    if (kind != NOTE_FAULT)
        return;
    pthread_mutex_lock(&group->lock);
    note->culprit = group->fault.culprit;
    note->code = (int32_t)group->fault.code;
    snprintf(note->text, sizeof note->text, "%.*s", UCX_NOTE_TEXT - 1,
             group->fault.text);
    pthread_mutex_unlock(&group->lock);
}

static void note_sent(void *request, ucs_status_t status, void *argument)
{
    ucx_peer_t *peer = argument;

    (void)status; /* a broken connection is told by the endpoint */
    if (ucx_request_early(request))
        return;
    peer->sending = false;
    if (peer->wanted != 0)
        peer->group->notes_due = true;
    ucx_request_free(request);
}

static void note_post(ucx_group_t *group, int rank, int kind)
{
    ucx_peer_t *peer = &group->peers[rank];
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = note_sent,
                                 .user_data = peer};
    ucp_ep_h endpoint = ucx_net_endpoint(group, rank);
    ucs_status_ptr_t answer;

    peer->wanted &= ~(1u << kind);
    if (endpoint == NULL)
        return;
    note_fill(group, &peer->note, kind);
    answer = ucp_tag_send_nbx(endpoint, &peer->note, sizeof peer->note,
                              UCX_TAG_KIND(UCX_TAG_NOTE), &param);
    if (UCS_PTR_IS_ERR(answer))
        ucx_peer_lost(group, rank);
    else if (answer != NULL && ucx_request_posted(answer))
        peer->sending = true;
    else if (answer != NULL)
        ucx_request_free(answer);
}

void ucx_notes_send(ucx_group_t *group)
{
    static const ucx_note_kind_t order[] = {NOTE_FAULT, NOTE_BYE, NOTE_ACK,
                                            NOTE_CALL, NOTE_BEAT};

    if (!group->notes_due)
        return;
    group->notes_due = false;
    for (int rank = 0; rank < group->base.size; rank++) {
        ucx_peer_t *peer = &group->peers[rank];

        for (size_t i = 0; i < sizeof order / sizeof *order; i++)
            if (peer->wanted & 1u << order[i] && !peer->sending &&
                group->liveness.peers[rank].lost <= 0)
                note_post(group, rank, (int)order[i]);
    }
}

void ucx_notes_want(ucx_group_t *group, ucx_note_kind_t kind)
{
    for (int rank = 0; rank < group->base.size; rank++) {
        ucx_peer_t *peer = &group->peers[rank];

        /* Good-byes also go to those who may watch a connection to us. */
        if (rank == group->base.rank || group->liveness.peers[rank].left)
            continue;
        if (peer->neighbour || (kind == NOTE_BYE && peer->endpoint != NULL))
            peer->wanted |= 1u << kind;
    }
    group->notes_due = true;
}

/* ---- receiving ----------------------------------------------------------- */

static void heard_fault(ucx_group_t *group, const ucx_note_t *note)
{
    int culprit = comm_rank_find(&group->base, note->culprit);
    err_t fault = ERR_INIT;

    err_set(&fault, (err_code_t)note->code, "%.*s", UCX_NOTE_TEXT - 1,
            note->text);
    if (culprit >= 0) {
        fault.culprit = note->culprit;
        snprintf(fault.host, sizeof fault.host, "%s",
                 group->base.hellos[culprit].host);
    }
    ucx_group_fail(group, &fault);
}

static void heard_bye(ucx_group_t *group, const ucx_note_t *note)
{
    ucx_peer_t *peer = &group->peers[note->from];

    group->liveness.peers[note->from].left = true;
    group->liveness.peers[note->from].parted = true;
    /* Our own good-bye answers as well as an acknowledgement does. */
    peer->wanted =
        group->farewell ? peer->wanted & 1u << NOTE_BYE : 1u << NOTE_ACK;
    group->notes_due = true;
    if (group->left_rank < 0 || note->beat.finished < group->left_finished) {
        group->left_rank = note->from;
        group->left_finished = note->beat.finished;
    }
    ucx_left_check(group);
}

static void note_heard(ucx_group_t *group, const ucx_note_t *note)
{
    if (note->from < 0 || note->from >= group->base.size)
        return;
    liveness_heard(&group->liveness, note->from, &note->beat, clock_now());
    switch (note->kind) {
    case NOTE_FAULT:
        heard_fault(group, note);
        break;
    case NOTE_BYE:
        heard_bye(group, note);
        break;
    case NOTE_CALL:
        ucx_calls_heard(group, note->from, &note->call);
        break;
    case NOTE_ACK:
        group->liveness.peers[note->from].parted = true;
        break;
    default:
        break;
    }
}

static void inbox_post(ucx_inbox_t *inbox);

static void inbox_filled(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *argument)
{
    ucx_inbox_t *inbox = argument;

    (void)info;
    if (ucx_request_early(request))
        return;
    ucx_request_free(request);
    inbox->request = NULL;
    if (status == UCS_OK)
        note_heard(inbox->group, &inbox->note);
    if (status != UCS_ERR_CANCELED)
        inbox_post(inbox);
}

static void inbox_post(ucx_inbox_t *inbox)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.recv = inbox_filled,
                                 .user_data = inbox};
    ucs_status_ptr_t answer;

    for (;;) {
        answer = ucp_tag_recv_nbx(
            inbox->group->worker, &inbox->note, sizeof inbox->note,
            UCX_TAG_KIND(UCX_TAG_NOTE), UCX_TAG_KIND_MASK, &param);
        if (UCS_PTR_IS_ERR(answer))
            return;
        if (answer != NULL && ucx_request_posted(answer))
            break;
        if (answer != NULL) /* it had come already, as with NULL */
            ucx_request_free(answer);
        note_heard(inbox->group, &inbox->note);
    }
    inbox->request = answer;
}

/* ---- open and close ------------------------------------------------------ */

void ucx_notes_open(ucx_group_t *group)
{
    int size = group->base.size, rank = group->base.rank;

    for (int distance = 1; distance < size;
         distance = size <= NEIGHBOURS_ALL ? distance + 1 : distance * 2) {
        int right = (rank + distance) % size;
        int left = (rank - distance + size) % size;

        group->peers[right].neighbour = group->peers[left].neighbour = true;
    }
    for (int i = 0; i < size; i++)
        group->liveness.peers[i].watched = group->peers[i].neighbour;
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

bool ucx_notes_sending(const ucx_group_t *group)
{
    for (int rank = 0; rank < group->base.size; rank++)
        if (group->peers[rank].sending)
            return true;
    return false;
}

bool ucx_notes_idle(const ucx_group_t *group)
{
    int culprit = comm_rank_find(&group->base, group->fault.culprit);

    for (int rank = 0; rank < group->base.size; rank++) {
        const liveness_peer_t *state = &group->liveness.peers[rank];

        if (state->lost > 0 || state->left || rank == culprit)
            continue;
        if (group->peers[rank].sending || group->peers[rank].wanted != 0)
            return false;
    }
    return true;
}

bool ucx_notes_parted(const ucx_group_t *group)
{
    for (int rank = 0; rank < group->base.size; rank++) {
        const liveness_peer_t *state = &group->liveness.peers[rank];
        const ucx_peer_t *peer = &group->peers[rank];
        bool told = peer->neighbour || peer->endpoint != NULL;

        if (rank == group->base.rank || !told || state->lost > 0)
            continue;
        if (!state->parted || peer->sending || peer->wanted != 0)
            return false;
    }
    return true;
}

/* ---- deadlines ----------------------------------------------------------- */

/* Number and start of the oldest collective that is not done; *waited: the
 * comm thread or the owner is at it. UINT64_MAX: there is none. */
static uint64_t oldest_work(ucx_group_t *group, double *since, bool *waited)
{
    uint64_t oldest = ucx_node_oldest(group, since);

    *waited = oldest != UINT64_MAX && atomic_load(&group->waiting) > 0;
    for (int i = 0; i < UCX_ACTIVE; i++) {
        const ucx_work_t *work = group->active[i].work;

        if (work == NULL)
            continue;
        *waited = true;
        if (work->number < oldest) {
            oldest = work->number;
            *since = work->started;
        }
    }
    return oldest;
}

/* Every rank is well and has entered, but nothing moves: nobody can be named.
 * Twice the timeout, so that a nameable culprit is named first. */
static void stall_check(ucx_group_t *group, uint64_t oldest, bool waited,
                        double now)
{
    uint64_t moves = group->moves + atomic_load(&group->node.moves);
    err_t fault = ERR_INIT;

    if (!waited || moves != group->moved) {
        group->moved = moves;
        group->moved_at = now;
        return;
    }
    if (now - group->moved_at < 2 * group->base.timeout)
        return;
    for (int rank = 0; rank < group->base.size; rank++)
        if (group->peers[rank].neighbour &&
            group->liveness.peers[rank].last.entered <= oldest)
            return; /* it reports progress; the others have to wait */
    err_set_peer(&fault, -1, NULL,
                 "collective %" PRIu64 " moved no data for %g s although all "
                 "ranks take part: check the network, and that either all "
                 "buffers lie in an arena or none",
                 oldest, now - group->moved_at);
    ucx_group_fail(group, &fault);
}

/* This process did not run for a while: nobody may be blamed for that. */
static void clocks_reset(ucx_group_t *group, double now)
{
    group->moved_at = now;
    for (int i = 0; i < UCX_ACTIVE; i++)
        if (group->active[i].work != NULL)
            group->active[i].work->started = now;
    for (int i = 0; i < COMM_WORKS_MAX; i++)
        if (atomic_load(&group->works[i].node) != 0)
            atomic_store(&group->works[i].node_since, now);
}

double ucx_notes_tick(ucx_group_t *group, double now)
{
    const char *reason = NULL;
    double since = now;
    bool waited;
    uint64_t oldest;
    int culprit;

    if (liveness_tick(&group->liveness, now))
        clocks_reset(group, now);
    oldest = oldest_work(group, &since, &waited);
    if (now >= group->beat_at) {
        group->beat_at = now + liveness_interval(group->base.timeout);
        ucx_notes_want(group, NOTE_BEAT);
    }
    culprit = liveness_suspect(&group->liveness, oldest, since, now, &reason);
    if (culprit >= 0)
        ucx_group_blame(group, culprit, reason);
    ucx_left_check(group);
    stall_check(group, oldest, waited, now);
    if (atomic_load(&group->failed))
        return group->beat_at;
    return ucx_calls_tick(group, now,
                          liveness_look(&group->liveness, group->beat_at));
}
