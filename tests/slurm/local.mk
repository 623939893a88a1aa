# SPDX-License-Identifier: BSD-3-Clause
SLURM_UNIT_TESTS = \
	tests/slurm/test_ask \
	tests/slurm/test_job \
	tests/slurm/test_limits \
	tests/slurm/test_nodes \
	tests/slurm/test_step_cpu \
	tests/slurm/test_step_memory \
	tests/slurm/test_supervise
check_PROGRAMS += $(SLURM_UNIT_TESTS)
SLURM_UNIT_TEST_LIBS = libslurm.la libbase.la
$(SLURM_UNIT_TESTS): $(SLURM_UNIT_TEST_LIBS)
$(SLURM_UNIT_TESTS): LDADD = $(SLURM_UNIT_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)

# Programs that the .t files run; no tests by themselves.
SLURM_PROBES = tests/slurm/boot_probe tests/slurm/comm_probe \
	tests/slurm/job_probe tests/slurm/ckpt_probe tests/slurm/mpiio_probe
EXTRA_PROGRAMS += $(SLURM_PROBES)
CLEANFILES += $(SLURM_PROBES)
PROBE_LIBS = libboot.la libcomm.la libdev.la libhdf5io.la libslurm.la libbase.la
$(SLURM_PROBES): $(PROBE_LIBS)
$(SLURM_PROBES): LDADD = $(PROBE_LIBS) $(PMIX_LIBS) $(HDF5_LIBS) $(MPI_LIBS)
tests/slurm/%_probe.o: TEST_CFLAGS = $(HDF5_CFLAGS) $(MPI_CFLAGS)

dist_check_SCRIPTS += tests/slurm/cases.sh

# Tests on a real Slurm: make check-slurm [SLURM_TESTS=boot.t]
# One test per line, because several people add tests; long tests come first.
SLURM_TESTS = \
	devcluster.t \
	boot.t \
	time.t \
	life.t \
	hurt.t \
	comm.t \
	job.t \
	batch.t \
	ckpt_mpiio.t \
	mpiio.t \
	train.t \
	signal.t \
	kill.t \
	seen.t \
	straggler.t \
	strangers.t \
	bad_input.t \
	site.t \
	reproducible.t \
	zero.t \
	device.t \
	restart.t \
	soak.t \
	api.t \
	fault.t \
	checkpoint.t \
	local.t \
	info.t \
	scale.t
# Long tests that are not in SLURM_TESTS.
SLURM_LONG_TESTS = storm.t
EXTRA_DIST += $(SLURM_TESTS:%=tests/slurm/%) \
	$(SLURM_LONG_TESTS:%=tests/slurm/%) tests/slurm/lib.sh \
	tests/slurm/trainlib.sh tests/slurm/lifelib.sh \
	tests/slurm/run-slurm-tests tests/slurm/faults \
	tests/slurm/crowd.py tests/slurm/mpiio_data.py \
	tests/slurm/trace_check.py \
	tests/slurm/probe_mpi.h tests/slurm/runs
# Preloaded into one rank; a module is what libtool calls it.
SLURM_MODULES = tests/slurm/fault_point.la tests/slurm/fault_errno.la \
	tests/slurm/slow_point.la tests/slurm/clock_point.la
EXTRA_LTLIBRARIES = $(SLURM_MODULES)
CLEANFILES += $(SLURM_MODULES)
SLURM_MODULE_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_slurm_fault_point_la_SOURCES = tests/slurm/fault_point.c
tests_slurm_fault_point_la_LDFLAGS = $(SLURM_MODULE_LDFLAGS)
tests_slurm_fault_point_la_LIBADD = -ldl
tests_slurm_fault_errno_la_SOURCES = tests/slurm/fault_errno.c \
	tests/lib/fcntls.h
tests_slurm_fault_errno_la_LDFLAGS = $(SLURM_MODULE_LDFLAGS)
tests_slurm_fault_errno_la_LIBADD = -ldl
tests_slurm_slow_point_la_SOURCES = tests/slurm/slow_point.c
tests_slurm_slow_point_la_LDFLAGS = $(SLURM_MODULE_LDFLAGS)
tests_slurm_slow_point_la_LIBADD = -ldl
tests_slurm_clock_point_la_SOURCES = tests/slurm/clock_point.c
tests_slurm_clock_point_la_LDFLAGS = $(SLURM_MODULE_LDFLAGS)
check-slurm: all $(SLURM_PROBES) $(SLURM_MODULES)
	SOURCE=$(abs_top_srcdir) BUILD=$(abs_top_builddir) \
	    bash $(srcdir)/tests/slurm/run-slurm-tests $(SLURM_TESTS)

# The long forms, by hand: docs/benchmarks/long-tests.md has the last record.
check-long: all check-long-io $(LONG_CHECKS) $(SLURM_PROBES) $(SLURM_MODULES)
	CDDP_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check-TESTS check_PROGRAMS= \
	    TESTS="$(LONG_CHECKS)"
	grep -h ' cases' $(LONG_CHECKS:=.log)
	SOURCE=$(abs_top_srcdir) BUILD=$(abs_top_builddir) \
	CDDP_KILLS=60 CDDP_LIVES=40 CDDP_LIFE_ALL=1 CDDP_LIFE_AWAY=20 \
	CDDP_RESTARTS=20 CDDP_STORM_SECONDS=1800 CDDP_STORM_EVERY=20 \
	CDDP_STORM_AWAY=20 RUN_LIMIT=3600 FILE_LIMIT=7200 CDDP_CLUSTERS=1 \
	    bash $(srcdir)/tests/slurm/run-slurm-tests kill.t soak.t life.t \
	    $(SLURM_LONG_TESTS)
# The tests that count the opens and reads of many shards; they take two minutes.
LONG_IO_CHECKS = tests/hdf5io/test_epoch_reads tests/train/test_look_opens
LONG_IO_TESTS = $(LONG_IO_CHECKS) tests/cmd/many_shards.sh
check-long-io: all
	CDDP_LONG=1 $(MAKE) $(AM_MAKEFLAGS) check \
	    check_PROGRAMS="$(LONG_IO_CHECKS)" TESTS="$(LONG_IO_TESTS)"
.PHONY: check-slurm check-long check-long-io
# End of tests/slurm
