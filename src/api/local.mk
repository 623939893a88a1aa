# SPDX-License-Identifier: BSD-3-Clause
# libcddp: the public interface (include/cddp). It exports only names that begin
# with cddp_.
#
# -version-info CURRENT:REVISION:AGE. Change it before a release. If only the
# sources have changed: REVISION + 1. If a function or type was added, changed
# or removed: CURRENT + 1 and REVISION 0; then AGE + 1 if none was changed or
# removed, else AGE 0.
noinst_LTLIBRARIES += libapi.la
libapi_la_SOURCES = \
	src/api/api.h \
	src/api/checkpoint.c \
	src/api/collective.c \
	src/api/data.c \
	src/api/ddp.c \
	src/api/device.c \
	src/api/error.c \
	src/api/field.c src/api/field.h \
	src/api/group.c \
	src/api/hook.c src/api/hook.h \
	src/api/log.c \
	src/api/model.c
libapi_la_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)

lib_LTLIBRARIES = libcddp.la
libcddp_la_SOURCES =
libcddp_la_LIBADD = libapi.la $(TRAIN_LIBS)
libcddp_la_LDFLAGS = -no-undefined -version-info 0:0:0 \
	-export-symbols-regex '^cddp_'

cddpincludedir = $(includedir)/cddp
dist_cddpinclude_HEADERS = \
	include/cddp/cddp.h \
	include/cddp/checkpoint.h \
	include/cddp/data.h \
	include/cddp/ddp.h \
	include/cddp/device.h \
	include/cddp/error.h \
	include/cddp/group.h \
	include/cddp/hook.h \
	include/cddp/layer.h \
	include/cddp/log.h \
	include/cddp/model.h \
	include/cddp/plugin.h
nodist_cddpinclude_HEADERS = include/cddp/version.h

pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = src/api/cddp.pc
# End of src/api
