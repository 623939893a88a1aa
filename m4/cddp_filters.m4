# SPDX-License-Identifier: BSD-3-Clause
# CDDP_FILTERS: libraries that decode chunks of data. Without zstd or blosc, HDF5 reads
# chunks of that filter, if it has a plugin. Without libdeflate, ISA-L decodes gzip, or
# zlib.
AC_DEFUN([CDDP_FILTERS], [
  CDDP_FILTER([ZSTD], [zstd], [libzstd], [zstd.h], [zstd], [libzstd-dev], [zstd])
  CDDP_FILTER([BLOSC], [blosc], [blosc], [blosc.h], [blosc], [libblosc-dev], [c-blosc])
  CDDP_FILTER([DEFLATE], [deflate], [libdeflate], [libdeflate.h], [deflate],
    [libdeflate-dev], [libdeflate])
])

# CDDP_FILTER(NAME, OPTION, MODULE, HEADER, LIBRARY, DEBIAN, SPACK): as CDDP_FIND; it
# defines HAVE_NAME.
AC_DEFUN([CDDP_FILTER], [
  CDDP_WITH([$2], [$3])
  CDDP_FIND([$1], [$2], [$3], [$4], [$5])
  AS_IF([test $have_$2 = no],
    [AS_CASE([$with_$2], [auto|no], [],
      [AC_MSG_ERROR([$3 was not found: install $6 (Debian, Ubuntu) or $7 (Spack), dnl
or leave out --with-$2])])])
  AS_IF([test $have_$2 = yes],
    [AC_DEFINE([HAVE_$1], [1], [$3 decodes chunks of data.])])
])
