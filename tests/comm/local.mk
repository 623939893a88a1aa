# SPDX-License-Identifier: BSD-3-Clause
COMM_TESTS = \
	tests/comm/node/test_node \
	tests/comm/node/test_node_backoff \
	tests/comm/node/test_node_claim \
	tests/comm/node/test_node_sum \
	tests/comm/test_comm_faults \
	tests/comm/test_comm_plan \
	tests/comm/test_comm_slot \
	tests/comm/test_comm_span \
	tests/comm/test_comm_split \
	tests/comm/test_comm_stage \
	tests/comm/test_comm_still \
	tests/comm/test_comm_table \
	tests/comm/test_comm_threads \
	tests/comm/test_comm_tree \
	tests/comm/test_comm_vote \
	tests/comm/ucx/test_comm_ucx \
	tests/comm/ucx/test_ucx_fabric \
	tests/comm/ucx/test_ucx_gate \
	tests/comm/ucx/test_ucx_node \
	tests/comm/ucx/test_ucx_strangers \
	tests/comm/ucx/test_ucx_tasks \
	tests/comm/watch/test_watch \
	tests/comm/watch/test_watch_liveness
check_PROGRAMS += $(COMM_TESTS)
COMM_TEST_LIBS = libfixtures.la libcomm.la libdev.la libbase.la
$(COMM_TESTS): $(COMM_TEST_LIBS)
$(COMM_TESTS): LDADD = $(COMM_TEST_LIBS) $(TEST_LIBS)
tests_comm_test_comm_split_LDADD = liballocfail.la $(LDADD) -ldl

# These tests use emulated GPUs.
COMM_NCCL_TESTS = tests/comm/test_comm_nccl tests/comm/test_nccl_tree \
	tests/comm/test_nccl_works
check_PROGRAMS += $(COMM_NCCL_TESTS)
$(COMM_NCCL_TESTS): $(COMM_TEST_LIBS) $(EMU_MODULE)
$(COMM_NCCL_TESTS): LDADD = $(COMM_TEST_LIBS) $(TEST_LIBS) -ldl
tests_comm_test_comm_nccl_LDADD = liballocfail.la $(LDADD)

# Groups on the test device.
COMM_FAR_TESTS = tests/comm/test_comm_staged tests/comm/test_staged_faults
check_PROGRAMS += $(COMM_FAR_TESTS)
$(COMM_FAR_TESTS): libfar.la $(COMM_TEST_LIBS)
$(COMM_FAR_TESTS): LDADD = libfar.la $(COMM_TEST_LIBS) $(TEST_LIBS)
$(COMM_FAR_TESTS): AM_LDFLAGS += -Wl,-u,dev_registry
# End of tests/comm
