# SPDX-License-Identifier: BSD-3-Clause
DDP_TESTS = \
	tests/ddp/test_bucket \
	tests/ddp/test_ddp \
	tests/ddp/test_ddp_memory \
	tests/ddp/test_fold \
	tests/ddp/test_hook \
	tests/ddp/test_hook_own \
	tests/ddp/test_lowrank \
	tests/ddp/test_tree \
	tests/ddp/test_zero
check_PROGRAMS += $(DDP_TESTS)
DDP_TEST_LIBS = libfixtures.la libddp.la libconf.la libcomm.la libop.la \
	libsimd.la libdev.la libbase.la
$(DDP_TESTS): $(DDP_TEST_LIBS)
$(DDP_TESTS): LDADD = $(DDP_TEST_LIBS) $(TEST_LIBS)
tests_ddp_test_ddp_memory_LDADD = liballocfail.la $(LDADD) -ldl

# The reducers on the test device.
DDP_FAR_TESTS = \
	tests/ddp/test_ddp_far \
	tests/ddp/test_tree_far
check_PROGRAMS += $(DDP_FAR_TESTS)
$(DDP_FAR_TESTS): libfar.la $(DDP_TEST_LIBS)
$(DDP_FAR_TESTS): LDADD = libfar.la $(DDP_TEST_LIBS) $(TEST_LIBS)
$(DDP_FAR_TESTS): AM_LDFLAGS += $(FAR_FLAGS)

# powersgd on the emulated device "cuda" (tests/cuda).
DDP_CUDA_TESTS = tests/ddp/test_powersgd_cuda
check_PROGRAMS += $(DDP_CUDA_TESTS)
tests_ddp_test_powersgd_cuda_LDADD = $(DDP_TEST_LIBS) $(TEST_LIBS) -ldl
EXTRA_tests_ddp_test_powersgd_cuda_DEPENDENCIES = $(EMU_MODULE)
# End of tests/ddp
