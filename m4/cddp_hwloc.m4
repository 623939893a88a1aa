# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_HWLOC], [
  CDDP_NEED([HWLOC], [hwloc], [hwloc], [hwloc.h], [hwloc], [hwloc],
    [libhwloc-dev], [hwloc])
])
