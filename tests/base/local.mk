# SPDX-License-Identifier: BSD-3-Clause
BASE_TESTS = \
	tests/base/test_bijection \
	tests/base/test_check \
	tests/base/test_clock \
	tests/base/test_crew \
	tests/base/test_err \
	tests/base/test_file \
	tests/base/test_half \
	tests/base/test_hash \
	tests/base/test_log \
	tests/base/test_mem \
	tests/base/test_numeric \
	tests/base/test_opt \
	tests/base/test_opt_reals \
	tests/base/test_opt_map \
	tests/base/test_retry \
	tests/base/test_rng \
	tests/base/test_str \
	tests/base/test_thread \
	tests/base/test_trace \
	tests/base/test_tree
check_PROGRAMS += $(BASE_TESTS)
BASE_TEST_LIBS = libfixtures.la libbase.la
$(BASE_TESTS): $(BASE_TEST_LIBS)
$(BASE_TESTS): LDADD = $(BASE_TEST_LIBS) $(TEST_LIBS)

# The fill of random numbers for other processors than this one.
tests_base_test_rng_SOURCES = tests/base/test_rng.c \
	tests/base/rng_avx2.c tests/base/rng_avx512.c tests/base/rng_plain.c \
	tests/base/rng_variant.h tests/base/rng_variant.inc
tests_base_test_rng_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS) \
	-fno-math-errno -ffp-contract=off
# End of tests/base
