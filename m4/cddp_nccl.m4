# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_NCCL], [
  CDDP_UNUSED([nccl], [NCCL], [nccl.h], [$NCCL_HOME])
])
