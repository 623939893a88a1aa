# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_CUDA], [
  CDDP_UNUSED([cuda], [CUDA], [cuda_runtime.h],
    [$CUDA_HOME $CUDA_PATH /usr/local/cuda])
])
