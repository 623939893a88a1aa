# SPDX-License-Identifier: BSD-3-Clause
# libcddp_cuda.so: all code for GPUs, in a plugin (src/dev/dev_plugin.h). Folders
# add their C files to libcddp_cuda_la_SOURCES and their .cu files to CUDA_KERNELS
# (and what these include to CUDA_PARTS).
libcddp_cuda_la_SOURCES = src/cuda/plugin.c $(CUDA_DEV_FILES) \
	$(CUDA_COMM_FILES)
CUDA_KERNELS = src/comm/nccl/nccl_add.cu src/comm/nccl/nccl_mark.cu
CUDA_PARTS =
EXTRA_DIST += $(CUDA_KERNELS) $(CUDA_PARTS)

# Its own copy of what is common to all; it exports the constant alone.
libcddp_cuda_la_CFLAGS = $(AM_CFLAGS) $(CUDA_CFLAGS) -fopenmp-simd
libcddp_cuda_la_LIBADD = libncclload.la liboppure.la libbase.la $(CUDA_LIBS) $(CUDNN_LIBS)
libcddp_cuda_la_LDFLAGS = -module -avoid-version -shared \
	-export-symbols-regex '^cddp_cuda$$' -Wl,-z,defs $(CUDA_RPATH) \
	$(CUDA_OBJECTS:%=-Wl,%)
EXTRA_libcddp_cuda_la_DEPENDENCIES = $(CUDA_OBJECTS)
if CUDA
pkglib_LTLIBRARIES = libcddp_cuda.la
CUDA_OBJECTS = $(CUDA_KERNELS:.cu=.cu.o)
endif

# Host code in .cu files is C++ that needs no C++ library.
NVCC_FLAGS = -std=c++17 -O3 -ccbin $(NVCC_CCBIN) $(NVCC_GENCODE) -Xptxas -v \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
	$(NVCC_WERROR) $(CUDA_CFLAGS) -I$(srcdir)/src -I$(srcdir)/include -Iinclude -I. \
	$(CDDP_CHECK_CPPFLAGS)
SUFFIXES = .cu .cu.o
AM_V_NVCC = $(am__v_NVCC_@AM_V@)
am__v_NVCC_ = $(am__v_NVCC_@AM_DEFAULT_V@)
am__v_NVCC_0 = @echo "  NVCC    " $@;
# What ptxas says of registers is kept in FILE.cu.o.log, for tests/cuda/registers.sh.
.cu.cu.o:
	$(AM_V_NVCC)$(MKDIR_P) $(@D) && \
	  { $(NVCC) $(NVCC_FLAGS) -MD -MF $@.d -c -o $@ $< 2>$@.log; \
	    status=$$?; grep -v -e '^ptxas info' -e ' bytes stack frame, ' $@.log >&2; \
	    exit $$status; }
# It names the compute capabilities, so that other ones have all compiled anew.
$(CUDA_OBJECTS): config.h
-include $(CUDA_OBJECTS:=.d)
CLEANFILES += $(CUDA_OBJECTS) $(CUDA_OBJECTS:=.d) $(CUDA_OBJECTS:=.log)
# For tests.
PRINTED = NVCC NVCC_FLAGS NVCC_ARCHS pkglibdir
.PHONY: $(PRINTED:%=print-%)
$(PRINTED:%=print-%):
	@echo $($(@:print-%=%))
# End of src/cuda
