# SPDX-License-Identifier: BSD-3-Clause
# CDDP_IMPORT: libraries for single kinds of files that cddp-data converts. The
# others are converted without them.
AC_DEFUN([CDDP_IMPORT], [
  CDDP_IMPORT_LIB([LIBPNG], [libpng], [libpng], [png.h], [png], [libpng-dev],
    [libpng])
  CDDP_IMPORT_LIB([LIBJPEG], [libjpeg], [libjpeg], [jpeglib.h], [jpeg],
    [libjpeg-dev], [libjpeg-turbo])
  CDDP_IMPORT_LIB([LIBZIP], [libzip], [libzip], [zip.h], [zip], [libzip-dev],
    [libzip])
  CDDP_IMPORT_LIB([PCRE2], [pcre2], [libpcre2-8], [pcre2.h], [pcre2-8],
    [libpcre2-dev], [pcre2])
])

# CDDP_IMPORT_LIB(NAME, OPTION, MODULE, HEADER, LIBRARY, DEBIAN, SPACK)
AC_DEFUN([CDDP_IMPORT_LIB], [
  CDDP_WITH([$2], [$2])
  CDDP_FIND([$1], [$2], [$3], [$4], [$5])
  AS_IF([test $have_$2 = no],
    [AS_CASE([$with_$2], [auto|no], [],
      [AC_MSG_ERROR([$2 was not found: install $6 (Debian, Ubuntu) dnl
or $7 (Spack), or leave out --with-$2])])],
    [AC_DEFINE([HAVE_$1], [1], [$2 was found.])])
  AM_CONDITIONAL([$1], [test $have_$2 = yes])
])
