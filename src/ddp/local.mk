# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libddp.la
libddp_la_SOURCES = \
	src/ddp/bucket.c src/ddp/bucket.h \
	src/ddp/check.c \
	src/ddp/ddp.c src/ddp/ddp.h src/ddp/ddp_priv.h \
	src/ddp/options.c \
	src/ddp/tree.c src/ddp/tree.h
# End of src/ddp
