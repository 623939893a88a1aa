# SPDX-License-Identifier: BSD-3-Clause
# CDDP_HDF5: parallel HDF5 (with MPI) if it is there, else serial.
# --with-mpi insists on the parallel one, --without-mpi takes the serial one,
# --with-hdf5=DIR takes the one in DIR, whichever it is.
# Sets have_parallel_hdf5, HDF5_CFLAGS, HDF5_LIBS, MPI_CFLAGS, MPI_LIBS and
# defines HAVE_PARALLEL_HDF5.
AC_DEFUN([CDDP_HDF5], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi],
      [MPI-IO through parallel HDF5 @<:@default=if found@:>@])],
    [], [with_mpi=auto])
  AS_CASE([$with_mpi], [auto|yes|no], [],
    [AC_MSG_ERROR([--with-mpi takes no directory: put that of MPI's dnl
pkg-config files into PKG_CONFIG_PATH])])
  CDDP_WITH([hdf5], [HDF5, 1.10 or later])
  AS_CASE([$with_hdf5],
    [no], [AC_MSG_ERROR([cddp cannot be built without HDF5: dnl
leave out --without-hdf5])],
    [auto|yes], [],
    [CDDP_FIND([HDF5], [hdf5], [hdf5], [hdf5.h], [hdf5])])
  have_parallel_hdf5=no
  MPI_CFLAGS=
  MPI_LIBS=
  AS_IF([test "x$with_mpi" != xno], [CDDP_HDF5_PARALLEL])
  AS_IF([test $have_parallel_hdf5 = no && test "x$with_mpi" = xyes],
    [AC_MSG_ERROR([parallel HDF5 was not found (--with-mpi): dnl
install libhdf5-openmpi-dev (Debian, Ubuntu) or hdf5+mpi (Spack)])])
  summary_mpi="no (install libhdf5-openmpi-dev for io: mpi)"
  AS_IF([test $have_parallel_hdf5 = yes],
    [summary_mpi=yes
     AC_DEFINE([HAVE_PARALLEL_HDF5], [1], [parallel HDF5 is built in])],
    [CDDP_HDF5_SERIAL])
  summary_hdf5="yes ($HDF5_LIBS)"
  CDDP_HDF5_CHUNKS
  AC_SUBST([HDF5_CFLAGS])
  AC_SUBST([HDF5_LIBS])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])

# Not in all versions: see hdf5io/chunks.c.
AC_DEFUN([CDDP_HDF5_CHUNKS], [
  cddp_save_LIBS=$LIBS
  LIBS="$HDF5_LIBS $MPI_LIBS $LIBS"
  AC_CHECK_FUNCS([H5Dchunk_iter])
  LIBS=$cddp_save_LIBS
])

# Debian calls the parallel builds hdf5-openmpi and hdf5-mpich; elsewhere
# hdf5.pc may be either, which only its headers tell.
AC_DEFUN([CDDP_HDF5_PARALLEL], [
  PKG_CHECK_MODULES([MPI], [ompi-c], [cddp_mpi=openmpi],
    [PKG_CHECK_MODULES([MPI], [mpich], [cddp_mpi=mpich], [cddp_mpi=no])])
  AS_IF([test $cddp_mpi != no], [
    AS_CASE([$with_hdf5],
      [auto|yes], [PKG_CHECK_MODULES([HDF5], [hdf5-$cddp_mpi], [],
        [PKG_CHECK_MODULES([HDF5], [hdf5], [], [:])])])
    CDDP_HDF5_PARALLEL_TRY])
  AS_IF([test $have_parallel_hdf5 = no],
    [MPI_CFLAGS=
     MPI_LIBS=])
])

AC_DEFUN([CDDP_HDF5_PARALLEL_TRY], [
  AC_MSG_CHECKING([whether this HDF5 and MPI make a program])
  cddp_save_CPPFLAGS=$CPPFLAGS
  cddp_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS $MPI_CFLAGS"
  LIBS="$HDF5_LIBS $MPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[
    #include <hdf5.h>
    #include <mpi.h>
    ]], [[return H5Pset_fapl_mpio(0, MPI_COMM_NULL, MPI_INFO_NULL);]])],
    [have_parallel_hdf5=yes], [have_parallel_hdf5=no])
  CPPFLAGS=$cddp_save_CPPFLAGS
  LIBS=$cddp_save_LIBS
  AC_MSG_RESULT([$have_parallel_hdf5])
])

AC_DEFUN([CDDP_HDF5_SERIAL], [
  AS_CASE([$with_hdf5],
    [auto|yes],
    [AS_UNSET([HDF5_CFLAGS])
     AS_UNSET([HDF5_LIBS])
     PKG_CHECK_MODULES([HDF5], [hdf5-serial], [],
       [PKG_CHECK_MODULES([HDF5], [hdf5], [],
         [AC_MSG_ERROR([HDF5 was not found: install libhdf5-openmpi-dev or dnl
libhdf5-dev (Debian, Ubuntu) or hdf5 (Spack), or name its directory by dnl
--with-hdf5=DIR])])])])
])
