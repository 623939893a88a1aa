# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/base/test_err
tests_base_test_err_SOURCES = tests/base/test_err.c
tests_base_test_err_CFLAGS = $(TEST_CFLAGS)
tests_base_test_err_LDADD = libbase.la $(TEST_LIBS)
# End of tests/base
