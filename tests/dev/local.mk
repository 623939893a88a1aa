# SPDX-License-Identifier: BSD-3-Clause
DEV_TESTS = \
	tests/dev/test_dev \
	tests/dev/test_dev_far \
	tests/dev/test_dev_graph \
	tests/dev/test_dev_plugin \
	tests/dev/test_place
check_PROGRAMS += $(DEV_TESTS)
DEV_TEST_LIBS = libfar.la libdev.la libbase.la
$(DEV_TESTS): $(DEV_TEST_LIBS)
$(DEV_TESTS): LDADD = $(DEV_TEST_LIBS) $(TEST_LIBS)

# The device "cuda" with stand-ins for CUDA's libraries (tests/cuda).
check_PROGRAMS += tests/dev/test_dev_cuda
tests_dev_test_dev_cuda_SOURCES = tests/dev/test_dev_cuda.c \
	src/dev/dev_cuda_arch.c src/dev/dev_cuda_arch.h
tests_dev_test_dev_cuda_LDADD = libfixtures.la libdev.la libbase.la \
	$(TEST_LIBS) -ldl
EXTRA_tests_dev_test_dev_cuda_DEPENDENCIES = $(EMU_MODULE)

# What test_dev_plugin loads; a module is what libtool calls it.
check_LTLIBRARIES += tests/dev/stand_in.la tests/dev/stand_in_old.la \
	tests/dev/stand_in_other.la
tests_dev_stand_in_la_SOURCES = tests/dev/stand_in.c
tests_dev_stand_in_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_dev_stand_in_old_la_SOURCES = tests/dev/stand_in.c
tests_dev_stand_in_old_la_CPPFLAGS = $(AM_CPPFLAGS) -DSTAND_IN_INTERFACE=0
tests_dev_stand_in_old_la_LDFLAGS = $(tests_dev_stand_in_la_LDFLAGS)
tests_dev_stand_in_other_la_SOURCES = tests/dev/stand_in.c
tests_dev_stand_in_other_la_CPPFLAGS = $(AM_CPPFLAGS) -Dcddp_cuda=cddp_other
tests_dev_stand_in_other_la_LDFLAGS = $(tests_dev_stand_in_la_LDFLAGS)
EXTRA_tests_dev_test_dev_plugin_DEPENDENCIES = tests/dev/stand_in.la \
	tests/dev/stand_in_old.la tests/dev/stand_in_other.la
# End of tests/dev
