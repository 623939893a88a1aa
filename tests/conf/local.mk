# SPDX-License-Identifier: BSD-3-Clause
CONF_TESTS = \
	tests/conf/test_conf \
	tests/conf/test_roundtrip \
	tests/conf/test_sentences
check_PROGRAMS += $(CONF_TESTS)
CONF_TEST_LIBS = libconf.la libbase.la
$(CONF_TESTS): $(CONF_TEST_LIBS)
$(CONF_TESTS): LDADD = $(CONF_TEST_LIBS) $(TEST_LIBS)
# End of tests/conf
