# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libslurm.la
libslurm_la_SOURCES = \
	slurm/ask.c slurm/ask.h \
	slurm/cgroup.c slurm/cgroup.h \
	slurm/exit_record.c \
	slurm/job.c slurm/job.h \
	slurm/limits.c slurm/limits.h \
	slurm/nodes.c slurm/nodes.h \
	slurm/signal.c \
	slurm/step_cpu.c slurm/step_cpu.h \
	slurm/step_memory.c slurm/step_memory.h \
	slurm/supervise.c slurm/supervise.h \
	slurm/watch.c slurm/watch.h
libslurm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libslurm_la_LIBADD = $(JANSSON_LIBS)

dist_pkgdata_DATA = slurm/batch/train.sbatch slurm/slurm.conf.example

# Environment modules, in Lua for Lmod and in Tcl for Environment Modules, from one
# source. Both lie in one directory: Lmod prefers Lua, and Environment Modules passes
# over a file that does not begin with #%Module.
MODULE = slurm/modulefile/$(PACKAGE_VERSION)
modulefiledir = $(MODULESDIR)/$(PACKAGE)
nodist_modulefile_DATA = $(MODULE) $(MODULE).lua
CLEANFILES += $(MODULE) $(MODULE).lua
MODULE_WRITE = $(MKDIR_P) slurm/modulefile && \
	sed -e 's|@version[@]|$(PACKAGE_VERSION)|g' \
	    -e 's|@prefix[@]|$(prefix)|g' \
	    -e 's|@bindir[@]|$(bindir)|g' \
	    -e 's|@mandir[@]|$(mandir)|g' \
	    -e 's|@libdir[@]|$(libdir)|g' \
	    -e 's|@includedir[@]|$(includedir)|g' \
	    -e 's|@docdir[@]|$(docdir)|g' \
	    -e 's|@pkgdatadir[@]|$(pkgdatadir)|g' \
	    -e 's|@requires[@]|$(MODULE_REQUIRES)|g' \
	    $(MODULE_TEMPLATE) >$@.in && \
	$(AWK) -v form=$$form -f $(srcdir)/slurm/modulefile/write.awk $@.in >$@.tmp && \
	rm $@.in && mv $@.tmp $@
MODULE_TEMPLATE = $(srcdir)/slurm/modulefile/cddp.in
MODULE_NEEDS = $(MODULE_TEMPLATE) slurm/modulefile/write.awk Makefile
$(MODULE): $(MODULE_NEEDS)
	$(AM_V_GEN)form=tcl; $(MODULE_WRITE)
$(MODULE).lua: $(MODULE_NEEDS)
	$(AM_V_GEN)form=lua; $(MODULE_WRITE)

EXTRA_DIST += slurm/modulefile/cddp.in slurm/modulefile/write.awk \
	slurm/devcluster slurm/devcluster.d/conf.sh \
	slurm/devcluster.d/net.sh slurm/devcluster.d/daemons.sh
# End of slurm
