# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libdev.la
libdev_la_SOURCES = \
	src/dev/dev.c src/dev/dev.h src/dev/dev_ops.h \
	src/dev/registry.c src/dev/dev_cpu.c
libdev_la_CFLAGS = $(AM_CFLAGS)
# End of src/dev
