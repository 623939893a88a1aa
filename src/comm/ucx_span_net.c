/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * The stage between nodes: a segment is all-reduced by its owners, one per
 * node, who are numbered as the nodes are.
 *
 * Recursive doubling and Rabenseifner's algorithm (Thakur, Rabenseifner, Gropp,
 * "Optimization of collective communication operations in MPICH", IJHPCA 2005)
 * share their frame: nodes beyond the largest power of two are folded, that is,
 * of the first 2 * rest nodes each even one gives its data to the next odd one
 * and gets the result in the end; the others are renumbered 0 .. power-1.
 * Doubling then exchanges the whole segment at distance 1, 2, 4 ...; partners
 * compute (lower) op (upper), so all of a block hold the same bits. Halving
 * exchanges halves at distance power/2 ... 1, until each number holds one part
 * of the total, and hands the parts back at distance 1 ... power/2: each
 * element is computed in one place.
 *
 * The ring is cut in as many chunks as there are nodes; see ucx_ring.c.
 */
#include "comm/ucx_group.h"
#include "comm/ucx_span.h"

enum { BEGIN, FOLDED, MET, HALVED, GATHERED, AWAIT, FINISHED };

typedef struct team {
    int size, self;  /* nodes; this one */
    int power, rest; /* size = power + rest */
    int number;      /* of this node among the power; -1: folded */
} team_t;

static team_t team_of(const ucx_group_t *group)
{
    team_t team = {.size = group->place.nodes, .self = group->place.here};

    team.power = 1;
    while (team.power * 2 <= team.size)
        team.power *= 2;
    team.rest = team.size - team.power;
    if (team.self >= 2 * team.rest)
        team.number = team.self - team.rest;
    else
        team.number = team.self % 2 ? team.self / 2 : -1;
    return team;
}

static int team_node(const team_t *team, int number)
{
    return number < team->rest ? 2 * number + 1 : number + team->rest;
}

/* ---- messages ------------------------------------------------------------ */

typedef struct range { /* elements of the segment */
    size_t begin, end;
} range_t;

static range_t whole_of(const ucx_lane_t *lane)
{
    return (range_t){.begin = 0, .end = lane->span.count};
}

static char *place_of(const ucx_lane_t *lane, range_t range)
{
    return lane->span.data + range.begin * comm_type_bytes(lane->request->type);
}

static size_t bytes_of(const ucx_lane_t *lane, range_t range)
{
    return (range.end - range.begin) * comm_type_bytes(lane->request->type);
}

/* The owner of this slice on [node]. */
static int owner_of(const ucx_lane_t *lane, int node)
{
    const node_place_t *place = &lane->group->place;

    return node_place_rank(place, node, place->local);
}

static void range_send(ucx_lane_t *lane, int node, range_t range)
{
    ucx_lane_send(lane, owner_of(lane, node), place_of(lane, range),
                  bytes_of(lane, range));
}

static void range_recv(ucx_lane_t *lane, int node, range_t range, void *into)
{
    ucx_lane_recv(lane, owner_of(lane, node), into, bytes_of(lane, range));
}

/* [range] op what has come for it. */
static void range_reduce(ucx_lane_t *lane, range_t range, bool theirs_first)
{
    const comm_request_t *what = lane->request;
    void *mine = place_of(lane, range), *theirs = lane->scratch;

    comm_reduce(mine, theirs_first ? theirs : mine,
                theirs_first ? mine : theirs, range.end - range.begin,
                what->type, what->op);
}

/* ---- doubling and halving ------------------------------------------------ */

/* What [number] holds after it halved at the distances down to [mask]. */
static range_t range_of(const ucx_lane_t *lane, const team_t *team, int number,
                        int mask)
{
    range_t range = whole_of(lane);

    for (int distance = team->power / 2; distance >= mask && distance > 0;
         distance /= 2) {
        size_t middle = range.begin + (range.end - range.begin) / 2;

        if (number & distance)
            range.begin = middle;
        else
            range.end = middle;
    }
    return range;
}

/* All of the power have the total: the folded nodes get it, too. */
static bool team_finish(ucx_lane_t *lane, const team_t *team)
{
    bool partner = team->self < 2 * team->rest;

    if (partner)
        range_send(lane, team->self - 1, whole_of(lane));
    lane->span.phase = FINISHED;
    return partner;
}

static bool double_next(ucx_lane_t *lane, const team_t *team)
{
    int mask = lane->span.mask;
    int node;

    if (mask >= team->power)
        return team_finish(lane, team);
    node = team_node(team, team->number ^ mask);
    range_recv(lane, node, whole_of(lane), lane->scratch);
    range_send(lane, node, whole_of(lane));
    lane->span.phase = MET;
    return true;
}

static bool gather_next(ucx_lane_t *lane, const team_t *team)
{
    int mask = lane->span.mask, partner = team->number ^ mask;
    range_t theirs;

    if (mask >= team->power)
        return team_finish(lane, team);
    theirs = range_of(lane, team, partner, mask);
    range_recv(lane, team_node(team, partner), theirs, place_of(lane, theirs));
    range_send(lane, team_node(team, partner),
               range_of(lane, team, team->number, mask));
    lane->span.phase = GATHERED;
    return true;
}

static bool halve_next(ucx_lane_t *lane, const team_t *team)
{
    int mask = lane->span.mask, partner = team->number ^ mask;

    if (mask == 0) {
        lane->span.mask = 1;
        return gather_next(lane, team);
    }
    range_recv(lane, team_node(team, partner),
               range_of(lane, team, team->number, mask), lane->scratch);
    range_send(lane, team_node(team, partner),
               range_of(lane, team, partner, mask));
    lane->span.phase = HALVED;
    return true;
}

/* The first exchange among the power. */
static bool team_begin(ucx_lane_t *lane, const team_t *team,
                       ucx_span_kind_t kind)
{
    lane->span.mask = kind == SPAN_DOUBLING ? 1 : team->power / 2;
    return kind == SPAN_DOUBLING ? double_next(lane, team)
                                 : halve_next(lane, team);
}

static bool fold_begin(ucx_lane_t *lane, const team_t *team,
                       ucx_span_kind_t kind)
{
    if (team->self >= 2 * team->rest)
        return team_begin(lane, team, kind);
    if (team->number < 0)
        range_send(lane, team->self + 1, whole_of(lane));
    else
        range_recv(lane, team->self - 1, whole_of(lane), lane->scratch);
    lane->span.phase = team->number < 0 ? AWAIT : FOLDED;
    return true;
}

static bool halved(ucx_lane_t *lane, const team_t *team)
{
    int mask = lane->span.mask;

    range_reduce(lane, range_of(lane, team, team->number, mask),
                 (team->number & mask) != 0);
    lane->span.mask = mask / 2;
    return halve_next(lane, team);
}

static bool power_step(ucx_lane_t *lane, const team_t *team,
                       ucx_span_kind_t kind)
{
    switch (lane->span.phase) {
    case BEGIN:
        return fold_begin(lane, team, kind);
    case FOLDED:
        range_reduce(lane, whole_of(lane), true);
        return team_begin(lane, team, kind);
    case MET:
        range_reduce(lane, whole_of(lane),
                     (team->number & lane->span.mask) != 0);
        lane->span.mask *= 2;
        return double_next(lane, team);
    case HALVED:
        return halved(lane, team);
    case GATHERED:
        lane->span.mask *= 2;
        return gather_next(lane, team);
    case AWAIT:
        range_recv(lane, team->self + 1, whole_of(lane), lane->span.data);
        lane->span.phase = FINISHED;
        return true;
    default:
        return false;
    }
}

/* ---- ring ---------------------------------------------------------------- */

static range_t ring_chunk(const ucx_lane_t *lane, const team_t *team,
                          int number)
{
    size_t size = (size_t)team->size;
    size_t which = (size_t)((number % team->size + team->size) % team->size);
    size_t count = lane->span.count;

    return (range_t){.begin = count * which / size,
                     .end = count * (which + 1) / size};
}

/* phase counts the turns: size-1 that reduce, then size-1 that hand on. */
static bool ring_step(ucx_lane_t *lane, const team_t *team)
{
    int size = team->size, self = team->self, turn = lane->span.phase++;
    bool reduces = turn < size - 1;
    range_t in, out;

    if (turn > 0 && turn < size)
        range_reduce(lane, ring_chunk(lane, team, self - turn), true);
    if (turn == 2 * size - 2)
        return false;
    if (!reduces)
        turn -= size;
    out = ring_chunk(lane, team, self - turn);
    in = ring_chunk(lane, team, self - turn - 1);
    range_recv(lane, (self - 1 + size) % size, in,
               reduces ? lane->scratch : place_of(lane, in));
    range_send(lane, (self + 1) % size, out);
    return true;
}

/* ---- both ---------------------------------------------------------------- */

void ucx_span_net_begin(ucx_lane_t *lane)
{
    lane->span.phase = BEGIN;
    lane->span.mask = 0;
}

bool ucx_span_net(ucx_group_t *group, ucx_lane_t *lane)
{
    team_t team = team_of(group);
    ucx_span_kind_t kind = lane->work->span.kind;

    return kind == SPAN_RING ? ring_step(lane, &team)
                             : power_step(lane, &team, kind);
}
