# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcomm.la
libcomm_la_SOURCES = \
	src/comm/comm.c src/comm/comm.h src/comm/comm_collective.h \
	src/comm/comm_data.c src/comm/comm_data.h \
	src/comm/comm_fold.h src/comm/comm_open.c src/comm/comm_ops.h \
	src/comm/comm_plan.c \
	src/comm/comm_plan.h src/comm/comm_request.c src/comm/comm_self.c \
	src/comm/comm_split.c src/comm/comm_split.h src/comm/comm_staged.c \
	src/comm/comm_staged.h src/comm/comm_still.c src/comm/comm_still.h \
	src/comm/comm_table.c \
	src/comm/comm_table.h src/comm/comm_threads.c src/comm/comm_tree.c \
	src/comm/comm_vote.c src/comm/comm_vote.h \
	src/comm/reduce.c src/comm/reduce.h src/comm/registry.c src/comm/staged_group.h \
	src/comm/staged_segment.c src/comm/staged_segment.h \
	src/comm/staged_thread.c src/comm/threads_piece.c \
	src/comm/threads_team.c src/comm/threads_team.h
# -fopenmp-simd: only the vectorising hint, no OpenMP runtime.
libcomm_la_CFLAGS = $(AM_CFLAGS) $(UCX_CFLAGS) -fopenmp-simd
libcomm_la_LIBADD = $(UCX_LIBS)
# End of src/comm
