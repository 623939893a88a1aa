# SPDX-License-Identifier: BSD-3-Clause
check_PROGRAMS += tests/slurm/test_job
tests_slurm_test_job_SOURCES = tests/slurm/test_job.c
tests_slurm_test_job_CFLAGS = $(TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_slurm_test_job_LDADD = libslurm.la libbase.la $(JANSSON_LIBS) $(TEST_LIBS)
# End of tests/slurm
