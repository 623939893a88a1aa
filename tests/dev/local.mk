# SPDX-License-Identifier: BSD-3-Clause
DEV_TESTS = \
	tests/dev/test_dev \
	tests/dev/test_dev_far \
	tests/dev/test_dev_graph
check_PROGRAMS += $(DEV_TESTS)
DEV_TEST_LIBS = libfar.la libdev.la libbase.la
$(DEV_TESTS): $(DEV_TEST_LIBS)
$(DEV_TESTS): LDADD = $(DEV_TEST_LIBS) $(TEST_LIBS)
# End of tests/dev
