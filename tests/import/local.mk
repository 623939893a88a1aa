# SPDX-License-Identifier: BSD-3-Clause
IMPORT_TESTS = \
	tests/import/test_cifar \
	tests/import/test_columns \
	tests/import/test_csv \
	tests/import/test_images \
	tests/import/test_npz \
	tests/import/test_text
check_PROGRAMS += $(IMPORT_TESTS)
IMPORT_TEST_LIBS = libfixtures.la libimport.la libhdf5io.la libbase.la
$(IMPORT_TESTS): $(IMPORT_TEST_LIBS)
$(IMPORT_TESTS): LDADD = $(IMPORT_TEST_LIBS) $(HDF5_LIBS) $(ZLIB_LIBS) \
	$(TEST_LIBS)
# End of tests/import
