# SPDX-License-Identifier: BSD-3-Clause
# libcmd: all code of the commands except main() (in cddp-*.c), so that tests
# can link it. Compiled without fused multiply-add, so that one seed gives the
# same files on every machine.
noinst_LTLIBRARIES += libcmd.la
libcmd_la_SOURCES =
libcmd_la_SOURCES += src/cmd/args.c src/cmd/args.h
libcmd_la_SOURCES += src/cmd/bench_allreduce.c src/cmd/bench_allreduce.h
libcmd_la_SOURCES += src/cmd/bench_args.c src/cmd/bench_args.h
libcmd_la_SOURCES += src/cmd/bench_device.c src/cmd/bench_device.h
libcmd_la_SOURCES += src/cmd/bench_io.c src/cmd/bench_io.h
libcmd_la_SOURCES += src/cmd/bench_io_args.c src/cmd/bench_io_args.h
libcmd_la_SOURCES += src/cmd/bench_io_ckpt.c src/cmd/bench_io_ckpt.h
libcmd_la_SOURCES += src/cmd/bench_io_disk.c src/cmd/bench_io_disk.h
libcmd_la_SOURCES += src/cmd/bench_io_file.c src/cmd/bench_io_file.h
libcmd_la_SOURCES += src/cmd/bench_io_read.c src/cmd/bench_io_read.h
libcmd_la_SOURCES += src/cmd/bench_io_row.c src/cmd/bench_io_row.h
libcmd_la_SOURCES += src/cmd/bench_link.c src/cmd/bench_link.h
libcmd_la_SOURCES += src/cmd/bench_peak.c src/cmd/bench_peak.h
libcmd_la_SOURCES += src/cmd/bench_record.c src/cmd/bench_record.h
libcmd_la_SOURCES += src/cmd/bench_rig.c src/cmd/bench_rig.h
libcmd_la_SOURCES += src/cmd/bench_step.c src/cmd/bench_step.h
libcmd_la_SOURCES += src/cmd/bench_step_args.c src/cmd/bench_step_args.h
libcmd_la_SOURCES += src/cmd/bench_times.c src/cmd/bench_times.h
libcmd_la_SOURCES += src/cmd/bench_tune.c src/cmd/bench_tune.h
libcmd_la_SOURCES += src/cmd/bench_value.c src/cmd/bench_value.h
libcmd_la_SOURCES += src/cmd/ckpt_diff.c src/cmd/ckpt_diff.h
libcmd_la_SOURCES += src/cmd/ckpt_map.c src/cmd/ckpt_map.h
libcmd_la_SOURCES += src/cmd/ckpt_move.c src/cmd/ckpt_move.h
libcmd_la_SOURCES += src/cmd/ckpt_lock.c src/cmd/ckpt_lock.h
libcmd_la_SOURCES += src/cmd/ckpt_prune.c src/cmd/ckpt_prune.h
libcmd_la_SOURCES += src/cmd/ckpt_repair.c src/cmd/ckpt_repair.h
libcmd_la_SOURCES += src/cmd/ckpt_show.c src/cmd/ckpt_show.h
libcmd_la_SOURCES += src/cmd/data_attribute.c src/cmd/data_attribute.h
libcmd_la_SOURCES += src/cmd/data_bound.c src/cmd/data_bound.h
libcmd_la_SOURCES += src/cmd/data_convert.c src/cmd/data_convert.h
libcmd_la_SOURCES += src/cmd/data_fft.c src/cmd/data_fft.h
libcmd_la_SOURCES += src/cmd/data_fields.c src/cmd/data_fields.h
libcmd_la_SOURCES += src/cmd/data_index.c src/cmd/data_index.h
libcmd_la_SOURCES += src/cmd/data_info.c src/cmd/data_info.h
libcmd_la_SOURCES += src/cmd/data_progress.c src/cmd/data_progress.h
libcmd_la_SOURCES += src/cmd/data_reshape.c src/cmd/data_reshape.h
libcmd_la_SOURCES += src/cmd/data_source.c src/cmd/data_source.h
libcmd_la_SOURCES += src/cmd/data_split.c src/cmd/data_split.h
libcmd_la_SOURCES += src/cmd/data_stats.c src/cmd/data_stats.h
libcmd_la_SOURCES += src/cmd/data_stats_print.c
libcmd_la_SOURCES += src/cmd/data_target.c src/cmd/data_target.h
libcmd_la_SOURCES += src/cmd/data_team.c src/cmd/data_team.h
libcmd_la_SOURCES += src/cmd/data_verify.c src/cmd/data_verify.h
libcmd_la_SOURCES += src/cmd/data_walk.c src/cmd/data_walk.h
libcmd_la_SOURCES += src/cmd/data_ising.c src/cmd/data_ising.h
libcmd_la_SOURCES += src/cmd/data_labels.c src/cmd/data_labels.h
libcmd_la_SOURCES += src/cmd/data_layout.c src/cmd/data_layout.h
libcmd_la_SOURCES += src/cmd/data_make.c src/cmd/data_make.h
libcmd_la_SOURCES += src/cmd/data_shard.c src/cmd/data_shard.h
libcmd_la_SOURCES += src/cmd/info_build.c src/cmd/info_build.h
libcmd_la_SOURCES += src/cmd/info_check.c src/cmd/info_check.h
libcmd_la_SOURCES += src/cmd/info_gpus.c src/cmd/info_gpus.h
libcmd_la_SOURCES += src/cmd/info_guard.c src/cmd/info_guard.h
libcmd_la_SOURCES += src/cmd/info_host.c src/cmd/info_host.h
libcmd_la_SOURCES += src/cmd/info_judge.c src/cmd/info_judge.h
libcmd_la_SOURCES += src/cmd/info_probe.c src/cmd/info_probe.h
libcmd_la_SOURCES += src/cmd/info_routes.c src/cmd/info_routes.h
libcmd_la_SOURCES += src/cmd/info_topology.c src/cmd/info_topology.h
libcmd_la_SOURCES += src/cmd/make_bytes.c src/cmd/make_bytes.h
libcmd_la_SOURCES += src/cmd/make_fields.c src/cmd/make_fields.h
libcmd_la_SOURCES += src/cmd/make_ising.c src/cmd/make_ising.h
libcmd_la_SOURCES += src/cmd/make_team.c src/cmd/make_team.h
libcmd_la_SOURCES += src/cmd/output.c src/cmd/output.h
libcmd_la_SOURCES += src/cmd/pick.c src/cmd/pick.h
libcmd_la_SOURCES += src/cmd/report_args.c src/cmd/report_args.h
libcmd_la_SOURCES += src/cmd/run_file.c src/cmd/run_file.h
libcmd_la_SOURCES += src/cmd/srun_args.c src/cmd/srun_args.h
libcmd_la_SOURCES += src/cmd/srun_cause.c src/cmd/srun_cause.h
libcmd_la_SOURCES += src/cmd/srun_history.c src/cmd/srun_history.h
libcmd_la_SOURCES += src/cmd/srun_requeue.c src/cmd/srun_requeue.h
libcmd_la_SOURCES += src/cmd/srun_step.c src/cmd/srun_step.h
libcmd_la_SOURCES += src/cmd/srun_words.c src/cmd/srun_words.h
libcmd_la_SOURCES += src/cmd/train_args.c src/cmd/train_args.h
libcmd_la_SOURCES += src/cmd/train_local.c src/cmd/train_local.h
libcmd_la_SOURCES += src/cmd/version.c src/cmd/version.h
libcmd_la_CFLAGS = $(AM_CFLAGS) -ffp-contract=off $(HDF5_CFLAGS) $(MPI_CFLAGS)
libcmd_la_CFLAGS += $(UCX_CFLAGS) $(PMIX_CFLAGS) $(YAML_CFLAGS) \
	$(JANSSON_CFLAGS) $(XXHASH_CFLAGS) $(HWLOC_CFLAGS) $(ZLIB_CFLAGS)
libcmd_la_LIBADD = $(HWLOC_LIBS)
libcmd_la_CPPFLAGS = $(AM_CPPFLAGS) -DPKGDATADIR='"$(pkgdatadir)"'

bin_PROGRAMS += cddp-ckpt
cddp_ckpt_SOURCES = src/cmd/cddp-ckpt.c
cddp_ckpt_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
cddp_ckpt_LDADD = libcmd.la libhdf5io.la libbase.la
dist_man_MANS += docs/man/cddp-ckpt.1

bin_PROGRAMS += cddp-data
cddp_data_SOURCES = src/cmd/cddp-data.c
cddp_data_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS)
cddp_data_LDADD = libcmd.la libimport.la libcomm.la libboot.la libdev.la \
	libhdf5io.la libbase.la
dist_man_MANS += docs/man/cddp-data.1

bin_PROGRAMS += cddp-train
cddp_train_SOURCES = src/cmd/cddp-train.c
cddp_train_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
cddp_train_LDADD = libcmd.la $(TRAIN_LIBS)
dist_man_MANS += docs/man/cddp-train.1

bin_PROGRAMS += cddp-srun
cddp_srun_SOURCES = src/cmd/cddp-srun.c
cddp_srun_CFLAGS = $(AM_CFLAGS)
cddp_srun_LDADD = libcmd.la $(TRAIN_LIBS)
dist_man_MANS += docs/man/cddp-srun.1

bin_PROGRAMS += cddp-bench
cddp_bench_SOURCES = src/cmd/cddp-bench.c
cddp_bench_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
cddp_bench_LDADD = libcmd.la $(TRAIN_LIBS)
dist_man_MANS += docs/man/cddp-bench.1

bin_PROGRAMS += cddp-report
cddp_report_SOURCES = src/cmd/cddp-report.c
cddp_report_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
cddp_report_LDADD = libcmd.la libreport.la libconf.la libobs.la libbase.la
dist_man_MANS += docs/man/cddp-report.1

bin_PROGRAMS += cddp-info
cddp_info_SOURCES = src/cmd/cddp-info.c
cddp_info_CFLAGS = $(AM_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
cddp_info_LDADD = libcmd.la $(TRAIN_LIBS)
dist_man_MANS += docs/man/cddp-info.1

# docs/CONFIG.md is made from the option tables: `make docs` writes it, `make
# check` fails if it is out of date.
docs: cddp-info
	$(builddir)/cddp-info --config >$(srcdir)/docs/CONFIG.md
.PHONY: docs
EXTRA_DIST += docs/CONFIG.md

# The completion of bash, from what the programs say of their options.
completiondir = $(datadir)/bash-completion/completions
COMPLETIONS = $(bin_PROGRAMS:%=completion/%)
nodist_completion_DATA = $(COMPLETIONS)
CLEANFILES += $(COMPLETIONS)
$(COMPLETIONS): completion/%: % cddp-info cddp-train tools/completion
	$(AM_V_GEN)$(MKDIR_P) completion && \
	bash $(srcdir)/tools/completion . $* >$@.tmp && mv $@.tmp $@
EXTRA_DIST += tools/completion
# End of src/cmd
