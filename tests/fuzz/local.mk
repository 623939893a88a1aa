# SPDX-License-Identifier: BSD-3-Clause
# What any bytes may be given to: as a unit test, and under libFuzzer.
FUZZ_TARGETS = run_file manifest dataset
FUZZ_FILES = tests/fuzz/fuzz.c tests/fuzz/fuzz.h tests/fuzz/run_file.c \
	tests/fuzz/manifest.c tests/fuzz/dataset.c tests/fuzz/dataset_case.h \
	tests/fuzz/dataset_judge.c tests/fuzz/dataset_leaf.c \
	tests/fuzz/dataset_target.h tests/fuzz/dataset_verdict.c \
	tests/fuzz/dataset_write.c
FUZZ_CFLAGS = $(HDF5_CFLAGS) $(MPI_CFLAGS)
check_PROGRAMS += tests/fuzz/test_flips
tests_fuzz_test_flips_SOURCES = tests/fuzz/test_flips.c $(FUZZ_FILES) \
	$(CKPT_FIXTURE)
tests_fuzz_test_flips_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_fuzz_test_flips_CFLAGS = $(TEST_CFLAGS) $(FUZZ_CFLAGS)
tests_fuzz_test_flips_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)
check_PROGRAMS += tests/fuzz/test_flips_data
tests_fuzz_test_flips_data_SOURCES = tests/fuzz/test_flips_data.c \
	$(HDF5IO_TEST_FILES)
tests_fuzz_test_flips_data_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_fuzz_test_flips_data_CFLAGS = $(HDF5IO_TEST_CFLAGS)
tests_fuzz_test_flips_data_LDADD = $(HDF5IO_TEST_LIBS)
check_PROGRAMS += tests/fuzz/test_cases
tests_fuzz_test_cases_SOURCES = tests/fuzz/test_cases.c $(FUZZ_FILES)
tests_fuzz_test_cases_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_fuzz_test_cases_CFLAGS = $(TEST_CFLAGS) $(FUZZ_CFLAGS)
tests_fuzz_test_cases_LDADD = $(TRAIN_LIBS) $(TEST_LIBS)

# Each target with FUZZ_ENGINE (clang's -fsanitize=fuzzer), in the build that
# `make fuzz` makes: FUZZ_SECONDS for each target.
FUZZ_SECONDS = 600
FUZZ_ENGINE =
FUZZERS = $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)
EXTRA_PROGRAMS += tests/fuzz/fuzz_run_file tests/fuzz/fuzz_manifest \
	tests/fuzz/fuzz_dataset
tests_fuzz_fuzz_run_file_SOURCES = tests/fuzz/entry.c $(FUZZ_FILES)
tests_fuzz_fuzz_run_file_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests \
	-DFUZZ_TARGET=fuzz_run_file
tests_fuzz_fuzz_run_file_CFLAGS = $(AM_CFLAGS) $(FUZZ_CFLAGS)
tests_fuzz_fuzz_run_file_LDFLAGS = $(FUZZ_ENGINE)
tests_fuzz_fuzz_run_file_LDADD = $(TRAIN_LIBS)
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/entry.c $(FUZZ_FILES)
tests_fuzz_fuzz_manifest_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests \
	-DFUZZ_TARGET=fuzz_manifest
tests_fuzz_fuzz_manifest_CFLAGS = $(AM_CFLAGS) $(FUZZ_CFLAGS)
tests_fuzz_fuzz_manifest_LDFLAGS = $(FUZZ_ENGINE)
tests_fuzz_fuzz_manifest_LDADD = $(TRAIN_LIBS)
tests_fuzz_fuzz_dataset_SOURCES = tests/fuzz/entry.c $(FUZZ_FILES)
tests_fuzz_fuzz_dataset_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests \
	-DFUZZ_TARGET=fuzz_dataset
tests_fuzz_fuzz_dataset_CFLAGS = $(AM_CFLAGS) $(FUZZ_CFLAGS)
tests_fuzz_fuzz_dataset_LDFLAGS = $(FUZZ_ENGINE)
tests_fuzz_fuzz_dataset_LDADD = $(TRAIN_LIBS)
.PHONY: fuzz print-fuzz
fuzz:
	MAKE="$(MAKE)" $(srcdir)/tests/fuzz/fuzz $(srcdir) $(FUZZ_SECONDS)
print-fuzz:
	@echo $(FUZZERS)
EXTRA_DIST += tests/fuzz/fuzz tests/fuzz/seeds/manifest.json \
	tests/fuzz/seeds/dataset
clean-local: fuzz-clean
.PHONY: fuzz-clean
fuzz-clean:
	rm -rf fuzz
# End of tests/fuzz
