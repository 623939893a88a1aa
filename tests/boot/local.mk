# SPDX-License-Identifier: BSD-3-Clause
BOOT_TESTS = \
	tests/boot/test_boot \
	tests/boot/test_boot_threads
check_PROGRAMS += $(BOOT_TESTS)
BOOT_TEST_LIBS = libboot.la libbase.la
$(BOOT_TESTS): $(BOOT_TEST_LIBS)
$(BOOT_TESTS): LDADD = $(BOOT_TEST_LIBS) $(PMIX_LIBS) $(TEST_LIBS)
# End of tests/boot
