/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/node/node_place.h"

#include "base/check.h"
#include "base/mem.h"

bool node_place_together(const char *sees, int size, int a, int b)
{
    return a == b || (sees[a * size + b] && sees[b * size + a]);
}

/* Set leaders[rank] to the lowest rank on its node. */
static void leaders_find(const char *sees, int size, int *leaders)
{
    for (int rank = 0; rank < size; rank++) {
        leaders[rank] = rank;
        for (int other = 0; other < leaders[rank]; other++)
            if (node_place_together(sees, size, rank, other))
                leaders[rank] = other;
    }
}

/* Fill place->order and place->first, and find the place of this rank in
 * them. */
static void ranks_sort(const int *leaders, int size, int rank,
                       node_place_t *place)
{
    int sorted = 0;

    for (int leader = 0; leader < size; leader++) {
        if (leaders[leader] != leader)
            continue;
        place->first[place->nodes] = sorted;
        for (int other = leader; other < size; other++) {
            if (leaders[other] != leader)
                continue;
            if (other == rank) {
                place->here = place->nodes;
                place->local = sorted - place->first[place->nodes];
            }
            place->order[sorted++] = other;
        }
        place->first[++place->nodes] = sorted;
    }
}

static bool nodes_are_whole(const char *sees, const int *leaders, int size)
{
    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++)
            if (node_place_together(sees, size, a, b) !=
                (leaders[a] == leaders[b]))
                return false;
    return true;
}

err_code_t node_place_open(const char *sees, int size, int rank,
                           node_place_t *out, err_t *err)
{
    node_place_t place = {.least = size};
    int *leaders;
    err_code_t rc =
        mem_new(int, (size_t)(3 * size + 1), "comm places", &place.order, err);

    if (rc != ERR_OK)
        return rc;
    place.first = place.order + size;
    leaders = place.first + size + 1;
    leaders_find(sees, size, leaders);
    place.whole = nodes_are_whole(sees, leaders, size);
    ranks_sort(leaders, size, rank, &place);
    for (int node = 0; node < place.nodes; node++)
        if (node_place_count(&place, node) < place.least)
            place.least = node_place_count(&place, node);
    place.count = node_place_count(&place, place.here);
    check(!place.whole ||
              (place.first[place.nodes] == size &&
               place.order[place.first[place.here] + place.local] == rank),
          "rank %d of %d is local rank %d of node %d", rank, size, place.local,
          place.here);
    *out = place;
    return ERR_OK;
}

void node_place_close(node_place_t *place)
{
    mem_free(place->order);
}

int node_place_count(const node_place_t *place, int node)
{
    check(node >= 0 && node < place->nodes, "node %d of %d", node,
          place->nodes);
    return place->first[node + 1] - place->first[node];
}

int node_place_rank(const node_place_t *place, int node, int local)
{
    check(local >= 0 && local < node_place_count(place, node),
          "local rank %d of %d", local, node_place_count(place, node));
    return place->order[place->first[node] + local];
}
