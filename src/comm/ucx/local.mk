# SPDX-License-Identifier: BSD-3-Clause
libcomm_la_SOURCES += \
	src/comm/ucx/comm_ucx.c src/comm/ucx/ucx_algorithm.c \
	src/comm/ucx/ucx_direct.c src/comm/ucx/ucx_drive.c \
	src/comm/ucx/ucx_drive.h src/comm/ucx/ucx_fabric.c \
	src/comm/ucx/ucx_fabric.h src/comm/ucx/ucx_fold.c \
	src/comm/ucx/ucx_fold.h src/comm/ucx/ucx_gate.c \
	src/comm/ucx/ucx_gate.h src/comm/ucx/ucx_group.c \
	src/comm/ucx/ucx_group.h src/comm/ucx/ucx_halving.c \
	src/comm/ucx/ucx_lane.c src/comm/ucx/ucx_lane.h \
	src/comm/ucx/ucx_local.c src/comm/ucx/ucx_local.h \
	src/comm/ucx/ucx_net.c src/comm/ucx/ucx_net.h src/comm/ucx/ucx_node.c \
	src/comm/ucx/ucx_node.h src/comm/ucx/ucx_notes.c \
	src/comm/ucx/ucx_notes.h src/comm/ucx/ucx_ring.c \
	src/comm/ucx/ucx_route.c src/comm/ucx/ucx_route.h \
	src/comm/ucx/ucx_small.c src/comm/ucx/ucx_span.c \
	src/comm/ucx/ucx_span.h src/comm/ucx/ucx_span_staged.c \
	src/comm/ucx/ucx_task.c src/comm/ucx/ucx_task.h \
	src/comm/ucx/ucx_thread.c src/comm/ucx/ucx_thread.h \
	src/comm/ucx/ucx_tree.c src/comm/ucx/ucx_work.h \
	src/comm/ucx/ucx_worker.c src/comm/ucx/ucx_works.c
# End of src/comm/ucx
