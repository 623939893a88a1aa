# SPDX-License-Identifier: BSD-3-Clause
# Its headers; Slurm itself is used through the environment and its commands.
AC_DEFUN([CDDP_SLURM], [
  CDDP_UNUSED([slurm], [Slurm headers], [slurm/slurm.h], [$SLURM_HOME])
])
