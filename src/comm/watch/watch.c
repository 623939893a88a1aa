/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* A watch: sends and handles notes, checks deadlines, writes the messages about
 * faults. See watch.h. */
#include "comm/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "comm/watch/watch_priv.h"

/* In groups of up to this size each rank is a neighbour of all others. */
#define NEIGHBOURS_ALL 32

/* ---- open and close ------------------------------------------------------ */

static void neighbours_choose(watch_t *watch)
{
    int size = watch->config.size, rank = watch->config.rank;

    for (int distance = 1; distance < size;
         distance = size <= NEIGHBOURS_ALL ? distance + 1 : distance * 2) {
        int right = (rank + distance) % size;
        int left = (rank - distance + size) % size;

        watch->peers[right].neighbour = watch->peers[left].neighbour = true;
    }
    for (int i = 0; i < size; i++)
        watch->liveness.peers[i].watched = watch->peers[i].neighbour;
    check(!watch->peers[rank].neighbour, "rank %d of %d watches itself", rank,
          size);
}

err_code_t watch_open(const watch_config_t *config, double now, watch_t **out,
                      err_t *err)
{
    watch_t *watch;
    err_code_t rc = mem_new(watch_t, 1, "comm watch", &watch, err);

    if (rc != ERR_OK)
        return rc;
    watch->config = *config;
    watch->left_rank = -1;
    watch->moved_at = watch->device_at = now;
    watch->fault = (err_t)ERR_INIT;
    rc = mem_new(watch_peer_t, (size_t)config->size, "comm peers",
                 &watch->peers, err);
    if (rc == ERR_OK)
        rc = liveness_open(config->rank, config->size, config->timeout, now,
                           &watch->liveness, err);
    if (rc != ERR_OK) {
        watch_close(watch);
        return rc;
    }
    neighbours_choose(watch);
    *out = watch;
    return ERR_OK;
}

void watch_close(watch_t *watch)
{
    if (watch == NULL)
        return;
    liveness_close(&watch->liveness);
    mem_free(watch->peers);
    mem_free(watch);
}

/* ---- faults -------------------------------------------------------------- */

/* The rank that is called [name] in faults; -1: none. */
static int name_find(const watch_t *watch, int name)
{
    for (int rank = 0; rank < watch->config.size; rank++)
        if (watch->config.hellos[rank].name == name)
            return rank;
    return -1;
}

static watch_view_t view_of(const watch_t *watch)
{
    watch_view_t view = {.oldest = WATCH_NONE, .newest = WATCH_NONE};

    watch->config.view(watch->config.context, &view);
    check((view.oldest == WATCH_NONE) == (view.newest == WATCH_NONE) &&
              view.oldest <= view.newest,
          "collectives %llu to %llu are under way",
          (unsigned long long)view.oldest, (unsigned long long)view.newest);
    check(view.finished <= view.started && view.finished <= view.oldest,
          "%llu collectives are finished of %llu, and %llu is under way",
          (unsigned long long)view.finished, (unsigned long long)view.started,
          (unsigned long long)view.oldest);
    return view;
}

/* Describe what this rank has been waiting for; an empty text if it does not
 * wait. */
static void waited_for(const watch_t *watch, const watch_view_t *view,
                       char *text, size_t bytes)
{
    text[0] = '\0';
    if (view->finished >= view->started)
        return;
    snprintf(text, bytes,
             "; rank %d waits in %s, step %" PRId64 ", for %s %" PRIu64,
             watch_name(watch, watch->config.rank),
             view->phase == NULL ? "start" : view->phase, view->step,
             view->kind == NULL ? "collective" : view->kind, view->finished);
}

/* Fail because of rank [culprit], which did what [reason] says ("died"). */
static void blame(watch_t *watch, const watch_view_t *view, int culprit,
                  const char *reason)
{
    const char *host = watch_host(watch, culprit);
    const watch_beat_t *last = &watch->liveness.peers[culprit].last;
    int name = watch_name(watch, culprit);
    err_t fault = ERR_INIT;
    char waiting[128];

    waited_for(watch, view, waiting, sizeof waiting);
    err_set_peer(&fault, name, host,
                 "rank %d on %s %s (it last reported step %" PRId64 ", %s%s)",
                 name, host, reason, last->step,
                 last->phase[0] != '\0' ? last->phase : "no phase yet",
                 waiting);
    watch_fail(watch, &fault);
}

/* ---- sending ------------------------------------------------------------- */

static void note_fill(const watch_t *watch, watch_note_t *note,
                      watch_kind_t kind)
{
    watch_view_t view = view_of(watch);

    memset(note, 0, sizeof *note);
    note->kind = (int32_t)kind;
    note->from = watch->config.rank;
    note->culprit = -1;
    note->beat.entered = view.started;
    note->beat.finished = view.finished;
    note->beat.progress = view.progress;
    note->beat.step = view.step;
    note->beat.waiting = view.waiting;
    note->beat.begun = view.device.begun;
    note->beat.ended = view.device.ended;
    if (view.phase != NULL)
        snprintf(note->beat.phase, sizeof note->beat.phase, "%s", view.phase);
    if (kind == WATCH_CALL)
        note->call = watch->mine;
    if (kind != WATCH_FAULT)
        return;
    note->culprit = watch->fault.culprit;
    note->code = (int32_t)watch->fault.code;
    snprintf(note->text, sizeof note->text, "%.*s", WATCH_TEXT_MAX - 1,
             watch->fault.text);
}

static void note_send(watch_t *watch, int rank, watch_kind_t kind)
{
    watch_peer_t *peer = &watch->peers[rank];

    check(!peer->sending && rank != watch->config.rank,
          "rank %d sends rank %d a note of kind %d while one is being sent",
          watch->config.rank, rank, (int)kind);
    check(kind != WATCH_FAULT || watch->fault.code != ERR_OK,
          "rank %d tells rank %d of a fault that it does not know",
          watch->config.rank, rank);
    peer->wanted &= ~(1u << kind);
    note_fill(watch, &peer->note, kind);
    peer->sending =
        watch->config.send(watch->config.context, rank, &peer->note);
}

void watch_send(watch_t *watch)
{
    static const watch_kind_t order[] = {WATCH_FAULT, WATCH_BYE, WATCH_ACK,
                                         WATCH_CALL, WATCH_BEAT};

    if (!watch->notes_due)
        return;
    watch->notes_due = false;
    check(watch->peers[watch->config.rank].wanted == 0,
          "rank %d wants to send itself notes %x", watch->config.rank,
          watch->peers[watch->config.rank].wanted);
    for (int rank = 0; rank < watch->config.size; rank++) {
        watch_peer_t *peer = &watch->peers[rank];

        for (size_t i = 0; i < sizeof order / sizeof *order; i++)
            if (peer->wanted & 1u << order[i] && !peer->sending &&
                watch->liveness.peers[rank].lost <= 0)
                note_send(watch, rank, order[i]);
    }
}

void watch_sent(watch_t *watch, int rank)
{
    watch_peer_t *peer = &watch->peers[rank];

    check(peer->sending, "no note was being sent to rank %d", rank);
    peer->sending = false;
    if (peer->wanted != 0)
        watch->notes_due = true;
}

bool watch_has_notes(const watch_t *watch)
{
    return watch->notes_due;
}

/* ---- hearing ------------------------------------------------------------- */

static void hear_fault(watch_t *watch, const watch_note_t *note)
{
    int culprit = name_find(watch, note->culprit);
    err_t fault = ERR_INIT;

    err_set(&fault, (err_code_t)note->code, "%.*s", WATCH_TEXT_MAX - 1,
            note->text);
    if (culprit >= 0) {
        fault.culprit = note->culprit;
        snprintf(fault.host, sizeof fault.host, "%s",
                 watch_host(watch, culprit));
    }
    watch_fail(watch, &fault);
}

static void hear_bye(watch_t *watch, const watch_note_t *note)
{
    watch_peer_t *peer = &watch->peers[note->from];

    watch->liveness.peers[note->from].left = true;
    watch->liveness.peers[note->from].parted = true;
    /* If this rank leaves, too, its own good-bye serves as the
     * acknowledgement. */
    peer->wanted =
        watch->leaving ? peer->wanted & 1u << WATCH_BYE : 1u << WATCH_ACK;
    watch->notes_due = true;
    if (watch->left_rank < 0 || note->beat.finished < watch->left_finished) {
        watch->left_rank = note->from;
        watch->left_finished = note->beat.finished;
    }
    watch_check_left(watch);
}

void watch_hear(watch_t *watch, const watch_note_t *note, double now)
{
    if (note->from < 0 || note->from >= watch->config.size)
        return;
    liveness_heard(&watch->liveness, note->from, &note->beat, now);
    switch (note->kind) {
    case WATCH_FAULT:
        hear_fault(watch, note);
        break;
    case WATCH_BYE:
        hear_bye(watch, note);
        break;
    case WATCH_CALL:
        watch_calls_hear(watch, note->from, &note->call);
        break;
    case WATCH_ACK:
        watch->liveness.peers[note->from].parted = true;
        break;
    default:
        break;
    }
}

/* ---- events -------------------------------------------------------------- */

void watch_connected(watch_t *watch, int rank)
{
    watch->peers[rank].connected = true;
}

void watch_lost(watch_t *watch, int rank, double now)
{
    liveness_lost(&watch->liveness, rank, now);
    watch->tick_at = 0;
}

bool watch_is_neighbour(const watch_t *watch, int rank)
{
    return watch->peers[rank].neighbour;
}

double watch_last_beat(const watch_t *watch, int rank)
{
    return watch->liveness.peers[rank].heard;
}

/* ---- the end ------------------------------------------------------------- */

void watch_tell(watch_t *watch, const err_t *fault)
{
    check(watch->fault.code == ERR_OK && fault->code != ERR_OK,
          "a fault of code %d is told after one of code %d", (int)fault->code,
          (int)watch->fault.code);
    watch->failed = true;
    watch->fault = *fault;
    watch_want(watch, WATCH_FAULT);
}

bool watch_has_told(const watch_t *watch)
{
    int culprit = name_find(watch, watch->fault.culprit);

    for (int rank = 0; rank < watch->config.size; rank++) {
        const liveness_peer_t *state = &watch->liveness.peers[rank];

        if (state->lost > 0 || state->left || rank == culprit)
            continue;
        if (watch->peers[rank].sending || watch->peers[rank].wanted != 0)
            return false;
    }
    return true;
}

void watch_leave(watch_t *watch)
{
    if (watch->leaving)
        return;
    watch->leaving = true;
    watch_want(watch, WATCH_BYE);
}

bool watch_has_left(const watch_t *watch)
{
    for (int rank = 0; rank < watch->config.size; rank++) {
        const liveness_peer_t *state = &watch->liveness.peers[rank];
        const watch_peer_t *peer = &watch->peers[rank];
        bool told = peer->neighbour || peer->connected;

        check(!state->left || state->parted, "rank %d left and may write",
              rank);
        if (rank == watch->config.rank || !told || state->lost > 0)
            continue;
        if (!state->parted || peer->sending || peer->wanted != 0)
            return false;
    }
    return true;
}

bool watch_is_sending(const watch_t *watch)
{
    for (int rank = 0; rank < watch->config.size; rank++)
        if (watch->peers[rank].sending)
            return true;
    return false;
}

/* ---- deadlines ----------------------------------------------------------- */

static void left_check(watch_t *watch, const watch_view_t *view)
{
    if (watch->left_rank >= 0 && view->newest != WATCH_NONE &&
        view->newest >= watch->left_finished)
        blame(watch, view, watch->left_rank, "left the group early");
}

void watch_check_left(watch_t *watch)
{
    watch_view_t view;

    if (watch->left_rank < 0)
        return;
    view = view_of(watch);
    left_check(watch, &view);
}

/* Fail if nothing moves although every rank is well and takes part, so that no
 * rank can be blamed. This needs twice the timeout: if a rank can be blamed,
 * that is found earlier. */
static void stall_check(watch_t *watch, const watch_view_t *view, double now)
{
    err_t fault = ERR_INIT;

    if (!view->driven || view->moves != watch->moved) {
        watch->moved = view->moves;
        watch->moved_at = now;
        return;
    }
    if (now - watch->moved_at < 2 * watch->config.timeout)
        return;
    for (int rank = 0; rank < watch->config.size; rank++)
        if (watch->peers[rank].neighbour &&
            watch->liveness.peers[rank].last.entered <= view->oldest)
            /* It makes progress elsewhere: the others have to wait for it. */
            return;
    err_set_peer(&fault, -1, NULL,
                 "collective %" PRIu64 " moved no data for %g s although all "
                 "ranks take part: check the network, and that either all "
                 "buffers lie in an arena or none",
                 view->oldest, now - watch->moved_at);
    watch_fail(watch, &fault);
}

/* Check all deadlines. Returns the instant of the next check. */
static double deadlines_look(watch_t *watch, double now)
{
    const char *reason = NULL;
    watch_view_t view;
    int culprit;

    /* If this process did not run, no rank may be blamed. */
    if (liveness_tick(&watch->liveness, now)) {
        watch->moved_at = watch->device_at = now;
        watch->config.resumed(watch->config.context, now);
    }
    view = view_of(watch);
    if (now >= watch->beat_at) {
        watch->beat_at = now + watch_interval(watch->config.timeout);
        watch_want(watch, WATCH_BEAT);
    }
    culprit = liveness_suspect(&watch->liveness, view.oldest, view.since, now,
                               &reason);
    if (culprit >= 0)
        blame(watch, &view, culprit, reason);
    left_check(watch, &view);
    stall_check(watch, &view, now);
    watch_device_check(watch, &view, now);
    if (watch->failed)
        return watch->beat_at;
    return watch_calls_tick(watch, &view, now,
                            liveness_look(&watch->liveness, watch->beat_at));
}

void watch_tick(watch_t *watch, double now)
{
    if (now >= watch->tick_at)
        watch->tick_at = deadlines_look(watch, now);
}

double watch_due(const watch_t *watch)
{
    return watch->notes_due ? 0 : watch->tick_at;
}
