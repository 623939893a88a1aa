# SPDX-License-Identifier: BSD-3-Clause
OBS_TESTS = \
	tests/obs/test_lives \
	tests/obs/test_metrics \
	tests/obs/test_progress \
	tests/obs/test_prom \
	tests/obs/test_ranks \
	tests/obs/test_spent \
	tests/obs/test_straggler \
	tests/obs/test_summary \
	tests/obs/test_tb \
	tests/obs/test_terminal
check_PROGRAMS += $(OBS_TESTS)
OBS_TEST_LIBS = libobs.la libbase.la
$(OBS_TESTS): $(OBS_TEST_LIBS)
$(OBS_TESTS): LDADD = $(OBS_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)
# openpty; in libc since glibc 2.34
tests_obs_test_terminal_LDADD = \
	$(OBS_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS) -lutil
# End of tests/obs
