# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libobs.la
libobs_la_SOURCES = \
	src/obs/lives.c src/obs/lives.h \
	src/obs/metrics.c src/obs/metrics.h \
	src/obs/progress.c src/obs/progress.h \
	src/obs/spent.c src/obs/spent.h \
	src/obs/summary.c src/obs/summary.h \
	src/obs/terminal.c src/obs/terminal.h
libobs_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libobs_la_LIBADD = $(JANSSON_LIBS)
# End of src/obs
