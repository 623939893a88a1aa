# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += liboptim.la
liboptim_la_SOURCES = \
	src/optim/adam.c \
	src/optim/groups.c \
	src/optim/lamb.c \
	src/optim/lars.c \
	src/optim/norm.c \
	src/optim/optim.c \
	src/optim/optim.h \
	src/optim/optim_priv.h \
	src/optim/pass.c \
	src/optim/plateau.c \
	src/optim/rmsprop.c \
	src/optim/schedule.c \
	src/optim/schedule_kinds.c \
	src/optim/sgd.c
# The updates are loops for the vectoriser ("omp simd" needs no OpenMP library;
# errno would forbid the square root). No fused operations, so that all CPUs give
# the same bits. Where a sanitizer keeps a loop from being vectorised, clang need
# not say so.
liboptim_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd -fno-math-errno \
	-ffp-contract=off -Wno-pass-failed
liboptim_la_LIBADD = -lm
# End of src/optim
