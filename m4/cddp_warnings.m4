# SPDX-License-Identifier: BSD-3-Clause
# CDDP_WARNINGS: -std=c11 and the warnings we keep; --enable-werror for CI.
AC_DEFUN([CDDP_WARNINGS], [
  AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make warnings errors (CI does)])],
    [], [enable_werror=no])
  CDDP_WARN_CFLAGS="-std=c11 -Wall -Wextra -Wshadow -Wstrict-prototypes dnl
-Wmissing-prototypes -Wvla -Wwrite-strings -Wpointer-arith -Wundef"
  AS_IF([test "x$enable_werror" = xyes],
    [CDDP_WARN_CFLAGS="$CDDP_WARN_CFLAGS -Werror"])
  AS_IF([test "x$enable_werror" = xyes], [NVCC_WERROR="-Werror all-warnings"])
  AC_SUBST([CDDP_WARN_CFLAGS])
  AC_SUBST([NVCC_WERROR])
])
