/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* Beside the criterion.h that replaces Criterion's: hooks can be defined, but
 * nothing calls them. */
#ifndef CDDP_TESTS_PLAIN_HOOKS_H
#define CDDP_TESTS_PLAIN_HOOKS_H

#include <stddef.h>

struct criterion_global_stats {
    size_t nb_tests, tests_skipped;
};

#define ReportHook(kind) __attribute__((unused)) static void plain_hook_##kind

#endif
