# SPDX-License-Identifier: BSD-3-Clause
# CDDP_CUDA: what libcddp_cuda.so is built with: nvcc and cudart (12.0 or later),
# cublasLt, cuDNN (9.10 or later) and NCCL (2.20 or later). All or none:
# summary_cuda says which, and of none why. What is missing is an error only with
# --with-cuda, --with-cudnn or --with-nccl; a wrong --with-cuda-arch always is.
#
# Sets NVCC, NVCC_CCBIN, NVCC_ARCHS (words such as 80 and 90a), NVCC_GENCODE,
# CUDA_CFLAGS, CUDA_LIBS, CUDNN_LIBS, NCCL_LIBS, CUDA_RPATH; the conditionals CUDA
# (the plugin is built) and CUDA_HEADERS (tests can compile its sources; so also
# with --with-cuda-arch=none, which builds no plugin).
AC_DEFUN([CDDP_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [CUDA (below DIR), for training on GPUs])], [], [with_cuda=auto])
  AC_ARG_WITH([cudnn], [AS_HELP_STRING([--with-cudnn=DIR],
    [cuDNN below DIR, if it is not below CUDA's directory])],
    [], [with_cudnn=auto])
  AC_ARG_WITH([nccl], [AS_HELP_STRING([--with-nccl=DIR],
    [NCCL below DIR, if it is not below CUDA's directory])],
    [], [with_nccl=auto])
  AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST],
    [compute capabilities to build for, such as 80,90a (default: all that
     nvcc knows of 75 80 86 89 90 90a 100 120), or none])], [], [with_cuda_arch=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])

  cuda_why=
  summary_cuda=no
  AS_IF([test "x$with_cuda" = xno], [cuda_why="--without-cuda"],
    [CDDP_CUDA_FIND])
  AS_IF([test -n "$cuda_why"],
    [AS_CASE([$with_cuda:$with_cudnn:$with_nccl], [auto:auto:auto|no:*], [],
       [AC_MSG_ERROR([$cuda_why])])
     summary_cuda="no ($cuda_why)"
     NVCC_ARCHS= NVCC_GENCODE= CUDA_CFLAGS= CUDA_LIBS= CUDNN_LIBS= NCCL_LIBS=
     CUDA_RPATH=],
    [summary_cuda="yes ($cuda_version, cuDNN $cudnn_version, dnl
NCCL $nccl_version, for${NVCC_ARCHS:- no GPU, only to be emulated})"])
  AM_CONDITIONAL([CUDA], [test -z "$cuda_why" && test -n "$NVCC_ARCHS"])
  AM_CONDITIONAL([CUDA_HEADERS], [test -z "$cuda_why"])
  AC_DEFINE_UNQUOTED([CUDA_SUMMARY], ["$summary_cuda"],
    [What configure found of CUDA])
  AC_DEFINE_UNQUOTED([CUDA_TOOLKIT], ["$cuda_version"], [Version of CUDA])
  AC_DEFINE_UNQUOTED([CUDA_ARCHS], ["$NVCC_ARCHS"],
    [Compute capabilities that the plugin is built for])
  m4_foreach([cddp_name], [NVCC_CCBIN, NVCC_ARCHS, NVCC_GENCODE, CUDA_CFLAGS,
    CUDA_LIBS, CUDNN_LIBS, NCCL_LIBS, CUDA_RPATH], [AC_SUBST(cddp_name)])
])

# Every step but the first one is skipped once cuda_why is set.
AC_DEFUN([CDDP_CUDA_FIND], [
  CDDP_CUDA_NVCC
  cuda_dirs=
  AS_CASE([$with_cuda], [auto|yes], [], [cuda_dirs=$with_cuda])
  cuda_dirs="$cuda_dirs $cuda_top $CUDA_HOME $CUDA_PATH /usr/local/cuda /usr"
  CUDA_RPATH=
  CDDP_CUDA_PART([CUDA], [cudart], [cuda_runtime.h], [cuda_runtime cu13 cu12],
    [], [$cuda_dirs])
  CDDP_CUDA_PART([CUDA], [cublasLt], [cublasLt.h], [cublas cu13 cu12], [],
    [$cuda_dirs])
  AS_CASE([$with_cudnn], [auto|yes], [cudnn_dirs=$cuda_dirs],
    [cudnn_dirs=$with_cudnn])
  CDDP_CUDA_PART([CUDNN], [cudnn], [cudnn.h], [cudnn], [cudnn_version.h],
    [$cudnn_dirs $CUDNN_HOME])
  CDDP_CUDA_VERSION([cuDNN], [cudnn], [CUDNN_MAJOR], [CUDNN_MINOR],
    [CUDNN_PATCHLEVEL], [9], [10])
  AS_CASE([$with_nccl], [auto|yes], [nccl_dirs=$cuda_dirs],
    [nccl_dirs=$with_nccl])
  CDDP_CUDA_PART([NCCL], [nccl], [nccl.h], [nccl], [nccl.h],
    [$nccl_dirs $NCCL_HOME])
  CDDP_CUDA_VERSION([NCCL], [nccl], [NCCL_MAJOR], [NCCL_MINOR], [NCCL_PATCH],
    [2], [20])
  CDDP_CUDA_ARCHS
  CDDP_CUDA_COMPILES
])

# nvcc and its version (cuda_version). It calls CC's compiler, and what stands
# ahead of that in CC, such as ccache, stands ahead of nvcc, too.
AC_DEFUN([CDDP_CUDA_NVCC], [
  NVCC_CCBIN= cuda_launcher=
  for cddp_word in $CC; do
    AS_CASE([$cddp_word],
      [ccache|*/ccache|distcc|*/distcc|sccache|*/sccache],
      [cuda_launcher="$cuda_launcher$cddp_word "],
      [NVCC_CCBIN=$cddp_word
       break])
  done
  AS_IF([test -z "$NVCC"], [
    AS_CASE([$with_cuda], [auto|yes], [cuda_dirs="$CUDA_HOME $CUDA_PATH"],
      [cuda_dirs=$with_cuda])
    cuda_path=
    for cddp_dir in $cuda_dirs; do
      for cddp_sub in bin cu13/bin cuda_nvcc/bin; do
        cuda_path=$cuda_path$cddp_dir/$cddp_sub$PATH_SEPARATOR
      done
    done
    AS_CASE([$with_cuda], [auto|yes],
      [cuda_path=$cuda_path$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$cuda_path])
    AS_IF([test -n "$NVCC"], [NVCC=$cuda_launcher$NVCC])
  ])
  cuda_top= cuda_version=
  AS_IF([test -z "$NVCC"], [cuda_why="nvcc was not found"], [
    for cddp_word in $NVCC; do cuda_top=$cddp_word; done
    cuda_top=`command -v "$cuda_top"`
    cuda_top=`dirname "$cuda_top"`
    cuda_top=`dirname "$cuda_top"`
    cuda_version=`$NVCC --version 2>/dev/null |
      sed -n 's/.*release \(@<:@0-9@:>@*\.@<:@0-9@:>@*\).*/\1/p'`
    AS_CASE([$cuda_version],
      [''], [cuda_why="$NVCC --version names no version"],
      [?.*|10.*|11.*], [cuda_why="$NVCC is version $cuda_version, not 12.0 dnl
or later"])
  ])
])

# CDDP_CUDA_PART(NAME, LIBRARY, HEADER, WHEELS, VERSION-HEADER, DIRS): a header
# and a library below one of DIRS, or below one of its folders WHEELS, as PyPI's
# packages have them. Adds to NAME_LIBS, CUDA_CFLAGS and CUDA_RPATH. A wheel
# has libx.so.N, but no libx.so. The version is read later from
# LIBRARY_header.
AC_DEFUN([CDDP_CUDA_PART], [
  AS_IF([test -z "$cuda_why"], [
    AC_MSG_CHECKING([for $2])
    cddp_inc= cddp_lib=
    for cddp_dir in $6; do
      for cddp_sub in '' m4_bpatsubst([[$4]], [\([a-z0-9_]+\)], [/\1]); do
        cddp_top=$cddp_dir$cddp_sub
        for cddp_try in "$cddp_top/include" \
            "$cddp_top/include/$host_cpu-linux-gnu" \
            "$cddp_top/targets/$host_cpu-linux/include"; do
          AS_IF([test -z "$cddp_inc" && test -r "$cddp_try/$3"],
            [cddp_inc=$cddp_try])
        done
        for cddp_try in "$cddp_top/lib64" "$cddp_top/lib" \
            "$cddp_top/lib/$host_cpu-linux-gnu" \
            "$cddp_top/targets/$host_cpu-linux/lib"; do
          for cddp_file in "$cddp_try/lib$2.so" "$cddp_try/lib$2.so."*; do
            AS_IF([test -z "$cddp_lib" && test -r "$cddp_file"],
              [cddp_lib=$cddp_file])
          done
        done
      done
    done
    AS_IF([test -z "$cddp_inc"], [cuda_why="there is no $3 below`echo $6 |
        sed 's/^/ /'`"],
      [test -z "$cddp_lib"], [cuda_why="there is no lib$2.so below`echo $6 |
        sed 's/^/ /'`"], [
      cddp_inc=`cd "$cddp_inc" && pwd`
      cddp_dir=`dirname "$cddp_lib"`
      cddp_dir=`cd "$cddp_dir" && pwd`
      $2_header=$cddp_inc/m4_default([$5], [$3])
      AS_CASE([$cddp_inc], [/usr/include], [],
        [AS_CASE([" $CUDA_CFLAGS "], [*" $cddp_inc "*], [],
          [CUDA_CFLAGS="$CUDA_CFLAGS -isystem $cddp_inc"])])
      AS_CASE([$cddp_dir], [/usr/lib|/usr/lib64|/usr/lib/$host_cpu-linux-gnu],
        [], [AS_CASE([" $CUDA_RPATH "], [*" -Wl,-rpath,$cddp_dir "*], [],
          [CUDA_RPATH="$CUDA_RPATH -Wl,-rpath,$cddp_dir"])])
      $1_LIBS="$$1_LIBS -L$cddp_dir -l:`basename "$cddp_lib"`"
    ])
    AS_IF([test -z "$cuda_why"], [AC_MSG_RESULT([$cddp_lib])],
      [AC_MSG_RESULT([no])])
  ])
])

# CDDP_CUDA_VERSION(TITLE, LIBRARY, MAJOR, MINOR, PATCH, LEAST, LEAST-MINOR): read
# LIBRARY_version from the macros MAJOR, MINOR and PATCH in LIBRARY_header.
AC_DEFUN([CDDP_CUDA_VERSION], [
  AS_IF([test -z "$cuda_why"], [
    cddp_version=
    for cddp_macro in $3 $4 $5; do
      cddp_version="$cddp_version `sed -n \
        "s/^#define $cddp_macro *\(@<:@0-9@:>@*\).*/\1/p" "$$2_header" |
        sed 1q`"
    done
    set -- $cddp_version
    $2_version=$[]1.$[]2.$[]3
    AS_IF([test $[]# -ne 3],
      [cuda_why="$$2_header names no version"],
      [test $[]1 -lt $6 || { test $[]1 -eq $6 && test $[]2 -lt $7; }],
      [cuda_why="$1 is version $$2_version, not $6.$7 or later"])
  ])
])

# The compute capabilities, and nvcc's flags for them: code for each, and PTX of
# the last one without a letter, for devices that are newer.
AC_DEFUN([CDDP_CUDA_ARCHS], [
  AS_IF([test -z "$cuda_why"], [
    cuda_known=`$NVCC --list-gpu-code 2>/dev/null`
    AS_CASE([$with_cuda_arch],
      [auto|yes], [cuda_want="75 80 86 89 90 90a 100 120"],
      [none|no], [cuda_want=],
      [cuda_want=`echo "$with_cuda_arch" | tr ',;' '  '`])
    NVCC_ARCHS= NVCC_GENCODE= cuda_last=
    for cddp_arch in $cuda_want; do
      cddp_plain=`echo "$cddp_arch" | sed 's/a$//'`
      AS_CASE([" "`echo $cuda_known`" "], [*" sm_$cddp_plain "*],
        [NVCC_ARCHS="$NVCC_ARCHS $cddp_arch"
         NVCC_GENCODE="$NVCC_GENCODE -gencode dnl
arch=compute_$cddp_arch,code=sm_$cddp_arch"
         AS_IF([test "$cddp_arch" = "$cddp_plain"], [cuda_last=$cddp_arch])],
        [AS_CASE([$with_cuda_arch], [auto|yes], [],
          [AC_MSG_ERROR([--with-cuda-arch=$with_cuda_arch: nvcc dnl
$cuda_version does not know $cddp_arch])])])
    done
    AS_IF([test -n "$cuda_last"],
      [NVCC_GENCODE="$NVCC_GENCODE -gencode dnl
arch=compute_$cuda_last,code=compute_$cuda_last"])
    AS_IF([test -z "$cuda_why" && test -n "$cuda_want" &&
        test -z "$NVCC_ARCHS"],
      [cuda_why="nvcc lists no compute capability of $cuda_want"])
  ])
])

# nvcc works with this compiler?
AC_DEFUN([CDDP_CUDA_COMPILES], [
  AS_IF([test -z "$cuda_why"], [
    AC_MSG_CHECKING([whether nvcc works with $NVCC_CCBIN])
    AS_ECHO(["__global__ void f(int *x) { *x = 1; }"]) >conftest.cu
    AS_IF([$NVCC -ccbin $NVCC_CCBIN -std=c++17 $NVCC_GENCODE $CUDA_CFLAGS -c dnl
-o conftest.o conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
      [AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])
       cuda_why="nvcc $cuda_version does not compile with $NVCC_CCBIN; see dnl
config.log"])
    rm -f conftest.cu conftest.o
  ])
])
