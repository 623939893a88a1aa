# SPDX-License-Identifier: BSD-3-Clause
# The op backend "cuda", a part of the plugin (src/cuda).
CUDA_OP_SOURCES = \
	src/op/cuda/cuda.c \
	src/op/cuda/cuda.h \
	src/op/cuda/device/each.cuh \
	src/op/cuda/device/pack.cuh \
	src/op/cuda/ops/relu.cu \
	src/op/cuda/ops/sum.cu
EXTRA_DIST += $(CUDA_OP_SOURCES)
# End of src/op/cuda
