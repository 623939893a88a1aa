# SPDX-License-Identifier: BSD-3-Clause
# CDDP_CRITERION: only the tests need it; without it `make check` stops at once
# with the sentence in tests/lib/no_criterion.h.
AC_DEFUN([CDDP_CRITERION], [
  CDDP_WITH([criterion], [the Criterion test library])
  CDDP_FIND([CRITERION], [criterion], [criterion], [criterion/criterion.h],
    [criterion])
  AS_IF([test $have_criterion = no],
    [AS_CASE([$with_criterion], [auto|no], [],
      [AC_MSG_ERROR([Criterion was not found: install libcriterion-dev dnl
(Debian, Ubuntu) or criterion (Spack), or leave out --with-criterion])])
     summary_criterion="no (make check needs libcriterion-dev)"
     CRITERION_CFLAGS="-include \$(srcdir)/tests/lib/no_criterion.h"])
])
