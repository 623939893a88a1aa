# SPDX-License-Identifier: BSD-3-Clause
NN_TEST_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests
NN_TEST_LIBS = libnn.la libop.la libdev.la libconf.la libbase.la $(TEST_LIBS)
NN_TEST_FIXTURE = tests/nn/fixture.c tests/nn/fixture.h

check_PROGRAMS += tests/nn/test_cost
tests_nn_test_cost_SOURCES = tests/nn/test_cost.c $(NN_TEST_FIXTURE)
tests_nn_test_cost_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_cost_LDADD = $(NN_TEST_LIBS)

check_PROGRAMS += tests/nn/test_exec tests/nn/test_exec_alloc \
	tests/nn/test_exec_grad \
	tests/nn/test_graph tests/nn/test_graph_errors \
	tests/nn/test_graph_hash \
	tests/nn/test_graph_init tests/nn/test_plan tests/nn/test_preset \
	tests/nn/test_recompute tests/nn/test_fuse \
	tests/nn/test_store

tests_nn_test_exec_SOURCES = tests/nn/test_exec.c $(NN_TEST_FIXTURE)
tests_nn_test_exec_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_exec_LDADD = $(NN_TEST_LIBS)

tests_nn_test_exec_grad_SOURCES = tests/nn/test_exec_grad.c $(NN_TEST_FIXTURE)
tests_nn_test_exec_grad_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_exec_grad_LDADD = $(NN_TEST_LIBS)

tests_nn_test_exec_alloc_SOURCES = tests/nn/test_exec_alloc.c \
	$(NN_TEST_FIXTURE)
tests_nn_test_exec_alloc_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_exec_alloc_LDADD = $(NN_TEST_LIBS)

tests_nn_test_graph_SOURCES = tests/nn/test_graph.c $(NN_TEST_FIXTURE)
tests_nn_test_graph_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_graph_LDADD = $(NN_TEST_LIBS)

tests_nn_test_graph_errors_SOURCES = tests/nn/test_graph_errors.c \
	$(NN_TEST_FIXTURE)
tests_nn_test_graph_errors_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_graph_errors_LDADD = $(NN_TEST_LIBS)

tests_nn_test_graph_hash_SOURCES = tests/nn/test_graph_hash.c \
	$(NN_TEST_FIXTURE)
tests_nn_test_graph_hash_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_graph_hash_LDADD = $(NN_TEST_LIBS)

tests_nn_test_graph_init_SOURCES = tests/nn/test_graph_init.c \
	$(NN_TEST_FIXTURE)
tests_nn_test_graph_init_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_graph_init_LDADD = $(NN_TEST_LIBS)

tests_nn_test_plan_SOURCES = tests/nn/test_plan.c $(NN_TEST_FIXTURE)
tests_nn_test_plan_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_plan_LDADD = $(NN_TEST_LIBS)

tests_nn_test_preset_SOURCES = tests/nn/test_preset.c $(NN_TEST_FIXTURE)
tests_nn_test_preset_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_preset_LDADD = $(NN_TEST_LIBS)

tests_nn_test_store_SOURCES = tests/nn/test_store.c $(NN_TEST_FIXTURE)
tests_nn_test_store_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_store_LDADD = $(NN_TEST_LIBS)

tests_nn_test_fuse_SOURCES = tests/nn/test_fuse.c $(NN_TEST_FIXTURE)
tests_nn_test_fuse_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_fuse_LDADD = $(NN_TEST_LIBS)

tests_nn_test_recompute_SOURCES = tests/nn/test_recompute.c $(NN_TEST_FIXTURE)
tests_nn_test_recompute_CFLAGS = $(NN_TEST_CFLAGS)
tests_nn_test_recompute_LDADD = $(NN_TEST_LIBS)

# Twenty steps against PyTorch: needs optim, HDF5 and jansson, too.
check_PROGRAMS += tests/nn/test_parity
EXTRA_DIST += tests/data/reference.h5 tests/data/reference.json
EXTRA_DIST += tests/python/make_reference.py
tests_nn_test_parity_SOURCES = tests/nn/test_parity.c
tests_nn_test_parity_CFLAGS = $(NN_TEST_CFLAGS) $(HDF5_CFLAGS) $(MPI_CFLAGS) \
	$(JANSSON_CFLAGS)
tests_nn_test_parity_LDADD = liboptim.la $(NN_TEST_LIBS) $(HDF5_LIBS) \
	$(MPI_LIBS) $(JANSSON_LIBS)

# Single layers against PyTorch.
check_PROGRAMS += tests/nn/test_loss_parity
EXTRA_DIST += tests/data/losses.json tests/python/make_loss_reference.py
EXTRA_DIST += tests/python/check_from_pytorch.py
tests_nn_test_loss_parity_SOURCES = tests/nn/test_loss_parity.c \
	tests/nn/fixture.c tests/nn/fixture.h
tests_nn_test_loss_parity_CFLAGS = $(NN_TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_nn_test_loss_parity_LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/nn/test_layer_parity
EXTRA_DIST += tests/data/layers.json tests/python/make_layer_reference.py
tests_nn_test_layer_parity_SOURCES = tests/nn/test_layer_parity.c \
	$(NN_TEST_FIXTURE)
tests_nn_test_layer_parity_CFLAGS = $(NN_TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_nn_test_layer_parity_LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/nn/test_preset_parity
EXTRA_DIST += tests/data/presets.json tests/python/make_preset_reference.py
EXTRA_DIST += tests/data/preset_curves.json \
	tests/data/fields.json tests/python/make_fields_reference.py
PRESET_TEST_FIXTURE = tests/nn/preset_formula.c tests/nn/preset_formula.h \
	$(NN_TEST_FIXTURE)
tests_nn_test_preset_parity_SOURCES = tests/nn/test_preset_parity.c \
	$(PRESET_TEST_FIXTURE)
tests_nn_test_preset_parity_CFLAGS = $(NN_TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_nn_test_preset_parity_LDADD = $(NN_TEST_LIBS) $(JANSSON_LIBS)
check_PROGRAMS += tests/nn/test_preset_curves
tests_nn_test_preset_curves_SOURCES = tests/nn/test_preset_curves.c \
	$(PRESET_TEST_FIXTURE)
tests_nn_test_preset_curves_CFLAGS = $(NN_TEST_CFLAGS) $(JANSSON_CFLAGS)
tests_nn_test_preset_curves_LDADD = liboptim.la $(NN_TEST_LIBS) $(JANSSON_LIBS)
# End of tests/nn
