# SPDX-License-Identifier: BSD-3-Clause
OP_TESTS = \
	tests/op/test_gemm \
	tests/op/test_op_add \
	tests/op/test_op_alloc \
	tests/op/test_op_broadcast \
	tests/op/test_op_chain \
	tests/op/test_op_check \
	tests/op/test_op_grad \
	tests/op/test_op_mask \
	tests/op/test_op_math \
	tests/op/test_op_pool \
	tests/op/test_op_shape \
	tests/op/test_op_support
check_PROGRAMS += $(OP_TESTS)
OP_TEST_LIBS = libfixtures.la libop.la libsimd.la libdev.la libbase.la
$(OP_TESTS): $(OP_TEST_LIBS)
$(OP_TESTS): LDADD = $(OP_TEST_LIBS) $(TEST_LIBS)

# Ops on the test device.
OP_FAR_TESTS = tests/op/test_op_far tests/op/test_op_hash tests/op/test_op_step
check_PROGRAMS += $(OP_FAR_TESTS)
$(OP_FAR_TESTS): libfar.la $(OP_TEST_LIBS)
$(OP_FAR_TESTS): LDADD = libfar.la $(OP_TEST_LIBS) $(TEST_LIBS)
$(OP_FAR_TESTS): AM_LDFLAGS += $(FAR_FLAGS)

# Not a test: each op's speed against what the machine can do at most.
# make tests/op/perf_op && tests/op/perf_op 2 attention
EXTRA_PROGRAMS += tests/op/perf_op
tests_op_perf_op_SOURCES = tests/op/perf_op.c src/cmd/bench_peak.c
tests_op_perf_op_LDADD = $(OP_TEST_LIBS) $(TEST_LIBS)
# End of tests/op
