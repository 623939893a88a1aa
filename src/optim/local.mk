# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += liboptim.la
liboptim_la_SOURCES = \
	src/optim/adam.c \
	src/optim/arith.h \
	src/optim/cpu/cpu.c \
	src/optim/cpu/cpu.h \
	src/optim/cpu/loops.c \
	src/optim/cpu/norm.c \
	src/optim/cpu/update.c \
	src/optim/groups.c \
	src/optim/lamb.c \
	src/optim/lars.c \
	src/optim/optim.c \
	src/optim/optim.h \
	src/optim/optim_priv.h \
	src/optim/place.c \
	src/optim/place.h \
	src/optim/place_ops.h \
	src/optim/plateau.c \
	src/optim/registry.c \
	src/optim/rmsprop.c \
	src/optim/rule.h \
	src/optim/runs.c \
	src/optim/schedule.c \
	src/optim/schedule.h \
	src/optim/schedule_kinds.c \
	src/optim/sgd.c \
	src/optim/update.c
# The updates are loops for the vectoriser ("omp simd" needs no OpenMP library;
# errno would forbid the square root). No fused operations, so that all CPUs give
# the same bits. Where a sanitizer keeps a loop from being vectorised, clang need
# not say so.
liboptim_la_CFLAGS = $(AM_CFLAGS) $(ALIGN_CFLAGS) -fopenmp-simd -fno-math-errno \
	-ffp-contract=off -Wno-pass-failed
liboptim_la_LIBADD = -lm
# A program that links libfar.la also with these flags has optimizers on "far".
OPTIM_FAR_FLAGS = -Wl,-u,dev_registry,-u,optim_registry
libfar_la_SOURCES += src/optim/far/far.c

# The place "cuda", a part of the plugin (src/cuda). As on the CPU, no operations
# are fused.
libcddp_cuda_la_SOURCES += src/optim/cuda/cuda.c src/optim/cuda/cuda.h
CUDA_OPTIM_KERNELS = \
	src/optim/cuda/measure.cu \
	src/optim/cuda/norm.cu \
	src/optim/cuda/update.cu
CUDA_KERNELS += $(CUDA_OPTIM_KERNELS)
CUDA_PARTS += src/optim/cuda/squares.cuh src/optim/cuda/tile.cuh
$(CUDA_OPTIM_KERNELS:.cu=.cu.o): NVCC_FLAGS += -fmad=false
# End of src/optim
