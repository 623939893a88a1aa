# SPDX-License-Identifier: BSD-3-Clause
# What has to be seen on a GPU (run), and the same on the emulated one.
EXTRA_DIST += tests/gpu/run tests/gpu/pack
dist_check_SCRIPTS += tests/gpu/emulated.sh
# End of tests/gpu
