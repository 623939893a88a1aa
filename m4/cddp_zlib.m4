# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_ZLIB], [
  CDDP_NEED([ZLIB], [zlib], [zlib], [zlib.h], [z], [zlib],
    [zlib1g-dev], [zlib-api])
])
