# SPDX-License-Identifier: BSD-3-Clause
# Ranks as threads or forked processes, for the tests of every folder.
check_LTLIBRARIES = libranks.la
libranks_la_SOURCES = tests/lib/ranks.c tests/lib/ranks.h
libranks_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
libranks_la_CFLAGS = $(AM_CFLAGS)

check_PROGRAMS += tests/comm/test_comm_threads
tests_comm_test_comm_threads_SOURCES = tests/comm/test_comm_threads.c \
	tests/comm/collectives.c tests/comm/collectives.h
tests_comm_test_comm_threads_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_threads_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_threads_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_tree
tests_comm_test_comm_tree_SOURCES = tests/comm/test_comm_tree.c
tests_comm_test_comm_tree_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_tree_LDADD = libcomm.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_table
tests_comm_test_comm_table_SOURCES = tests/comm/test_comm_table.c \
	tests/comm/collectives.c tests/comm/collectives.h
tests_comm_test_comm_table_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_table_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_table_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_split
tests_comm_test_comm_split_SOURCES = tests/comm/test_comm_split.c
tests_comm_test_comm_split_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_split_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_split_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_ucx_fabric
tests_comm_test_ucx_fabric_SOURCES = tests/comm/test_ucx_fabric.c
tests_comm_test_ucx_fabric_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_ucx_fabric_LDADD = libcomm.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/comm/test_ucx_strangers
tests_comm_test_ucx_strangers_SOURCES = tests/comm/test_ucx_strangers.c
tests_comm_test_ucx_strangers_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_ucx_strangers_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_ucx_strangers_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_ucx
tests_comm_test_comm_ucx_SOURCES = tests/comm/test_comm_ucx.c \
	tests/comm/collectives.c tests/comm/collectives.h
tests_comm_test_comm_ucx_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_ucx_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_ucx_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_node_sum
tests_comm_test_node_sum_SOURCES = tests/comm/test_node_sum.c
tests_comm_test_node_sum_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_node_sum_LDADD = libcomm.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_stage
tests_comm_test_comm_stage_SOURCES = tests/comm/test_comm_stage.c
tests_comm_test_comm_stage_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_stage_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_stage_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_slot
tests_comm_test_comm_slot_SOURCES = tests/comm/test_comm_slot.c
tests_comm_test_comm_slot_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_slot_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_slot_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_ucx_pace
tests_comm_test_ucx_pace_SOURCES = tests/comm/test_ucx_pace.c
tests_comm_test_ucx_pace_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_ucx_pace_CFLAGS = $(TEST_CFLAGS) $(UCX_CFLAGS)
tests_comm_test_ucx_pace_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_span
tests_comm_test_comm_span_SOURCES = tests/comm/test_comm_span.c \
	tests/comm/collectives.c tests/comm/collectives.h
tests_comm_test_comm_span_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_span_CFLAGS = $(TEST_CFLAGS) $(UCX_CFLAGS)
tests_comm_test_comm_span_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_faults
tests_comm_test_comm_faults_SOURCES = tests/comm/test_comm_faults.c
tests_comm_test_comm_faults_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_comm_test_comm_faults_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_faults_LDADD = libranks.la libcomm.la libbase.la \
	$(TEST_LIBS)

check_PROGRAMS += tests/comm/test_comm_liveness
tests_comm_test_comm_liveness_SOURCES = tests/comm/test_comm_liveness.c
tests_comm_test_comm_liveness_CFLAGS = $(TEST_CFLAGS)
tests_comm_test_comm_liveness_LDADD = libcomm.la libbase.la $(TEST_LIBS)
# End of tests/comm
