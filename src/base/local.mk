# SPDX-License-Identifier: BSD-3-Clause
# No fused multiply-add behind our back: rng_normal gives the same bits anywhere.
noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	src/base/bijection.c src/base/bijection.h \
	src/base/check.c src/base/check.h \
	src/base/clock.c src/base/clock.h src/base/clones.h \
	src/base/crew.c src/base/crew.h \
	src/base/err.c src/base/err.h \
	src/base/file.c src/base/file_open.c src/base/file_publish.c \
	src/base/file.h \
	src/base/half.c src/base/half.h \
	src/base/half_x86.c src/base/half_x86.h \
	src/base/hash.c src/base/hash.h \
	src/base/little.h \
	src/base/log.c src/base/log.h \
	src/base/mem.c src/base/mem.h \
	src/base/numeric.c src/base/numeric.h \
	src/base/opt.h src/base/opt_error.c src/base/opt_error.h \
	src/base/opt_fill.c src/base/opt_pick.c src/base/opt_pick.h \
	src/base/opt_print.c \
	src/base/opt_value.c src/base/opt_value.h \
	src/base/retry.c src/base/retry.h \
	src/base/rng.c src/base/rng.h \
	src/base/rng_fill.c src/base/rng_log.h src/base/rng_philox.h \
	src/base/rng_x86.c src/base/rng_x86.h \
	src/base/str.c src/base/str_visible.c src/base/str.h \
	src/base/thread.c src/base/thread.h \
	src/base/trace.c src/base/trace.h \
	src/base/tree.c src/base/tree_print.c src/base/tree.h \
	src/base/view.h
libbase_la_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) $(ALIGN_CFLAGS) \
	-fno-math-errno
libbase_la_CFLAGS += -ffp-contract=off $(XXHASH_CFLAGS)
libbase_la_LIBADD = $(XXHASH_LIBS)
# End of src/base
