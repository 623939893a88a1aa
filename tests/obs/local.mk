# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/obs/test_metrics
tests_obs_test_metrics_SOURCES = tests/obs/test_metrics.c
tests_obs_test_metrics_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_obs_test_metrics_LDADD = libobs.la libbase.la $(JANSSON_LIBS) $(TEST_LIBS)
check_PROGRAMS += tests/obs/test_progress
tests_obs_test_progress_SOURCES = tests/obs/test_progress.c tests/lib/halted.h
tests_obs_test_progress_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_obs_test_progress_LDADD = libobs.la libbase.la $(JANSSON_LIBS) $(TEST_LIBS)
check_PROGRAMS += tests/obs/test_summary
tests_obs_test_summary_SOURCES = tests/obs/test_summary.c
tests_obs_test_summary_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_obs_test_summary_LDADD = libobs.la libbase.la $(JANSSON_LIBS) $(TEST_LIBS)
# End of tests/obs
