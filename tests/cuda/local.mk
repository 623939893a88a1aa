# SPDX-License-Identifier: BSD-3-Clause
# The emulator of CUDA kernels, and stand-ins for CUDA's libraries.
EXTRA_DIST += tests/cuda/simt.cc tests/cuda/simt.h tests/cuda/simt_run.h \
	tests/cuda/simt_fiber.cc tests/cuda/simt_fiber.h \
	tests/cuda/simt_math.h tests/cuda/simt_memory.h \
	tests/cuda/simt_now.cc tests/cuda/simt_warp.h
# End of tests/cuda
