# SPDX-License-Identifier: BSD-3-Clause
CMD_TEST_LIBS = libcmd.la libhdf5io.la libbase.la $(TEST_LIBS)
check_PROGRAMS += tests/cmd/test_data_bound
tests_cmd_test_data_bound_SOURCES = tests/cmd/test_data_bound.c
tests_cmd_test_data_bound_CFLAGS = $(TEST_CFLAGS)
tests_cmd_test_data_bound_LDADD = $(CMD_TEST_LIBS)
check_PROGRAMS += tests/cmd/test_data_ising
tests_cmd_test_data_ising_SOURCES = tests/cmd/test_data_ising.c
tests_cmd_test_data_ising_CFLAGS = $(TEST_CFLAGS)
tests_cmd_test_data_ising_LDADD = $(CMD_TEST_LIBS)
check_PROGRAMS += tests/cmd/test_make_ising
tests_cmd_test_make_ising_SOURCES = tests/cmd/test_make_ising.c
tests_cmd_test_make_ising_CFLAGS = $(TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS)
tests_cmd_test_make_ising_LDADD = $(CMD_TEST_LIBS)
dist_check_SCRIPTS += tests/cmd/cddp_data.sh
check_PROGRAMS += tests/cmd/test_cddp_ckpt
tests_cmd_test_cddp_ckpt_SOURCES = tests/cmd/test_cddp_ckpt.c
tests_cmd_test_cddp_ckpt_SOURCES += $(CKPT_FIXTURE)
tests_cmd_test_cddp_ckpt_CFLAGS = $(CKPT_TEST_CFLAGS) -I$(srcdir)/tests
tests_cmd_test_cddp_ckpt_LDADD = $(CKPT_TEST_LIBS)
dist_check_SCRIPTS += tests/cmd/cddp_train.sh
dist_check_SCRIPTS += tests/cmd/examples.sh
check_PROGRAMS += tests/cmd/test_bench_args
tests_cmd_test_bench_args_SOURCES = tests/cmd/test_bench_args.c
tests_cmd_test_bench_args_CFLAGS = $(TEST_CFLAGS)
tests_cmd_test_bench_args_LDADD = libcmd.la $(TRAIN_LIBS) $(TEST_LIBS)
dist_check_SCRIPTS += tests/cmd/cddp_bench.sh
# End of tests/cmd
