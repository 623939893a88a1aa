# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libobs.la
libobs_la_SOURCES = \
	src/obs/lives.c src/obs/lives.h \
	src/obs/metrics.c src/obs/metrics.h \
	src/obs/progress.c src/obs/progress.h \
	src/obs/prom.c src/obs/prom.h \
	src/obs/ranks.c src/obs/ranks.h \
	src/obs/spent.c src/obs/spent.h \
	src/obs/straggler.c src/obs/straggler.h \
	src/obs/summary.c src/obs/summary.h \
	src/obs/tb.c src/obs/tb.h \
	src/obs/tb_event.c src/obs/tb_event.h \
	src/obs/tb_event.proto \
	src/obs/terminal.c src/obs/terminal.h \
	src/obs/trace.c src/obs/trace.h
libobs_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(PROTOBUFC_CFLAGS) \
	$(ISAL_CFLAGS)
libobs_la_LIBADD = $(JANSSON_LIBS) $(ISAL_LIBS)

if TENSORBOARD
# Generated code gets no warnings.
noinst_LTLIBRARIES += libtbevent.la
nodist_libtbevent_la_SOURCES = tb_event.pb-c.c tb_event.pb-c.h
libtbevent_la_SOURCES =
libtbevent_la_CFLAGS = -w $(PROTOBUFC_CFLAGS)
libtbevent_la_LIBADD = $(PROTOBUFC_LIBS)
libobs_la_LIBADD += libtbevent.la
BUILT_SOURCES += tb_event.pb-c.h
CLEANFILES += tb_event.pb-c.h tb_event.pb-c.c
tb_event.pb-c.c: src/obs/tb_event.proto
	$(AM_V_GEN)$(PROTOC_C) --c_out=. -I$(srcdir)/src/obs tb_event.proto
tb_event.pb-c.h: tb_event.pb-c.c
	@test -f $@ || { rm -f tb_event.pb-c.c; $(MAKE) $(AM_MAKEFLAGS) tb_event.pb-c.c; }
endif
# End of src/obs
