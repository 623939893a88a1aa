# SPDX-License-Identifier: BSD-3-Clause
libcomm_la_SOURCES += \
	src/comm/watch/watch.c src/comm/watch/watch.h \
	src/comm/watch/watch_calls.c src/comm/watch/watch_device.c \
	src/comm/watch/watch_liveness.c src/comm/watch/watch_liveness.h \
	src/comm/watch/watch_note.h src/comm/watch/watch_peers.c \
	src/comm/watch/watch_priv.h
# End of src/comm/watch
