# SPDX-License-Identifier: BSD-3-Clause
# CDDP_CHECKS: --enable-checks has the program check its own state (base/check.h).
AC_DEFUN([CDDP_CHECKS], [
  AC_ARG_ENABLE([checks],
    [AS_HELP_STRING([--enable-checks],
      [check invariants while running, and abort where one does not hold])],
    [], [enable_checks=no])
  CDDP_CHECK_CPPFLAGS=
  AS_IF([test "x$enable_checks" = xyes], [CDDP_CHECK_CPPFLAGS=-DCDDP_CHECKS=1])
  AC_SUBST([CDDP_CHECK_CPPFLAGS])
])
