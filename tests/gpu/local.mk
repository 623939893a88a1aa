# SPDX-License-Identifier: BSD-3-Clause
# What has to be seen on a GPU (run), and the same on the emulated one.
EXTRA_DIST += tests/gpu/run tests/gpu/pack
# tests/gpu/run starts this program, which fills a GPU's memory.
EXTRA_PROGRAMS += tests/gpu/hog
CLEANFILES += tests/gpu/hog
tests_gpu_hog_LDADD = libdev.la libbase.la -ldl
dist_check_SCRIPTS += tests/gpu/emulated.sh
# (By a variable, as automake leaves out its own rule for a target named here.)
GPU_EMULATED = tests/gpu/emulated.sh.log
$(GPU_EMULATED): tests/gpu/hog
# End of tests/gpu
