# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/conf/test_conf
tests_conf_test_conf_SOURCES = tests/conf/test_conf.c
tests_conf_test_conf_CFLAGS = $(TEST_CFLAGS)
tests_conf_test_conf_LDADD = libconf.la libbase.la $(TEST_LIBS)
check_PROGRAMS += tests/conf/test_roundtrip
tests_conf_test_roundtrip_SOURCES = tests/conf/test_roundtrip.c
tests_conf_test_roundtrip_CFLAGS = $(TEST_CFLAGS)
tests_conf_test_roundtrip_LDADD = libconf.la libbase.la $(TEST_LIBS)
# End of tests/conf
