# SPDX-License-Identifier: BSD-3-Clause
SIMD_TESTS = \
	tests/simd/test_isa \
	tests/simd/test_team
check_PROGRAMS += $(SIMD_TESTS)
SIMD_TEST_LIBS = libsimd.la libbase.la
$(SIMD_TESTS): $(SIMD_TEST_LIBS)
$(SIMD_TESTS): LDADD = $(SIMD_TEST_LIBS) $(TEST_LIBS)
# End of tests/simd
