# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/conf/test_conf
tests_conf_test_conf_SOURCES = tests/conf/test_conf.c
tests_conf_test_conf_CFLAGS = $(TEST_CFLAGS)
tests_conf_test_conf_LDADD = libconf.la libbase.la $(TEST_LIBS)
# End of tests/conf
