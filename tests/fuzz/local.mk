# SPDX-License-Identifier: BSD-3-Clause
# What any bytes may be given to: as a unit test, and under libFuzzer.
check_LTLIBRARIES += libfuzz.la
libfuzz_la_SOURCES = tests/fuzz/fuzz.c tests/fuzz/fuzz.h tests/fuzz/run_file.c \
	tests/fuzz/filter.c tests/fuzz/index.c tests/fuzz/manifest.c tests/fuzz/safetensors.c tests/fuzz/dataset.c tests/fuzz/dataset_case.h \
	tests/fuzz/dataset_judge.c tests/fuzz/dataset_leaf.c \
	tests/fuzz/dataset_target.h tests/fuzz/dataset_verdict.c \
	tests/fuzz/dataset_write.c tests/fuzz/import.c
FUZZ_TESTS = \
	tests/fuzz/test_cases \
	tests/fuzz/test_flips \
	tests/fuzz/test_flips_data
check_PROGRAMS += $(FUZZ_TESTS)
FUZZ_TEST_LIBS = libfixtures.la libfuzz.la libimport.la $(TRAIN_LIBS)
$(FUZZ_TESTS): $(FUZZ_TEST_LIBS)
$(FUZZ_TESTS): LDADD = $(FUZZ_TEST_LIBS) $(HDF5_LIBS) $(TEST_LIBS)

# Each target with FUZZ_ENGINE (clang's -fsanitize=fuzzer), in the build that
# `make fuzz` makes: FUZZ_SECONDS for each target.
FUZZ_SECONDS = 600
FUZZ_ENGINE =
FUZZERS = tests/fuzz/fuzz_run_file tests/fuzz/fuzz_manifest \
	tests/fuzz/fuzz_safetensors tests/fuzz/fuzz_dataset tests/fuzz/fuzz_import \
	tests/fuzz/fuzz_index tests/fuzz/fuzz_filter
EXTRA_PROGRAMS += $(FUZZERS)
tests_fuzz_fuzz_run_file_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_run_file_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_run_file
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_manifest_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_manifest
tests_fuzz_fuzz_safetensors_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_safetensors_CPPFLAGS = $(AM_CPPFLAGS) \
	-DFUZZ_TARGET=fuzz_safetensors
tests_fuzz_fuzz_dataset_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_dataset_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_dataset
tests_fuzz_fuzz_index_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_index_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_index
tests_fuzz_fuzz_filter_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_filter_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_filter
tests_fuzz_fuzz_import_SOURCES = tests/fuzz/entry.c
tests_fuzz_fuzz_import_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_TARGET=fuzz_import
$(FUZZERS): libfuzz.la libimport.la $(TRAIN_LIBS)
$(FUZZERS): LDADD = libfuzz.la libimport.la $(TRAIN_LIBS) $(FUZZ_ENGINE)
.PHONY: fuzz print-fuzz
fuzz:
	MAKE="$(MAKE)" $(srcdir)/tests/fuzz/fuzz $(srcdir) $(FUZZ_SECONDS)
print-fuzz:
	@echo $(FUZZERS)
EXTRA_DIST += tests/fuzz/fuzz tests/fuzz/seeds
clean-local: fuzz-clean
.PHONY: fuzz-clean
fuzz-clean:
	rm -rf fuzz
# End of tests/fuzz
