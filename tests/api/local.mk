# SPDX-License-Identifier: BSD-3-Clause
# libcddp as it is installed; the scripts compile with the compiler of the build.
AM_TESTS_ENVIRONMENT = CC='$(CC)'; export CC; MAKE='$(MAKE)'; export MAKE;
dist_check_SCRIPTS += tests/api/own_loop.sh tests/api/plugin.sh
EXTRA_DIST += tests/api/check.h tests/api/bad_plugin.c tests/api/plugin_gradient.c
EXTRA_DIST += tests/api/pair_plugin.c
EXTRA_DIST += tests/api/install.sh

check_PROGRAMS += tests/api/test_api
tests_api_test_api_SOURCES = tests/api/test_api.c
tests_api_test_api_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_api_test_api_LDADD = libapi.la libcmd.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS) \
	$(TEST_LIBS)
check_PROGRAMS += tests/api/test_fields
tests_api_test_fields_SOURCES = tests/api/test_fields.c
tests_api_test_fields_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_api_test_fields_LDADD = libapi.la libcmd.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS) \
	$(TEST_LIBS)
check_PROGRAMS += tests/api/test_host
tests_api_test_host_SOURCES = tests/api/test_host.c tests/lib/german.h
tests_api_test_host_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_api_test_host_LDADD = libapi.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS) \
	$(TEST_LIBS)
check_PROGRAMS += tests/api/test_model
tests_api_test_model_SOURCES = tests/api/test_model.c
tests_api_test_model_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests
tests_api_test_model_LDADD = libapi.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS) \
	$(TEST_LIBS)

check_PROGRAMS += tests/api/test_hook
tests_api_test_hook_SOURCES = tests/api/test_hook.c
tests_api_test_hook_CFLAGS = $(TEST_CFLAGS) -I$(srcdir)/tests $(HDF5_CFLAGS) \
	$(MPI_CFLAGS)
tests_api_test_hook_LDADD = libapi.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS) \
	$(TEST_LIBS)
# End of tests/api
