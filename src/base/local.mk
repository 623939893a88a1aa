# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES = \
	src/base/err.c src/base/err.h
libbase_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
libbase_la_LIBADD = $(XXHASH_LIBS)
# End of src/base
