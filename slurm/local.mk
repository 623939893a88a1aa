# SPDX-License-Identifier: BSD-3-Clause
noinst_LTLIBRARIES += libslurm.la
libslurm_la_SOURCES = \
	slurm/exit_record.c \
	slurm/job.c slurm/job.h \
	slurm/job_end.c \
	slurm/signal.c
libslurm_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libslurm_la_LIBADD = $(JANSSON_LIBS)

EXTRA_DIST += slurm/devcluster slurm/devcluster.d/conf.sh \
	slurm/devcluster.d/net.sh slurm/devcluster.d/daemons.sh
# End of slurm
