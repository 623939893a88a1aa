# SPDX-License-Identifier: BSD-3-Clause
BOOT_TESTS = \
	tests/boot/test_boot \
	tests/boot/test_boot_hang \
	tests/boot/test_boot_threads \
	tests/boot/test_spawn \
	tests/boot/test_spawn_hub
check_PROGRAMS += $(BOOT_TESTS)
BOOT_TEST_LIBS = libboot.la libbase.la
$(BOOT_TESTS): $(BOOT_TEST_LIBS)
$(BOOT_TESTS): LDADD = $(BOOT_TEST_LIBS) $(PMIX_LIBS) $(TEST_LIBS)

tests_boot_test_boot_hang_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)

# test_spawn starts this program, and looks at its ranks.
EXTRA_PROGRAMS += tests/boot/spawn_probe
CLEANFILES += tests/boot/spawn_probe
tests_boot_spawn_probe_SOURCES = tests/boot/spawn_probe.c
tests_boot_spawn_probe_LDADD = $(BOOT_TEST_LIBS) $(PMIX_LIBS)
tests_boot_test_spawn_CPPFLAGS = $(AM_CPPFLAGS) \
	-DPROBE='"$(abs_builddir)/tests/boot/spawn_probe"'
EXTRA_tests_boot_test_spawn_DEPENDENCIES = tests/boot/spawn_probe
# End of tests/boot
