/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/node/node_place.h"

#include "base/mem.h"

bool node_place_mates(const char *sees, int size, int a, int b)
{
    return a == b || (sees[a * size + b] && sees[b * size + a]);
}

/* A node is called by its lowest rank. */
static void leaders_find(const char *sees, int size, int *leaders)
{
    for (int rank = 0; rank < size; rank++) {
        leaders[rank] = rank;
        for (int mate = 0; mate < leaders[rank]; mate++)
            if (node_place_mates(sees, size, rank, mate))
                leaders[rank] = mate;
    }
}

/* Put the ranks of the nodes one after the other into order. */
static void ranks_sort(const int *leaders, int size, int rank,
                       node_place_t *place)
{
    int sorted = 0;

    for (int leader = 0; leader < size; leader++) {
        if (leaders[leader] != leader)
            continue;
        place->first[place->nodes] = sorted;
        for (int mate = leader; mate < size; mate++) {
            if (leaders[mate] != leader)
                continue;
            if (mate == rank) {
                place->here = place->nodes;
                place->local = sorted - place->first[place->nodes];
            }
            place->order[sorted++] = mate;
        }
        place->first[++place->nodes] = sorted;
    }
}

static bool nodes_are_whole(const char *sees, const int *leaders, int size)
{
    for (int a = 0; a < size; a++)
        for (int b = 0; b < a; b++)
            if (node_place_mates(sees, size, a, b) !=
                (leaders[a] == leaders[b]))
                return false;
    return true;
}

err_code_t node_place_open(const char *sees, int size, int rank,
                           node_place_t *out, err_t *err)
{
    void *memory = NULL;
    node_place_t place = {.least = size};
    int *leaders;
    err_code_t code = mem_alloc((size_t)(3 * size + 1) * sizeof(int),
                                "comm places", &memory, err);

    if (code != ERR_OK)
        return code;
    place.order = memory;
    place.first = place.order + size;
    leaders = place.first + size + 1;
    leaders_find(sees, size, leaders);
    place.whole = nodes_are_whole(sees, leaders, size);
    ranks_sort(leaders, size, rank, &place);
    for (int node = 0; node < place.nodes; node++)
        if (node_place_count(&place, node) < place.least)
            place.least = node_place_count(&place, node);
    place.count = node_place_count(&place, place.here);
    *out = place;
    return ERR_OK;
}

void node_place_close(node_place_t *place)
{
    mem_free(place->order);
}

int node_place_count(const node_place_t *place, int node)
{
    return place->first[node + 1] - place->first[node];
}

int node_place_rank(const node_place_t *place, int node, int local)
{
    return place->order[place->first[node] + local];
}
