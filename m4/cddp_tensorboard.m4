# SPDX-License-Identifier: BSD-3-Clause
# CDDP_TENSORBOARD: TensorBoard's event files need libprotobuf-c with its
# compiler protoc-c, and CRC32C of ISA-L. Without one of them they are left out.
AC_DEFUN([CDDP_TENSORBOARD], [
  CDDP_WITH([protobufc], [libprotobuf-c])
  CDDP_FIND([PROTOBUFC], [protobufc], [libprotobuf-c],
    [protobuf-c/protobuf-c.h], [protobuf-c])
  CDDP_WITH([isal], [ISA-L])
  CDDP_FIND([ISAL], [isal], [libisal], [isa-l/crc.h], [isal])
  AC_CHECK_PROG([PROTOC_C], [protoc-c], [protoc-c])
  AS_IF([test $have_protobufc = yes && test -z "$PROTOC_C"],
    [have_protobufc=no
     summary_protobufc="no (without its compiler protoc-c)"])
  AS_IF([test $have_protobufc = no],
    [AS_CASE([$with_protobufc], [auto|no], [],
      [AC_MSG_ERROR([libprotobuf-c or protoc-c was not found: install dnl
libprotobuf-c-dev and protobuf-c-compiler (Debian, Ubuntu) or protobuf-c (Spack), dnl
or leave out --with-protobufc])])])
  AS_IF([test $have_isal = no],
    [AS_CASE([$with_isal], [auto|no], [],
      [AC_MSG_ERROR([ISA-L was not found: install libisal-dev (Debian, Ubuntu) dnl
or isa-l (Spack), or leave out --with-isal])])])
  summary_tensorboard=no
  AS_IF([test $have_protobufc = yes && test $have_isal = yes],
    [summary_tensorboard=yes
     AC_DEFINE([HAVE_TENSORBOARD], [1],
       [libprotobuf-c, its compiler and ISA-L were found.])],
    [PROTOBUFC_CFLAGS= PROTOBUFC_LIBS=])
  AS_IF([test $have_isal = yes],
    [cddp_save_CPPFLAGS=$CPPFLAGS
     CPPFLAGS="$CPPFLAGS $ISAL_CFLAGS"
     AC_CHECK_HEADER([isa-l/igzip_lib.h],
       [AC_DEFINE([HAVE_ISAL], [1], [ISA-L decompresses chunks of data.])])
     CPPFLAGS=$cddp_save_CPPFLAGS])
  AM_CONDITIONAL([TENSORBOARD], [test $summary_tensorboard = yes])
])
