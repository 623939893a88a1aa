# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_XXHASH], [
  CDDP_NEED([XXHASH], [xxhash], [libxxhash], [xxhash.h], [xxhash], [xxHash],
    [libxxhash-dev], [xxhash])
  CDDP_XXHASH_CHOICE
])

# CDDP_XXHASH_CHOICE: define XXHASH_DISPATCH if the library can choose the vector
# instructions of the processor. It can on x86, if it was built with this option.
AC_DEFUN([CDDP_XXHASH_CHOICE], [
  cddp_save_LIBS=$LIBS
  cddp_save_CPPFLAGS=$CPPFLAGS
  LIBS="$XXHASH_LIBS $LIBS"
  CPPFLAGS="$XXHASH_CFLAGS $CPPFLAGS"
  AC_MSG_CHECKING([for the dispatcher of xxHash])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <xxh_x86dispatch.h>]],
      [[XXH3_state_t *s = XXH3_createState();
        return (int)(XXH3_64bits("", 0) + XXH3_64bits_update(s, "", 0));]])],
    [AC_MSG_RESULT([yes])
     AC_DEFINE([XXHASH_DISPATCH], [1],
       [Define to 1 if libxxhash chooses vector instructions at run time.])],
    [AC_MSG_RESULT([no])])
  CPPFLAGS=$cddp_save_CPPFLAGS
  LIBS=$cddp_save_LIBS
])
