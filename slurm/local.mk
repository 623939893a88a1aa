# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libslurm.la
libslurm_la_SOURCES = \
	slurm/ask.c slurm/ask.h \
	slurm/exit_record.c \
	slurm/job.c slurm/job.h \
	slurm/limits.c slurm/limits.h \
	slurm/nodes.c slurm/nodes.h \
	slurm/signal.c \
	slurm/step_memory.c slurm/step_memory.h \
	slurm/supervise.c slurm/supervise.h \
	slurm/watch.c slurm/watch.h
libslurm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libslurm_la_LIBADD = $(JANSSON_LIBS)

dist_pkgdata_DATA = slurm/batch/train.sbatch

# With MODULEPATH=$(datadir)/modulefiles, `module load cddp/VERSION` loads it.
modulefiledir = $(datadir)/modulefiles/$(PACKAGE)
nodist_modulefile_DATA = slurm/modulefile/$(PACKAGE_VERSION)
CLEANFILES += slurm/modulefile/$(PACKAGE_VERSION)
slurm/modulefile/$(PACKAGE_VERSION): slurm/modulefile/cddp.in Makefile
	$(AM_V_GEN)$(MKDIR_P) slurm/modulefile && \
	sed -e 's|@version[@]|$(PACKAGE_VERSION)|g' \
	    -e 's|@bindir[@]|$(bindir)|g' \
	    -e 's|@mandir[@]|$(mandir)|g' \
	    -e 's|@libdir[@]|$(libdir)|g' \
	    -e 's|@includedir[@]|$(includedir)|g' \
	    -e 's|@pkgdatadir[@]|$(pkgdatadir)|g' \
	    $(srcdir)/slurm/modulefile/cddp.in >$@.tmp && mv $@.tmp $@

EXTRA_DIST += slurm/modulefile/cddp.in \
	slurm/devcluster slurm/devcluster.d/conf.sh \
	slurm/devcluster.d/net.sh slurm/devcluster.d/daemons.sh
# End of slurm
