# SPDX-License-Identifier: BSD-3-Clause
# CDDP_HDF5: parallel HDF5 (with MPI) if it is there, else serial.
# --with-mpi insists on the parallel one, --without-mpi takes the serial one.
# Sets have_parallel_hdf5, HDF5_CFLAGS, HDF5_LIBS, MPI_CFLAGS, MPI_LIBS and
# defines HAVE_PARALLEL_HDF5.
AC_DEFUN([CDDP_HDF5], [
  AC_ARG_WITH([mpi],
    [AS_HELP_STRING([--with-mpi],
      [MPI-IO through parallel HDF5 @<:@default=if found@:>@])],
    [], [with_mpi=auto])
  have_parallel_hdf5=no
  MPI_CFLAGS=
  MPI_LIBS=
  AS_IF([test "x$with_mpi" != xno], [CDDP_HDF5_PARALLEL])
  AS_IF([test $have_parallel_hdf5 = no && test "x$with_mpi" = xyes],
    [AC_MSG_ERROR([parallel HDF5 was not found (--with-mpi): dnl
install libhdf5-openmpi-dev (Debian) or spack package hdf5+mpi])])
  AS_IF([test $have_parallel_hdf5 = yes],
    [AC_DEFINE([HAVE_PARALLEL_HDF5], [1], [parallel HDF5 is built in])],
    [CDDP_HDF5_SERIAL])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
])

# Debian calls the parallel builds hdf5-openmpi and hdf5-mpich; elsewhere
# hdf5.pc may be either, which only its headers tell.
AC_DEFUN([CDDP_HDF5_PARALLEL], [
  PKG_CHECK_MODULES([MPI], [ompi-c],
    [PKG_CHECK_MODULES([HDF5], [hdf5-openmpi], [have_parallel_hdf5=yes],
      [PKG_CHECK_MODULES([HDF5], [hdf5], [have_parallel_hdf5=try], [:])])],
    [PKG_CHECK_MODULES([MPI], [mpich],
      [PKG_CHECK_MODULES([HDF5], [hdf5-mpich], [have_parallel_hdf5=yes],
        [PKG_CHECK_MODULES([HDF5], [hdf5], [have_parallel_hdf5=try], [:])])],
      [:])])
  AS_IF([test $have_parallel_hdf5 != no], [CDDP_HDF5_PARALLEL_TRY])
  AS_IF([test $have_parallel_hdf5 = no],
    [MPI_CFLAGS=
     MPI_LIBS=
     AS_UNSET([HDF5_CFLAGS])
     AS_UNSET([HDF5_LIBS])])
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
  PKG_CHECK_MODULES([HDF5], [hdf5-serial], [],
    [CDDP_PKG([HDF5], [hdf5], [libhdf5-dev], [hdf5])])
])
