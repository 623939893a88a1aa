/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* little: numbers of [bytes] bytes (1 to 8), the lowest byte first, on any
 * machine. */
#ifndef CDDP_BASE_LITTLE_H
#define CDDP_BASE_LITTLE_H

#include <stddef.h>
#include <stdint.h>

static inline void little_put(unsigned char *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(number >> (8 * i));
}

static inline uint64_t little_get(const unsigned char *from, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return number;
}

#endif
