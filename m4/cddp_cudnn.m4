# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_CUDNN], [
  CDDP_UNUSED([cudnn], [cuDNN], [cudnn.h],
    [$CUDNN_HOME $CUDA_HOME /usr/local/cuda])
])
