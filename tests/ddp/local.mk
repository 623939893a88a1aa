# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/ddp/test_bucket
tests_ddp_test_bucket_SOURCES = tests/ddp/test_bucket.c
tests_ddp_test_bucket_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_bucket_LDADD = libddp.la libcomm.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/ddp/test_ddp
tests_ddp_test_ddp_SOURCES = tests/ddp/test_ddp.c
tests_ddp_test_ddp_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_ddp_test_ddp_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_ddp_LDADD = libddp.la libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/ddp/test_fold
tests_ddp_test_fold_SOURCES = tests/ddp/test_fold.c
tests_ddp_test_fold_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_fold_LDADD = libddp.la libcomm.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/ddp/test_tree
tests_ddp_test_tree_SOURCES = tests/ddp/test_tree.c
tests_ddp_test_tree_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_ddp_test_tree_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_tree_LDADD = libddp.la libranks.la libcomm.la libbase.la \
	$(TEST_LIBS) -lm

check_PROGRAMS += tests/ddp/test_hook
tests_ddp_test_hook_SOURCES = tests/ddp/test_hook.c \
	tests/ddp/hook_fixture.c tests/ddp/hook_fixture.h
tests_ddp_test_hook_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_ddp_test_hook_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_hook_LDADD = libddp.la libconf.la libranks.la libcomm.la \
	libbase.la $(TEST_LIBS) -lm

check_PROGRAMS += tests/ddp/test_hook_own
tests_ddp_test_hook_own_SOURCES = tests/ddp/test_hook_own.c \
	tests/ddp/hook_fixture.c tests/ddp/hook_fixture.h
tests_ddp_test_hook_own_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_ddp_test_hook_own_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_hook_own_LDADD = libddp.la libconf.la libranks.la libcomm.la \
	libbase.la $(TEST_LIBS) -lm

check_PROGRAMS += tests/ddp/test_lowrank
tests_ddp_test_lowrank_SOURCES = tests/ddp/test_lowrank.c
tests_ddp_test_lowrank_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_lowrank_LDADD = libddp.la libbase.la $(TEST_LIBS) -lm

check_PROGRAMS += tests/ddp/test_zero
tests_ddp_test_zero_SOURCES = tests/ddp/test_zero.c
tests_ddp_test_zero_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_ddp_test_zero_CFLAGS = $(TEST_CFLAGS)
tests_ddp_test_zero_LDADD = libddp.la libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)
# End of tests/ddp
