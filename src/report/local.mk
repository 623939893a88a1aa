# SPDX-License-Identifier: BSD-3-Clause
# libreport: what cddp-report shows of a run.
noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	src/report/assets.h \
	src/report/bins.c src/report/bins.h \
	src/report/csv.c src/report/csv.h \
	src/report/curves.c src/report/curves.h \
	src/report/history.c src/report/history.h \
	src/report/list.c src/report/list.h \
	src/report/loads.c src/report/loads.h \
	src/report/page.c src/report/page.h \
	src/report/page.css src/report/page.js \
	src/report/plot.c src/report/plot.h \
	src/report/row.c src/report/row.h \
	src/report/rows.c src/report/rows.h \
	src/report/run.c src/report/run.h \
	src/report/watch.c src/report/watch.h
libreport_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libreport_la_LIBADD = libreportassets.la $(JANSSON_LIBS)

# Generated code gets no warnings.
noinst_LTLIBRARIES += libreportassets.la
libreportassets_la_SOURCES =
nodist_libreportassets_la_SOURCES = report_assets.c
libreportassets_la_CFLAGS = -w
CLEANFILES += report_assets.c
EXTRA_DIST += src/report/embed
REPORT_PARTS = $(srcdir)/src/report/page.js $(srcdir)/src/report/page.css
report_assets.c: $(srcdir)/src/report/embed $(REPORT_PARTS) $(DYGRAPHS_JS) \
		$(DYGRAPHS_CSS) Makefile
	$(AM_V_GEN)sh $(srcdir)/src/report/embed \
	    report_page_js=$(srcdir)/src/report/page.js \
	    report_page_css=$(srcdir)/src/report/page.css \
	    report_dygraphs_js=$(DYGRAPHS_JS) \
	    report_dygraphs_css=$(DYGRAPHS_CSS) >$@.tmp && mv $@.tmp $@
# End of src/report
