# SPDX-License-Identifier: BSD-3-Clause
OPTIM_TESTS = \
	tests/optim/test_ema \
	tests/optim/test_groups \
	tests/optim/test_norm \
	tests/optim/test_optim \
	tests/optim/test_parity \
	tests/optim/test_ranges \
	tests/optim/test_schedule
check_PROGRAMS += $(OPTIM_TESTS)
OPTIM_TEST_LIBS = libfixtures.la liboptim.la libsimd.la libdev.la libconf.la \
	libbase.la
$(OPTIM_TESTS): $(OPTIM_TEST_LIBS)
$(OPTIM_TESTS): LDADD = $(OPTIM_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS)

OPTIM_FAR_TESTS = tests/optim/test_places
check_PROGRAMS += $(OPTIM_FAR_TESTS)
$(OPTIM_FAR_TESTS): libfar.la liballoc.la $(OPTIM_TEST_LIBS)
$(OPTIM_FAR_TESTS): LDADD = libfar.la liballoc.la $(OPTIM_TEST_LIBS) $(JANSSON_LIBS) \
	$(TEST_LIBS)
$(OPTIM_FAR_TESTS): AM_LDFLAGS += $(OPTIM_FAR_FLAGS)

# Optimizers on the emulated device "cuda" (tests/cuda), and on a GPU.
OPTIM_CUDA_TESTS = tests/optim/test_places_cuda tests/optim/test_places_gpu
tests/optim/test_places_gpu.o: AM_CPPFLAGS += \
	-DGPU_PLUGIN='"$(abs_builddir)/.libs/libcddp_cuda.so"'
check_PROGRAMS += $(OPTIM_CUDA_TESTS)
$(OPTIM_CUDA_TESTS): $(EMU_MODULE) $(OPTIM_TEST_LIBS)
$(OPTIM_CUDA_TESTS): LDADD = $(OPTIM_TEST_LIBS) $(JANSSON_LIBS) $(TEST_LIBS) -ldl
# End of tests/optim
