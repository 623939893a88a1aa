# SPDX-License-Identifier: BSD-3-Clause
libcomm_la_SOURCES += \
	src/comm/node/node.c src/comm/node/node.h src/comm/node/node_priv.h \
	src/comm/node/node_arena.c src/comm/node/node_wait.c \
	src/comm/node/node_bell.c src/comm/node/node_bell.h \
	src/comm/node/node_board.c src/comm/node/node_board.h \
	src/comm/node/node_claim.h \
	src/comm/node/node_pace.c src/comm/node/node_pace.h \
	src/comm/node/node_place.c src/comm/node/node_place.h \
	src/comm/node/node_segment.c src/comm/node/node_segment.h \
	src/comm/node/node_shm.c src/comm/node/node_shm.h \
	src/comm/node/node_shot.c src/comm/node/node_shot.h \
	src/comm/node/node_slot.c src/comm/node/node_slot.h \
	src/comm/node/node_stage.c src/comm/node/node_stage.h \
	src/comm/node/node_sum.c src/comm/node/node_sum.h
# End of src/comm/node
