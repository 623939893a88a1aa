# SPDX-License-Identifier: BSD-3-Clause
REPORT_TESTS = \
	tests/report/test_bins \
	tests/report/test_loads \
	tests/report/test_page \
	tests/report/test_row \
	tests/report/test_rows
check_PROGRAMS += $(REPORT_TESTS)
REPORT_TEST_LIBS = libreport.la libconf.la libobs.la libbase.la
$(REPORT_TESTS): $(REPORT_TEST_LIBS)
$(REPORT_TESTS): LDADD = $(REPORT_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)
# End of tests/report
