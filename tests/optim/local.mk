# SPDX-License-Identifier: BSD-3-Clause
OPTIM_TEST_LIBS = liboptim.la libop.la libconf.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/optim/test_ema tests/optim/test_groups \
	tests/optim/test_norm tests/optim/test_optim tests/optim/test_parity \
	tests/optim/test_ranges tests/optim/test_schedule

tests_optim_test_ema_SOURCES = tests/optim/test_ema.c
tests_optim_test_ema_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_ema_LDADD = $(OPTIM_TEST_LIBS)

tests_optim_test_groups_SOURCES = tests/optim/test_groups.c
tests_optim_test_groups_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_groups_LDADD = $(OPTIM_TEST_LIBS)

tests_optim_test_norm_SOURCES = tests/optim/test_norm.c
tests_optim_test_norm_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_norm_LDADD = $(OPTIM_TEST_LIBS)

tests_optim_test_optim_SOURCES = tests/optim/test_optim.c
tests_optim_test_optim_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_optim_LDADD = $(OPTIM_TEST_LIBS)

EXTRA_DIST += tests/data/optim.json tests/python/make_optim_reference.py
tests_optim_test_parity_SOURCES = tests/optim/test_parity.c
tests_optim_test_parity_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_optim_test_parity_LDADD = $(OPTIM_TEST_LIBS) $(JANSSON_LIBS) -lm

tests_optim_test_ranges_SOURCES = tests/optim/test_ranges.c
tests_optim_test_ranges_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_ranges_LDADD = $(OPTIM_TEST_LIBS)

tests_optim_test_schedule_SOURCES = tests/optim/test_schedule.c
tests_optim_test_schedule_CFLAGS = $(TEST_CFLAGS)
tests_optim_test_schedule_LDADD = $(OPTIM_TEST_LIBS)
# End of tests/optim
