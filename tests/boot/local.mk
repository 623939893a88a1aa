# SPDX-License-Identifier: BSD-3-Clause
BOOT_TEST_LIBS = libboot.la libbase.la $(PMIX_LIBS) $(TEST_LIBS)
check_PROGRAMS += tests/boot/test_boot
tests_boot_test_boot_SOURCES = tests/boot/test_boot.c
tests_boot_test_boot_CFLAGS = $(TEST_CFLAGS)
tests_boot_test_boot_LDADD = $(BOOT_TEST_LIBS)
check_PROGRAMS += tests/boot/test_boot_threads
tests_boot_test_boot_threads_SOURCES = tests/boot/test_boot_threads.c
tests_boot_test_boot_threads_CFLAGS = $(TEST_CFLAGS)
tests_boot_test_boot_threads_LDADD = $(BOOT_TEST_LIBS)
# End of tests/boot
