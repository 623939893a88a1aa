# SPDX-License-Identifier: BSD-3-Clause
# CDDP_HDF5: parallel HDF5 (with MPI) if it is there, else serial.
AC_DEFUN([CDDP_HDF5], [
  have_parallel_hdf5=no
  PKG_CHECK_MODULES([HDF5], [hdf5-openmpi], [have_parallel_hdf5=yes],
    [CDDP_PKG([HDF5], [hdf5], [libhdf5-dev], [hdf5])])
  AS_IF([test $have_parallel_hdf5 = yes],
    [AC_DEFINE([HAVE_PARALLEL_HDF5], [1], [parallel HDF5 is built in])
     PKG_CHECK_MODULES([MPI], [ompi-c])])
])
