# SPDX-License-Identifier: BSD-3-Clause
# The emulator of CUDA kernels, stand-ins for CUDA's libraries, and with them the
# plugin for machines without a GPU, libcddp_cuda_emu.so: the same C and .cu files
# as in libcddp_cuda.so. It is never installed. Tests load it by
# $CDDP_CUDA_PLUGIN. All of this needs the headers of CUDA and cuDNN.
SIMT_FILES = tests/cuda/simt.cc tests/cuda/simt.h tests/cuda/simt_run.h \
	tests/cuda/simt_fiber.cc tests/cuda/simt_fiber.h \
	tests/cuda/simt_math.h tests/cuda/simt_memory.h tests/cuda/simt_warp.h
FAKE_FILES = tests/cuda/fake_cuda.h \
	tests/cuda/fake_attention.c tests/cuda/fake_attention.h \
	tests/cuda/fake_conv.c tests/cuda/fake_conv.h \
	tests/cuda/fake_cublaslt.c \
	tests/cuda/fake_cudart.c tests/cuda/fake_cudart.h \
	tests/cuda/fake_cudart_device.c tests/cuda/fake_cudart_graph.c \
	tests/cuda/fake_cudart_memory.c \
	tests/cuda/fake_cudnn.c tests/cuda/fake_cudnn.h \
	tests/cuda/fake_cudnn_plan.c \
	tests/cuda/fake_engine.c \
	tests/cuda/fake_mail.c tests/cuda/fake_mail.h \
	tests/cuda/fake_nccl.c tests/cuda/fake_nccl.h \
	tests/cuda/fake_nccl_run.c \
	tests/cuda/fake_number.h tests/cuda/fake_state.c
CUDA_TEST_FILES = $(SIMT_FILES) $(FAKE_FILES) tests/cuda/simt_now.cc \
	tests/cuda/archs/config.h \
	tests/cuda/simt_kernels.cu tests/cuda/simt_kernels.h
EXTRA_DIST += $(CUDA_TEST_FILES) tests/cuda/test_simt.c \
	tests/cuda/test_fake_cudart.c tests/cuda/test_fake_cublaslt.c \
	tests/cuda/test_fake_cudnn.c tests/cuda/test_fake_nccl.c

EMU_CPPFLAGS = -I$(srcdir)/tests/cuda -I$(srcdir)/tests
EMU_CXXFLAGS = -std=c++17 -Wall -Wextra -Wno-unknown-pragmas \
	$(filter -Werror,$(CDDP_WARN_CFLAGS)) -fPIC -fno-exceptions -fno-rtti \
	-fno-threadsafe-statics -fvisibility=hidden -ffp-contract=off \
	$(CUDA_CFLAGS)
tests/cuda/emu.lo: AM_CPPFLAGS += -DEMU_PLUGIN='"$(abs_builddir)/.libs/libcddp_cuda_emu.so"'
EMU_CXX = $(filter %ccache,$(firstword $(CC))) $(CXX)
EMU_COMPILE = $(DEFS) -I. $(EMU_CPPFLAGS) $(AM_CPPFLAGS) $(CPPFLAGS) \
	$(EMU_CXXFLAGS) $(CXXFLAGS)
EMU_CC_FLAGS = $(DEFS) -I. $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) \
	$(CUDA_CFLAGS) $(CFLAGS) -fPIC
%.emu.o: %.cu
	$(AM_V_CXX)$(MKDIR_P) $(@D) && \
	  $(EMU_CXX) $(EMU_COMPILE) -MD -MP -MF $@.d -x c++ -c -o $@ $<
# How tests/cuda/faults.sh compiles a changed source.
.PHONY: print-emu-cc print-emu-cxx print-emu-libs
print-emu-libs:
	@echo '$(XXHASH_LIBS) -lm -ldl -lpthread'
print-emu-cc:
	@echo '$(CC) @FIRST@ $(EMU_CC_FLAGS)'
print-emu-cxx:
	@echo '$(EMU_CXX) @FIRST@ $(EMU_COMPILE) -x c++'

if CUDA_HEADERS
check_LTLIBRARIES += libsimt.la libcuda_fake.la libcddp_cuda_emu.la
libsimt_la_SOURCES = $(SIMT_FILES)
libsimt_la_CPPFLAGS = $(AM_CPPFLAGS) $(EMU_CPPFLAGS)
libsimt_la_CXXFLAGS = $(EMU_CXXFLAGS)
libcuda_fake_la_SOURCES = $(FAKE_FILES) src/dev/far_queue.c
libcuda_fake_la_CPPFLAGS = $(AM_CPPFLAGS) $(EMU_CPPFLAGS)
libcuda_fake_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS)
libcuda_fake_la_LIBADD = libsimt.la

# What a program needs that calls emu_open; nothing if there is no toolkit.
EMU_MODULE = libcddp_cuda_emu.la
EMU_OBJECTS = $(CUDA_KERNELS:.cu=.emu.o)
libcddp_cuda_emu_la_SOURCES = $(libcddp_cuda_la_SOURCES)
libcddp_cuda_emu_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS) -fopenmp-simd
libcddp_cuda_emu_la_CPPFLAGS = $(AM_CPPFLAGS) -iquote $(srcdir)/tests/cuda/archs
libcddp_cuda_emu_la_LIBADD = libcuda_fake.la liboppure.la libbase.la
libcddp_cuda_emu_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere \
	-export-symbols-regex '^(cddp_cuda|fake_cuda)$$' \
	$(EMU_OBJECTS:%=-Wl,%)
EXTRA_libcddp_cuda_emu_la_DEPENDENCIES = $(EMU_OBJECTS)

CUDA_TESTS = tests/cuda/test_simt tests/cuda/test_fake_cudart \
	tests/cuda/test_fake_cublaslt tests/cuda/test_fake_cudnn \
	tests/cuda/test_fake_nccl
check_PROGRAMS += $(CUDA_TESTS)
CUDA_TEST_LIBS = libcuda_fake.la libbase.la
# Runs kernels at once; no library is in between.
tests_cuda_test_simt_SOURCES = tests/cuda/test_simt.c tests/cuda/simt_now.cc
tests_cuda_test_simt_CXXFLAGS = $(EMU_CXXFLAGS)
tests_cuda_test_simt_CPPFLAGS = $(AM_CPPFLAGS) $(EMU_CPPFLAGS)
tests_cuda_test_simt_CFLAGS = $(AM_CFLAGS) $(TEST_CFLAGS) $(CUDA_CFLAGS)
tests_cuda_test_simt_LDADD = $(SIMT_KERNELS) libsimt.la libbase.la $(TEST_LIBS)
tests_cuda_test_fake_cudart_LDADD = $(SIMT_KERNELS) $(CUDA_TEST_LIBS) $(TEST_LIBS)
tests_cuda_test_fake_nccl_LDADD = libcuda_fake.la libfixtures.la libcomm.la \
	libdev.la libbase.la $(TEST_LIBS)
EXTRA_tests_cuda_test_fake_nccl_DEPENDENCIES = libfixtures.la libcomm.la libdev.la
CUDNN_GRAPH_FILES = src/op/cuda/cudnn_graph.c src/op/cuda/cudnn_plan.c
tests_cuda_test_fake_cudnn_SOURCES = tests/cuda/test_fake_cudnn.c $(CUDNN_GRAPH_FILES)
tests_cuda_test_fake_cudnn_CFLAGS = $(AM_CFLAGS) $(TEST_CFLAGS) $(CUDA_CFLAGS)
tests_cuda_test_fake_cudnn_CPPFLAGS = $(AM_CPPFLAGS) $(EMU_CPPFLAGS)
SIMT_KERNELS = tests/cuda/simt_kernels.emu.o
CLEANFILES += $(EMU_OBJECTS) $(EMU_OBJECTS:=.d) $(SIMT_KERNELS) $(SIMT_KERNELS:=.d)
$(CUDA_TESTS): $(SIMT_KERNELS) $(CUDA_TEST_LIBS)
tests/cuda/%.o: AM_CFLAGS += $(CUDA_CFLAGS)
$(CUDA_TESTS): LDADD = $(CUDA_TEST_LIBS) $(TEST_LIBS)
-include $(EMU_OBJECTS:=.d) $(SIMT_KERNELS:=.d)
else
dist_check_SCRIPTS += tests/cuda/no_toolkit.sh
endif
dist_check_SCRIPTS += tests/cuda/host_compilers.sh tests/cuda/install.sh \
	tests/cuda/registers.sh tests/cuda/two_builds.sh
EXTRA_DIST += tests/cuda/registers
dist_check_SCRIPTS += tests/cuda/faults.sh
tests/cuda/faults.log: tests/op/test_op_cuda tests/dev/test_dev_cuda
# End of tests/cuda
