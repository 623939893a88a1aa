/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Replaces Criterion's log under the thread sanitizer; see criterion.h. Its
 * messages appear only with --verbose, which these programs do not have. */
#ifndef CDDP_TESTS_PLAIN_LOGGING_H
#define CDDP_TESTS_PLAIN_LOGGING_H

#include <stdio.h>

#define cr_log_info(...)                  \
    do {                                  \
        if (0)                            \
            fprintf(stderr, __VA_ARGS__); \
    } while (0)

#endif
