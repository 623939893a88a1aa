# SPDX-License-Identifier: BSD-3-Clause
# CDDP_PKG(NAME, MODULE, DEBIAN, SPACK): a mandatory library found by pkg-config;
# defines NAME_CFLAGS and NAME_LIBS, or stops with the sentence that mends it.
AC_DEFUN([CDDP_PKG], [
  PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 was not found: install $3 (Debian) or spack package $4])])
])

# Threads and libm, which every program needs.
AC_DEFUN([CDDP_LIB_MATH_THREADS], [
  AC_SEARCH_LIBS([pthread_create], [pthread])
  AC_SEARCH_LIBS([exp], [m])
])
