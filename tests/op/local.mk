# SPDX-License-Identifier: BSD-3-Clause
OP_RIG = tests/op/op_cases.c tests/op/op_cases.h \
	tests/op/rows_activation.inc \
	tests/op/rows_batchnorm.inc \
	tests/op/rows_combine.inc \
	tests/op/rows_conv.inc \
	tests/op/rows_dropout.inc \
	tests/op/rows_linear.inc \
	tests/op/rows_loss.inc \
	tests/op/rows_norm.inc \
	tests/op/rows_perf.inc \
	tests/op/rows_pointwise.inc \
	tests/op/rows_pool.inc \
	tests/op/rows_recurrent.inc \
	tests/op/rows_reduce.inc \
	tests/op/rows_resize.inc \
	tests/op/rows_softmax.inc \
	tests/op/rows_spread.inc \
	tests/op/rows_token.inc \
	tests/op/rows_transpose.inc \
	tests/op/rows_view.inc \
	tests/op/rows_window.inc \
	tests/op/op_rig.c tests/op/op_rig.h
OP_TEST_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/op
OP_TEST_LIBS = libop.la libdev.la libbase.la $(TEST_LIBS)

check_PROGRAMS += tests/op/test_op_check
tests_op_test_op_check_SOURCES = tests/op/test_op_check.c $(OP_RIG)
tests_op_test_op_check_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_check_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_check_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_grad
tests_op_test_op_grad_SOURCES = tests/op/test_op_grad.c $(OP_RIG)
tests_op_test_op_grad_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_grad_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_grad_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_pool
tests_op_test_op_pool_SOURCES = tests/op/test_op_pool.c $(OP_RIG)
tests_op_test_op_pool_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_pool_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_pool_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_support
tests_op_test_op_support_SOURCES = tests/op/test_op_support.c $(OP_RIG)
tests_op_test_op_support_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_support_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_support_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_alloc
tests_op_test_op_alloc_SOURCES = tests/op/test_op_alloc.c $(OP_RIG)
tests_op_test_op_alloc_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_alloc_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_alloc_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_chain
tests_op_test_op_chain_SOURCES = tests/op/test_op_chain.c $(OP_RIG)
tests_op_test_op_chain_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_test_op_chain_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_chain_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_shape
tests_op_test_op_shape_SOURCES = tests/op/test_op_shape.c
tests_op_test_op_shape_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_shape_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_spread
tests_op_test_op_spread_SOURCES = tests/op/test_op_spread.c
tests_op_test_op_spread_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_spread_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_add
tests_op_test_op_add_SOURCES = tests/op/test_op_add.c
tests_op_test_op_add_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_add_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_isa
tests_op_test_isa_SOURCES = tests/op/test_isa.c
tests_op_test_isa_CFLAGS = $(TEST_CFLAGS)
tests_op_test_isa_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_gemm
tests_op_test_gemm_SOURCES = tests/op/test_gemm.c
tests_op_test_gemm_CFLAGS = $(TEST_CFLAGS)
tests_op_test_gemm_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_mask
tests_op_test_op_mask_SOURCES = tests/op/test_op_mask.c
tests_op_test_op_mask_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_mask_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_math
tests_op_test_op_math_SOURCES = tests/op/test_op_math.c
tests_op_test_op_math_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_math_LDADD = $(OP_TEST_LIBS)

check_PROGRAMS += tests/op/test_op_team
tests_op_test_op_team_SOURCES = tests/op/test_op_team.c
tests_op_test_op_team_CFLAGS = $(TEST_CFLAGS)
tests_op_test_op_team_LDADD = $(OP_TEST_LIBS)

# Not a test: each op's speed against what the machine can do at most.
# make tests/op/perf_op && tests/op/perf_op 2 attention
EXTRA_PROGRAMS += tests/op/perf_op
tests_op_perf_op_SOURCES = tests/op/perf_op.c src/cmd/bench_peak.c $(OP_RIG)
tests_op_perf_op_CPPFLAGS = $(OP_TEST_CPPFLAGS)
tests_op_perf_op_CFLAGS = $(TEST_CFLAGS)
tests_op_perf_op_LDADD = $(OP_TEST_LIBS)
# End of tests/op
