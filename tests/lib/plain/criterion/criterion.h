/* SPDX-License-Identifier: BSD-3-Clause */
/* SPDX-FileCopyrightText: The cddp authors */
/*
 * Replaces Criterion under the thread sanitizer, which does not work with the
 * shared arena that Criterion maps at a fixed address. It has only what our
 * tests use: each test runs in a forked child, a failed cr_assert ends the
 * child, and a failed cr_expect is noted. tests/sanitize puts this folder
 * first on the include path.
 */
#ifndef CDDP_TESTS_PLAIN_CRITERION_H
#define CDDP_TESTS_PLAIN_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct plain_test {
    const char *suite, *name;
    void (*run)(void);
    void (*init)(void);
    void (*fini)(void);
    double timeout; /* seconds; 0: none */
    struct plain_test *next;
} plain_test_t;

/* weak, so that a program has one list of each, however many of its files
 * include this header. */
__attribute__((weak)) plain_test_t *plain_tests, *plain_suites;
__attribute__((weak)) int plain_failed;

#define Test(suite_, name_, ...)                                             \
    static void plain_##suite_##_##name_##_run(void);                        \
    static plain_test_t plain_##suite_##_##name_ = {                         \
        .suite = #suite_,                                                    \
        .name = #name_,                                                      \
        .run = plain_##suite_##_##name_##_run __VA_OPT__(, ) __VA_ARGS__};   \
    __attribute__((constructor)) static void plain_##suite_##_##name_##_add( \
        void)                                                                \
    {                                                                        \
        plain_##suite_##_##name_.next = plain_tests;                         \
        plain_tests = &plain_##suite_##_##name_;                             \
    }                                                                        \
    static void plain_##suite_##_##name_##_run(void)

#define TestSuite(suite_, ...)                                                \
    static plain_test_t plain_##suite_##_suite = {                            \
        .suite = #suite_ __VA_OPT__(, ) __VA_ARGS__};                         \
    __attribute__((constructor)) static void plain_##suite_##_suite_add(void) \
    {                                                                         \
        plain_##suite_##_suite.next = plain_suites;                           \
        plain_suites = &plain_##suite_##_suite;                               \
    }                                                                         \
    __attribute__((unused)) static int plain_##suite_##_suite_end

#define PLAIN_CHECK(fatal, condition, what, ...)                     \
    do {                                                             \
        if (!(condition)) {                                          \
            fprintf(stderr, "%s:%d: %s ", __FILE__, __LINE__, what); \
            fprintf(stderr, " " __VA_ARGS__);                        \
            fputc('\n', stderr);                                     \
            __atomic_store_n(&plain_failed, 1, __ATOMIC_RELAXED);    \
            if (fatal)                                               \
                _exit(1);                                            \
        }                                                            \
    } while (0)

#define PLAIN_OP(fatal, a, op, b, ...) \
    PLAIN_CHECK(fatal, (a)op(b), #a " " #op " " #b __VA_OPT__(, ) __VA_ARGS__)
#define PLAIN_STR(fatal, a, op, b, ...)   \
    PLAIN_CHECK(fatal, strcmp(a, b) op 0, \
                #a " " #op " " #b __VA_OPT__(, ) __VA_ARGS__)
#define PLAIN_MEM(fatal, a, op, b, n, ...)   \
    PLAIN_CHECK(fatal, memcmp(a, b, n) op 0, \
                #a " " #op " " #b __VA_OPT__(, ) __VA_ARGS__)
#define PLAIN_NEAR(fatal, a, b, e, ...)                                \
    PLAIN_CHECK(fatal, fabs((double)(a) - (double)(b)) <= (double)(e), \
                #a " near " #b __VA_OPT__(, ) __VA_ARGS__)
#define PLAIN_IS(fatal, c, ...) \
    PLAIN_CHECK(fatal, c, #c __VA_OPT__(, ) __VA_ARGS__)

#define cr_assert(c, ...) PLAIN_IS(1, c __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect(c, ...) PLAIN_IS(0, c __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not(c, ...) PLAIN_IS(1, !(c)__VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_not(c, ...) PLAIN_IS(0, !(c)__VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_null(p, ...) \
    PLAIN_IS(1, (p) == NULL __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_null(p, ...) \
    PLAIN_IS(0, (p) == NULL __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_not_null(p, ...) \
    PLAIN_IS(1, (p) != NULL __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_not_null(p, ...) \
    PLAIN_IS(0, (p) != NULL __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_OP(1, a, ==, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_OP(0, a, ==, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_neq(a, b, ...) \
    PLAIN_OP(1, a, !=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_neq(a, b, ...) \
    PLAIN_OP(0, a, !=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_OP(1, a, <, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_OP(0, a, <, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_leq(a, b, ...) \
    PLAIN_OP(1, a, <=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_leq(a, b, ...) \
    PLAIN_OP(0, a, <=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_OP(1, a, >, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_OP(0, a, >, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_geq(a, b, ...) \
    PLAIN_OP(1, a, >=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_geq(a, b, ...) \
    PLAIN_OP(0, a, >=, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) \
    PLAIN_STR(1, a, ==, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) \
    PLAIN_STR(0, a, ==, b __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) \
    PLAIN_MEM(1, a, ==, b, n __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) \
    PLAIN_MEM(0, a, ==, b, n __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_arr_neq(a, b, n, ...) \
    PLAIN_MEM(0, a, !=, b, n __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...) \
    PLAIN_NEAR(1, a, b, e __VA_OPT__(, ) __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) \
    PLAIN_NEAR(0, a, b, e __VA_OPT__(, ) __VA_ARGS__)
#define cr_assert_fail(...) \
    PLAIN_CHECK(1, 0, "failed" __VA_OPT__(, ) __VA_ARGS__)
#define cr_skip_test(...)                         \
    do {                                          \
        fprintf(stderr, "skipped: " __VA_ARGS__); \
        fputc('\n', stderr);                      \
        _exit(0);                                 \
    } while (0)
#define cr_skip cr_skip_test

static inline plain_test_t plain_suite_of(const plain_test_t *test)
{
    for (plain_test_t *s = plain_suites; s != NULL; s = s->next)
        if (strcmp(s->suite, test->suite) == 0)
            return *s;
    return (plain_test_t){0};
}

/* exit, not _exit, because the sanitizer reports at exit. */
static inline void plain_child(const plain_test_t *test)
{
    plain_test_t suite = plain_suite_of(test);
    void (*init)(void) = test->init != NULL ? test->init : suite.init;
    void (*fini)(void) = test->fini != NULL ? test->fini : suite.fini;
    double limit = test->timeout > 0 ? test->timeout : suite.timeout;

    if (limit > 0)
        alarm((unsigned)limit * 10 + 1); /* instrumented code is slow */
    if (init != NULL)
        init();
    test->run();
    if (fini != NULL)
        fini();
    exit(plain_failed);
}

__attribute__((weak)) int main(void)
{
    int bad = 0;

    for (plain_test_t *test = plain_tests; test != NULL; test = test->next) {
        int status = 0;
        pid_t child;

        fflush(NULL);
        child = fork();
        if (child == 0)
            plain_child(test);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "[FAIL] %s::%s (status %x)\n", test->suite,
                    test->name, (unsigned)status);
            bad++;
        }
    }
    return bad > 0;
}

#endif
