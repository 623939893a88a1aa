# SPDX-License-Identifier: BSD-3-Clause
libcomm_la_SOURCES += \
	src/comm/node/node.c src/comm/node/node.h \
	src/comm/node/node_arena.c src/comm/node/node_backoff.c \
	src/comm/node/node_backoff.h src/comm/node/node_claim.h \
	src/comm/node/node_control.c src/comm/node/node_control.h \
	src/comm/node/node_oneshot.c src/comm/node/node_oneshot.h \
	src/comm/node/node_place.c src/comm/node/node_place.h \
	src/comm/node/node_priv.h src/comm/node/node_region.c \
	src/comm/node/node_region.h src/comm/node/node_shm.c \
	src/comm/node/node_shm.h src/comm/node/node_stage.c \
	src/comm/node/node_stage.h src/comm/node/node_sum.c \
	src/comm/node/node_sum.h src/comm/node/node_wait.c \
	src/comm/node/node_wakeup.c src/comm/node/node_wakeup.h \
	src/comm/node/node_zcopy.c src/comm/node/node_zcopy.h
# End of src/comm/node
