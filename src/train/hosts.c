/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/hosts.h"

#include <string.h>

int train_hosts_first(const comm_group_t *group, int from, int rank)
{
    const char *host = comm_group_host(group, rank);
    int first = from;

    while (first < rank && strcmp(comm_group_host(group, first), host) != 0)
        first++;
    return first;
}

int train_hosts_number(const comm_group_t *group, int *hosts)
{
    int count = 0;

    for (int r = 0; r < comm_group_size(group); r++) {
        /* The ranks of a host are usually consecutive. So the rank before
         * this one is compared first. */
        const int before = r > 0 ? train_hosts_first(group, r - 1, r) : r;
        const int first = before < r ? before : train_hosts_first(group, 0, r);

        hosts[r] = first < r ? hosts[first] : count++;
    }
    return count;
}
