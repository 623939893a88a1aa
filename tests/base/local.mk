# SPDX-License-Identifier: BSD-3-Clause
BASE_TEST_LIBS = libbase.la $(TEST_LIBS)
check_PROGRAMS += tests/base/test_err
tests_base_test_err_SOURCES = tests/base/test_err.c
tests_base_test_err_CFLAGS = $(TEST_CFLAGS)
tests_base_test_err_LDADD = $(BASE_TEST_LIBS)
check_PROGRAMS += tests/base/test_rng
tests_base_test_rng_SOURCES = tests/base/test_rng.c
tests_base_test_rng_CFLAGS = $(TEST_CFLAGS)
tests_base_test_rng_LDADD = $(BASE_TEST_LIBS)
# End of tests/base
