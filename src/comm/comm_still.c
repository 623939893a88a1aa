/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "comm/comm_still.h"

void comm_still_open(comm_still_t *still, double now)
{
    pthread_mutex_init(&still->lock, NULL);
    still->number = 0;
    still->since = now;
}

void comm_still_close(comm_still_t *still)
{
    pthread_mutex_destroy(&still->lock);
}

double comm_still_for(comm_still_t *still, uint64_t number, double now)
{
    double seconds;

    pthread_mutex_lock(&still->lock);
    if (number > still->number) {
        still->number = number;
        still->since = now;
    }
    seconds = now - still->since;
    pthread_mutex_unlock(&still->lock);
    /* Another thread may have read the clock later, and come first. */
    return seconds > 0 ? seconds : 0;
}
