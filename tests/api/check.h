/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Checks for functions that ranks of a test run. A failure is returned as an
 * error, so that the other ranks end, too. Such a function has a parameter
 * [error]. */
#ifndef CDDP_TESTS_API_CHECK_H
#define CDDP_TESTS_API_CHECK_H

#include "cddp/error.h"

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition))                                               \
            return cddp_error_set(error, CDDP_DATA, "%s:%d: failed %s", \
                                  __FILE__, __LINE__, #condition);      \
    } while (0)

#define OK(call)                    \
    do {                            \
        cddp_code_t code_ = (call); \
                                    \
        if (code_ != CDDP_OK)       \
            return code_;           \
    } while (0)

#endif
