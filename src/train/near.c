/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
#include "train/near.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dev/dev_place.h"

/* The cores of a list such as "0-15,32-47"; empty if [list] is not such a
 * list. */
static void cores_read(const char *list, cpu_set_t *out)
{
    CPU_ZERO(out);
    while (*list != '\0') {
        char *end;
        long first = strtol(list, &end, 10), last = first;

        if (end == list)
            return;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (; first >= 0 && first <= last && first < CPU_SETSIZE; first++)
            CPU_SET((size_t)first, out);
        list = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0')
            return;
    }
}

void train_near_bind(const train_device_t *device, bool logs)
{
    cpu_set_t near, mine, both;
    dev_place_t place;

    if (device->info.bus[0] == '\0')
        return;
    dev_place_find(device->info.bus, &place);
    cores_read(place.cpus, &near);
    if (CPU_COUNT(&near) == 0 || sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    CPU_AND(&both, &mine, &near);
    if (CPU_COUNT(&both) == 0) {
        if (logs)
            log_warn("train",
                     "no core of this rank is near its GPU %s, whose cores are "
                     "%s: batches take a longer way (srun --gpu-bind=closest "
                     "or --cpu-bind mends it)",
                     device->info.bus, place.cpus);
        return;
    }
    if (CPU_EQUAL(&both, &mine) ||
        sched_setaffinity(0, sizeof both, &both) != 0)
        return;
    log_debug("train",
              "this rank's threads stay on %d of its %d cores, those "
              "near GPU %s (%s)",
              CPU_COUNT(&both), CPU_COUNT(&mine), device->info.bus, place.cpus);
}
