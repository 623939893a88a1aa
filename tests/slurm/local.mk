# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/slurm/test_job
tests_slurm_test_job_SOURCES = tests/slurm/test_job.c
tests_slurm_test_job_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_slurm_test_job_LDADD = libslurm.la libbase.la $(JANSSON_LIBS) $(TEST_LIBS)

# Programs that the .t files run; no tests by themselves.
SLURM_PROBES =
SLURM_PROBES += tests/slurm/boot_probe
SLURM_PROBES += tests/slurm/comm_probe
SLURM_PROBES += tests/slurm/job_probe
SLURM_PROBES += tests/slurm/ckpt_probe
SLURM_PROBES += tests/slurm/mpiio_probe
EXTRA_PROGRAMS += $(SLURM_PROBES)
CLEANFILES += $(SLURM_PROBES)
tests_slurm_boot_probe_SOURCES = tests/slurm/boot_probe.c
tests_slurm_boot_probe_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_slurm_boot_probe_LDADD = libboot.la libhdf5io.la libbase.la \
	$(PMIX_LIBS) $(HDF5_LIBS) $(MPI_LIBS)
tests_slurm_comm_probe_SOURCES = tests/slurm/comm_probe.c
tests_slurm_comm_probe_LDADD = libboot.la libcomm.la libbase.la
tests_slurm_job_probe_SOURCES = tests/slurm/job_probe.c
tests_slurm_job_probe_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tests_slurm_job_probe_LDADD = libslurm.la libbase.la $(JANSSON_LIBS)
tests_slurm_ckpt_probe_SOURCES = tests/slurm/ckpt_probe.c
tests_slurm_ckpt_probe_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_slurm_ckpt_probe_LDADD = libboot.la libhdf5io.la libbase.la \
	$(PMIX_LIBS) $(HDF5_LIBS) $(MPI_LIBS)
tests_slurm_mpiio_probe_SOURCES = tests/slurm/mpiio_probe.c
tests_slurm_mpiio_probe_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_slurm_mpiio_probe_LDADD = libboot.la libhdf5io.la libbase.la \
	$(PMIX_LIBS) $(HDF5_LIBS) $(MPI_LIBS)

# Tests on a real Slurm: make check-slurm [SLURM_TESTS=boot.t]
# One line a test, as several people add some.
SLURM_TESTS =
SLURM_TESTS += devcluster.t
SLURM_TESTS += boot.t
SLURM_TESTS += comm.t
SLURM_TESTS += job.t
SLURM_TESTS += batch.t
SLURM_TESTS += ckpt_mpiio.t
SLURM_TESTS += mpiio.t
EXTRA_DIST += tests/slurm/lib.sh
EXTRA_DIST += tests/slurm/run-slurm-tests
EXTRA_DIST += tests/slurm/devcluster.t
EXTRA_DIST += tests/slurm/boot.t
EXTRA_DIST += tests/slurm/comm.t
EXTRA_DIST += tests/slurm/job.t
EXTRA_DIST += tests/slurm/batch.t
EXTRA_DIST += tests/slurm/ckpt_mpiio.t
EXTRA_DIST += tests/slurm/mpiio.t
EXTRA_DIST += tests/slurm/mpiio_data.py
SLURM_TESTS += train.t
SLURM_TESTS += signal.t
SLURM_TESTS += kill.t
SLURM_TESTS += strangers.t
SLURM_TESTS += bad_input.t
SLURM_TESTS += reproducible.t
SLURM_TESTS += zero.t
EXTRA_DIST += tests/slurm/zero.t
SLURM_TESTS += soak.t
EXTRA_DIST += tests/slurm/soak.t
EXTRA_DIST += tests/slurm/reproducible.t
EXTRA_DIST += tests/slurm/trainlib.sh tests/slurm/train.t \
	tests/slurm/signal.t tests/slurm/kill.t tests/slurm/bad_input.t \
	tests/slurm/strangers.t \
	tests/slurm/runs/plain.yaml tests/slurm/runs/full.yaml
SLURM_TESTS += api.t
EXTRA_DIST += tests/slurm/api.t
SLURM_TESTS += fault.t
EXTRA_DIST += tests/slurm/fault.t
SLURM_TESTS += checkpoint.t
EXTRA_DIST += tests/slurm/checkpoint.t
SLURM_TESTS += scale.t
EXTRA_DIST += tests/slurm/scale.t
# Preloaded into one rank; a module is what libtool calls it.
EXTRA_LTLIBRARIES = tests/slurm/fault_point.la
CLEANFILES += tests/slurm/fault_point.la
tests_slurm_fault_point_la_SOURCES = tests/slurm/fault_point.c
tests_slurm_fault_point_la_LDFLAGS = -module -avoid-version -shared \
	-rpath /nowhere
tests_slurm_fault_point_la_LIBADD = -ldl
check-slurm: all $(SLURM_PROBES) tests/slurm/fault_point.la
	SOURCE=$(abs_top_srcdir) BUILD=$(abs_top_builddir) \
	    bash $(srcdir)/tests/slurm/run-slurm-tests $(SLURM_TESTS)

# The long forms, by hand: docs/benchmarks/long-tests.md has the last record.
check-long: all $(SLURM_PROBES) tests/slurm/fault_point.la
	SOURCE=$(abs_top_srcdir) BUILD=$(abs_top_builddir) \
	CDDP_KILLS=60 CDDP_LIVES=40 RUN_LIMIT=600 FILE_LIMIT=7200 \
	    bash $(srcdir)/tests/slurm/run-slurm-tests kill.t soak.t
.PHONY: check-slurm check-long
# End of tests/slurm
