# SPDX-License-Identifier: BSD-3-Clause
# What has to be seen on a GPU (run), and the same on the emulated one.
EXTRA_DIST += tests/gpu/run tests/gpu/pack
# tests/gpu/run starts these programs: hog fills a GPU's memory, ranks starts
# ranks that are processes, and own_loop is an example that uses libcddp.
GPU_HELPERS = tests/gpu/hog tests/gpu/own_loop tests/gpu/ranks
EXTRA_PROGRAMS += $(GPU_HELPERS)
CLEANFILES += $(GPU_HELPERS)
tests_gpu_hog_LDADD = libdev.la libbase.la -ldl
tests_gpu_ranks_LDADD = libboot.la libbase.la $(PMIX_LIBS)
tests_gpu_own_loop_SOURCES = examples/c/own-loop.c
tests_gpu_own_loop_LDADD = libapi.la $(TRAIN_LIBS) $(HDF5_LIBS) $(MPI_LIBS)
dist_check_SCRIPTS += tests/gpu/emulated.sh
# (By a variable, as automake leaves out its own rule for a target named here.)
GPU_EMULATED = tests/gpu/emulated.sh.log
$(GPU_EMULATED): $(GPU_HELPERS)
# End of tests/gpu
