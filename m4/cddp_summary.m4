# SPDX-License-Identifier: BSD-3-Clause
# CDDP_SUMMARY: what is built in, at the end of configure.
AC_DEFUN([CDDP_SUMMARY], [
  AS_ECHO(["
cddp $PACKAGE_VERSION
  compiler             $CC $CFLAGS
  install below        $prefix
  PMIx                 $summary_pmix
  UCX                  $summary_ucx
  oneDNN               $summary_onednn
  HDF5                 $summary_hdf5
  MPI-IO               $summary_mpi
  libyaml              $summary_libyaml
  jansson              $summary_jansson
  xxHash               $summary_xxhash
  hwloc                $summary_hwloc
  zlib                 $summary_zlib
  libprotobuf-c        $summary_protobufc
  ISA-L                $summary_isal
  libdeflate           $summary_deflate
  zstd                 $summary_zstd
  blosc                $summary_blosc
  TensorBoard files    $summary_tensorboard
  libpng               $summary_libpng
  libjpeg              $summary_libjpeg
  libzip               $summary_libzip
  PCRE2                $summary_pcre2
  dygraphs (reports)   $summary_dygraphs
  gnuplot (terminals)  $summary_gnuplot
  Criterion (tests)    $summary_criterion
  CUDA                 $summary_cuda
  Slurm headers        $summary_slurm
  module loads         ${MODULE_REQUIRES:-nothing else}

Next: make && make check && make install"])
])
