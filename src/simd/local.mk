# SPDX-License-Identifier: BSD-3-Clause
# libgomp is the OpenMP runtime that oneDNN runs on.
noinst_LTLIBRARIES += libsimd.la
libsimd_la_SOURCES = \
	src/simd/isa.c \
	src/simd/isa.h \
	src/simd/math.h \
	src/simd/openmp.h \
	src/simd/team.c \
	src/simd/team.h \
	src/simd/vector.h \
	src/simd/zip.h
libsimd_la_CFLAGS = $(AM_CFLAGS) $(ONEDNN_CFLAGS)
libsimd_la_LIBADD = $(ONEDNN_LIBS) -lgomp
# End of src/simd
