# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_XXHASH], [
  CDDP_NEED([XXHASH], [xxhash], [libxxhash], [xxhash.h], [xxhash], [xxHash],
    [libxxhash-dev], [xxhash])
])
