# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libddp.la
libddp_la_SOURCES = \
	src/ddp/bucket.c src/ddp/bucket.h \
	src/ddp/check.c \
	src/ddp/ddp.c src/ddp/ddp.h src/ddp/ddp_priv.h \
	src/ddp/fold.c src/ddp/fold.h \
	src/ddp/half.c \
	src/ddp/hook.c src/ddp/hook.h src/ddp/hook_priv.h \
	src/ddp/hook_half.c \
	src/ddp/hook_powersgd.c \
	src/ddp/lowrank.c src/ddp/lowrank.h \
	src/ddp/mirror.c \
	src/ddp/options.c \
	src/ddp/powersgd.h \
	src/ddp/powersgd_device.c \
	src/ddp/place.c \
	src/ddp/shard.c src/ddp/shard.h \
	src/ddp/tree.c src/ddp/tree.h \
	src/ddp/wire.c \
	src/ddp/zero.c
# Hooks compute in one order on any vector unit: no fused operations. A sanitizer
# may keep a loop from being vectorised, which clang need not say.
libddp_la_CFLAGS = $(AM_CFLAGS) $(ALIGN_CFLAGS) -fopenmp-simd -fno-math-errno \
	-ffp-contract=off -Wno-pass-failed
libddp_la_LIBADD = -lm
# End of src/ddp
