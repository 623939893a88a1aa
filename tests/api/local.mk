# SPDX-License-Identifier: BSD-3-Clause
# libcddp as it is installed; the scripts compile with the compiler of the build.
AM_TESTS_ENVIRONMENT = CC='$(CC)'; export CC; MAKE='$(MAKE)'; export MAKE;
dist_check_SCRIPTS += tests/api/own_loop.sh tests/api/plugin.sh
EXTRA_DIST += tests/api/check.h tests/api/bad_plugin.c \
	tests/api/plugin_gradient.c tests/api/pair_plugin.c tests/api/install.sh

API_TESTS = \
	tests/api/test_api \
	tests/api/test_data \
	tests/api/test_device \
	tests/api/test_fields \
	tests/api/test_hook \
	tests/api/test_host \
	tests/api/test_model
check_PROGRAMS += $(API_TESTS)
API_TEST_LIBS = libapi.la libcmd.la $(TRAIN_LIBS)
$(API_TESTS): $(API_TEST_LIBS)
$(API_TESTS): LDADD = $(API_TEST_LIBS) $(HDF5_LIBS) $(MPI_LIBS) $(TEST_LIBS)

# These tests use the emulated GPU of tests/cuda.
API_CUDA_TESTS = tests/api/test_device tests/api/test_nccl
check_PROGRAMS += tests/api/test_nccl
$(API_CUDA_TESTS): libfixtures.la $(API_TEST_LIBS) $(EMU_MODULE)
$(API_CUDA_TESTS): LDADD = libfixtures.la $(API_TEST_LIBS) $(HDF5_LIBS) \
	$(MPI_LIBS) $(TEST_LIBS) -ldl
tests_api_test_device_SOURCES = tests/api/test_device.c \
	tests/api/device_steps.c tests/api/device_steps.h
# test_nccl replaces these functions.
tests_api_test_nccl_SOURCES = tests/api/test_nccl.c \
	tests/api/device_steps.c tests/api/device_steps.h
tests_api_test_nccl_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=boot_open,--wrap=gethostname
# End of tests/api
