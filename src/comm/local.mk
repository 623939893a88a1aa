# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libcomm.la
libcomm_la_SOURCES = \
	src/comm/comm.c src/comm/comm.h src/comm/comm_collective.h \
	src/comm/comm_fold.h src/comm/comm_ops.h \
	src/comm/registry.c src/comm/reduce.c src/comm/comm_tree.c \
	src/comm/comm_plan.c src/comm/comm_plan.h \
	src/comm/comm_table.c src/comm/comm_table.h \
	src/comm/comm_self.c src/comm/comm_split.c src/comm/comm_split.h \
	src/comm/comm_threads.c src/comm/threads_team.h \
	src/comm/threads_team.c src/comm/threads_piece.c \
	src/comm/watch/watch.c src/comm/watch/watch.h src/comm/watch/watch_note.h \
	src/comm/watch/watch_priv.h src/comm/watch/watch_calls.c src/comm/watch/watch_peers.c \
	src/comm/watch/watch_liveness.c src/comm/watch/watch_liveness.h \
	src/comm/comm_ucx.c src/comm/ucx_group.h src/comm/ucx_lane.h \
	src/comm/ucx_peer.h src/comm/ucx_group.c src/comm/ucx_task.c src/comm/ucx_task.h \
	src/comm/ucx_lane.c src/comm/ucx_halving.c \
	src/comm/ucx_fabric.c src/comm/ucx_fabric.h \
	src/comm/ucx_gate.c src/comm/ucx_gate.h \
	src/comm/ucx_worker.c src/comm/ucx_local.c src/comm/ucx_net.c src/comm/ucx_notes.c \
	src/comm/ucx_ring.c src/comm/ucx_small.c src/comm/ucx_thread.c \
	src/comm/ucx_tree.c src/comm/ucx_direct.c src/comm/ucx_algorithm.c \
	src/comm/ucx_node.h src/comm/ucx_node.c src/comm/ucx_drive.c \
	src/comm/ucx_stage_net.c src/comm/ucx_span.c
# -fopenmp-simd: only the vectorising hint, no OpenMP runtime.
libcomm_la_CFLAGS = $(AM_CFLAGS) $(UCX_CFLAGS) -fopenmp-simd
libcomm_la_LIBADD = $(UCX_LIBS)
# End of src/comm
