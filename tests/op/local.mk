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

# The real cuDNN, without a GPU and without the driver's library.
EXTRA_DIST += tests/op/libcuda_standin.c tests/op/test_cudnn_plans.c \
	tests/data/a100.json tests/data/h200.json
if CUDA_HEADERS
check_PROGRAMS += tests/op/test_cudnn_plans
tests_op_test_cudnn_plans_SOURCES = tests/op/test_cudnn_plans.c \
	src/op/cuda/attention_plan.c src/op/cuda/conv_plan.c \
	src/op/cuda/cudnn_graph.c src/op/cuda/cudnn_plan.c
tests_op_test_cudnn_plans_CFLAGS = $(AM_CFLAGS) $(TEST_CFLAGS) $(CUDA_CFLAGS)
tests_op_test_cudnn_plans_LDADD = libfixtures.la liboptim.la libnn.la libop.la \
	libsimd.la libdev.la libconf.la libbase.la $(CUDNN_LIBS) $(TEST_LIBS)
tests_op_test_cudnn_plans_LDFLAGS = $(AM_LDFLAGS) $(CUDA_RPATH)
CUDNN_STANDINS = tests/op/libcuda_standin.so tests/op/libcuda_loads.so
EXTRA_tests_op_test_cudnn_plans_DEPENDENCIES = $(CUDNN_STANDINS)
tests/op/libcuda_loads.so: STANDIN_FLAGS = -DSTANDIN_LOADS
$(CUDNN_STANDINS): tests/op/libcuda_standin.c
	$(AM_V_CC)$(MKDIR_P) $(@D) && \
	  $(CC) $(STANDIN_FLAGS) -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ \
	    $(srcdir)/tests/op/libcuda_standin.c
CLEANFILES += $(CUDNN_STANDINS)
endif
# The thread that makes plans, with stand-ins for the functions that it calls.
EXTRA_DIST += tests/op/test_attention_share.c
if CUDA_HEADERS
check_PROGRAMS += tests/op/test_attention_share
tests_op_test_attention_share_SOURCES = tests/op/test_attention_share.c \
	src/op/cuda/attention_share.c
tests_op_test_attention_share_CFLAGS = $(AM_CFLAGS) $(TEST_CFLAGS) $(CUDA_CFLAGS)
tests_op_test_attention_share_LDADD = libbase.la $(TEST_LIBS)
tests_op_test_attention_share_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=thread_start
endif
# Ops on the emulated device "cuda" (tests/cuda).
OP_CUDA_TESTS = tests/op/test_op_cuda tests/op/test_op_half_cuda \
	tests/op/test_op_step_cuda
check_PROGRAMS += $(OP_CUDA_TESTS)
$(OP_CUDA_TESTS): $(EMU_MODULE) liballoc.la $(OP_TEST_LIBS)
$(OP_CUDA_TESTS): LDADD = liballoc.la $(OP_TEST_LIBS) $(TEST_LIBS) -ldl

# Not a test: each op's speed against what the machine can do at most.
# make tests/op/perf_op && tests/op/perf_op 2 attention
EXTRA_PROGRAMS += tests/op/perf_op
tests_op_perf_op_SOURCES = tests/op/perf_op.c src/cmd/bench_peak.c
tests_op_perf_op_LDADD = $(OP_TEST_LIBS) $(TEST_LIBS)
# End of tests/op
