# SPDX-License-Identifier: BSD-3-Clause
CMD_TESTS = \
	tests/cmd/test_bench_args \
	tests/cmd/test_bench_step_args \
	tests/cmd/test_cddp_ckpt \
	tests/cmd/test_ckpt_maps \
	tests/cmd/test_ckpt_repair \
	tests/cmd/test_data_bound \
	tests/cmd/test_data_ising \
	tests/cmd/test_data_look \
	tests/cmd/test_data_progress \
	tests/cmd/test_escapes \
	tests/cmd/test_info_check \
	tests/cmd/test_info_host \
	tests/cmd/test_make_bytes \
	tests/cmd/test_make_fields \
	tests/cmd/test_make_ising \
	tests/cmd/test_pick \
	tests/cmd/test_srun
check_PROGRAMS += $(CMD_TESTS)
CMD_TEST_LIBS = libfixtures.la libcmd.la $(TRAIN_LIBS)
$(CMD_TESTS): $(CMD_TEST_LIBS)
$(CMD_TESTS): LDADD = $(CMD_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS)
tests_cmd_test_ckpt_repair_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=hdf5io_checkpoint_verify,--wrap=hdf5io_prune_remove

dist_check_SCRIPTS += tests/cmd/cddp_bench.sh tests/cmd/cddp_bench_step.sh \
	tests/cmd/cddp_data.sh tests/cmd/data_stats.sh tests/cmd/data_tools.sh \
	tests/cmd/cddp_report.sh tests/cmd/cddp_train.sh tests/cmd/check_memory.sh \
	tests/cmd/check_plan.sh \
	tests/cmd/cuda_plugin.sh tests/cmd/emu_runs.sh \
	tests/cmd/examples.sh tests/cmd/examples_data.sh tests/cmd/far_runs.sh tests/cmd/info_gpus.sh \
	tests/cmd/local_gpus.sh tests/cmd/many_shards.sh tests/cmd/order.sh tests/cmd/record.sh \
	tests/cmd/rollback.sh tests/cmd/safetensors_peers.sh tests/cmd/signals.sh tests/cmd/umask.sh tests/cmd/user_guide.sh

EXTRA_DIST += tests/cmd/report_page.py tests/cmd/waitlib.sh \
	tests/cmd/datalib.sh tests/cmd/runlib.sh

# cddp-train and cddp-bench with the test device.
FAR_TRAIN = tests/cmd/cddp-train-far tests/cmd/cddp-bench-far
EXTRA_PROGRAMS += $(FAR_TRAIN)
CLEANFILES += $(FAR_TRAIN)
tests_cmd_cddp_train_far_SOURCES = $(cddp_train_SOURCES)
tests_cmd_cddp_train_far_CFLAGS = $(cddp_train_CFLAGS)
tests_cmd_cddp_train_far_LDFLAGS = $(AM_LDFLAGS) $(FAR_FLAGS) $(OPTIM_FAR_FLAGS)
tests_cmd_cddp_train_far_LDADD = libfar.la $(cddp_train_LDADD)
tests_cmd_cddp_bench_far_SOURCES = $(cddp_bench_SOURCES)
tests_cmd_cddp_bench_far_CFLAGS = $(cddp_bench_CFLAGS)
tests_cmd_cddp_bench_far_LDFLAGS = $(AM_LDFLAGS) $(FAR_FLAGS) $(OPTIM_FAR_FLAGS)
tests_cmd_cddp_bench_far_LDADD = libfar.la $(cddp_bench_LDADD)
# (By a variable, as automake leaves out its own rule for a target named here.)
FAR_RUNS = tests/cmd/far_runs.sh.log
$(FAR_RUNS): $(FAR_TRAIN)
# End of tests/cmd
