/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/* facts: what a message must name (a key, a place, a value), whatever its
 * words. The words are tested in one place, tests/conf/test_sentences.c. */
#ifndef CDDP_TESTS_LIB_FACTS_H
#define CDDP_TESTS_LIB_FACTS_H

#include <criterion/criterion.h>
#include <string.h>

#define FACTS_MAX 5

/* Expect that [text] contains each of [facts]; NULL ends them. */
static inline void facts_expect(const char *text,
                                const char *const facts[FACTS_MAX])
{
    for (int i = 0; i < FACTS_MAX && facts[i] != NULL; i++)
        cr_expect_not_null(strstr(text, facts[i]), "missing: %s\n  found: %s",
                           facts[i], text);
}
#define FACTS(text, ...) \
    facts_expect(text, (const char *[FACTS_MAX]){__VA_ARGS__})

#endif
