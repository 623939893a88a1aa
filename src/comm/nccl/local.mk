# SPDX-License-Identifier: BSD-3-Clause
# The backend "nccl" is a part of the plugin (src/cuda). The plugin has its own
# copy of the files that all backends share.
CUDA_COMM_FILES = src/comm/comm.c src/comm/comm_still.c src/comm/reduce.c \
	src/comm/comm_tree.c \
	src/comm/nccl/comm_nccl.c src/comm/nccl/nccl_add.h src/comm/nccl/nccl_arena.c \
	src/comm/nccl/nccl_beside.c \
	src/comm/nccl/nccl_call.c src/comm/nccl/nccl_end.c \
	src/comm/nccl/nccl_fault.c src/comm/nccl/nccl_group.h \
	src/comm/nccl/nccl_join.c \
	src/comm/nccl/nccl_library.h src/comm/nccl/nccl_look.c \
	src/comm/nccl/nccl_mark.h src/comm/nccl/nccl_tree.c \
	src/comm/nccl/nccl_version.c
# The emulated plugin takes tests/cuda/fake_nccl.c instead of this library.
if CUDA
noinst_LTLIBRARIES += libncclload.la
endif
libncclload_la_SOURCES = src/comm/nccl/nccl_library.c \
	src/comm/nccl/nccl_library.h
libncclload_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
# End of src/comm/nccl
