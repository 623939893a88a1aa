# SPDX-License-Identifier: BSD-3-Clause
NN_TESTS = \
	tests/nn/test_batch_check \
	tests/nn/test_cost \
	tests/nn/test_exec \
	tests/nn/test_exec_alloc \
	tests/nn/test_exec_grad \
	tests/nn/test_fuse \
	tests/nn/test_graph \
	tests/nn/test_graph_errors \
	tests/nn/test_graph_hash \
	tests/nn/test_graph_init \
	tests/nn/test_layer_parity \
	tests/nn/test_loss_parity \
	tests/nn/test_parity \
	tests/nn/test_plan \
	tests/nn/test_preset \
	tests/nn/test_preset_curves \
	tests/nn/test_preset_parity \
	tests/nn/test_recompute \
	tests/nn/test_store
check_PROGRAMS += $(NN_TESTS)
NN_TEST_LIBS = libfixtures.la liboptim.la libnn.la libop.la libsimd.la libdev.la \
	libconf.la libbase.la
$(NN_TESTS): $(NN_TEST_LIBS)
$(NN_TESTS): LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)

NN_FAR_TESTS = tests/nn/test_exec_far
check_PROGRAMS += $(NN_FAR_TESTS)
$(NN_FAR_TESTS): libfar.la $(NN_TEST_LIBS)
$(NN_FAR_TESTS): LDADD = libfar.la $(NN_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)
$(NN_FAR_TESTS): AM_LDFLAGS += $(FAR_FLAGS)

# Graphs on the emulated device "cuda" (tests/cuda).
NN_PRESET_TESTS = tests/nn/test_preset_parity
$(NN_PRESET_TESTS): $(EMU_MODULE)
tests_nn_test_preset_parity_LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS) -ldl
NN_CUDA_TESTS = tests/nn/test_exec_cuda
check_PROGRAMS += $(NN_CUDA_TESTS)
$(NN_CUDA_TESTS): $(EMU_MODULE) $(NN_TEST_LIBS)
$(NN_CUDA_TESTS): LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS) -ldl

tests_nn_test_parity_LDADD = $(LDADD) $(HDF5_LIBS) $(MPI_LIBS)
# End of tests/nn
