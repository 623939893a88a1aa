# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_JANSSON], [
  CDDP_NEED([JANSSON], [jansson], [jansson], [jansson.h], [jansson], [jansson],
    [libjansson-dev], [jansson])
])
