# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/dev/test_dev
tests_dev_test_dev_SOURCES = tests/dev/test_dev.c
tests_dev_test_dev_CFLAGS = $(TEST_CFLAGS)
tests_dev_test_dev_LDADD = libdev.la libbase.la $(TEST_LIBS)
# End of tests/dev
