# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libdev.la
libdev_la_SOURCES = \
	src/dev/dev.c src/dev/dev.h src/dev/dev_ops.h \
	src/dev/dev_cpu.c src/dev/dev_lost.c src/dev/dev_open.c \
	src/dev/dev_links.h \
	src/dev/dev_place.c src/dev/dev_place.h \
	src/dev/dev_plugin.c src/dev/dev_plugin.h \
	src/dev/registry.c
libdev_la_CFLAGS = $(AM_CFLAGS)
libdev_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGLIBDIR='"$(pkglibdir)"'

# The test device and, from src/op, its ops: for test programs only. A program that
# links libfar.la ahead of the other libraries, with FAR_FLAGS, has "far" in its
# registries.
FAR_FLAGS = -Wl,-u,dev_registry,-u,op_registry
check_LTLIBRARIES += libfar.la
libfar_la_SOURCES = \
	src/dev/dev_far.c src/dev/dev_far.h \
	src/dev/far_device.h \
	src/dev/far_graph.c src/dev/far_graph.h \
	src/dev/far_memory.c src/dev/far_memory.h \
	src/dev/far_queue.c src/dev/far_queue.h \
	src/dev/far_stream.c
libfar_la_CFLAGS = $(AM_CFLAGS)

# The device "cuda", a part of the plugin (src/cuda), which has its own copy of
# dev.c.
CUDA_DEV_FILES = src/dev/dev.c src/dev/dev_lost.c \
	src/dev/dev_cuda.c src/dev/dev_cuda.h src/dev/dev_cuda_priv.h \
	src/dev/dev_cuda_arch.c src/dev/dev_cuda_arch.h \
	src/dev/dev_cuda_error.c src/dev/dev_cuda_links.c \
	src/dev/dev_cuda_list.c src/dev/dev_cuda_poll.c \
	src/dev/dev_cuda_stream.c
# End of src/dev
