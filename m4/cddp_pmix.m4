# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_PMIX], [
  CDDP_NEED([PMIX], [pmix], [pmix], [pmix.h], [pmix], [PMIx],
    [libpmix-dev], [pmix])
])
