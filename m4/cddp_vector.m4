# SPDX-License-Identifier: BSD-3-Clause
# CDDP_VECTOR: VECTOR_CFLAGS for folders of numerical loops: make vectors of
# them at -O2, too, and no fused multiply-add that the source does not ask for,
# so that all vector units give the same bits. ALIGN_CFLAGS: each function and
# each loop starts at a line of the cache, so that a change elsewhere in a file
# does not change how fast they run (docs/benchmarks/step.md).
AC_DEFUN([CDDP_VECTOR], [
  VECTOR_CFLAGS=""
  ALIGN_CFLAGS=""
  cddp_save_CFLAGS=$CFLAGS
  for flag in -ftree-vectorize -fvect-cost-model=dynamic -ffp-contract=off \
              -falign-functions=64 -falign-loops=32; do
    AC_MSG_CHECKING([whether $CC takes $flag])
    CFLAGS="$cddp_save_CFLAGS -Werror $flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes])
       case $flag in
       -falign-*) ALIGN_CFLAGS="$ALIGN_CFLAGS $flag" ;;
       *) VECTOR_CFLAGS="$VECTOR_CFLAGS $flag" ;;
       esac],
      [AC_MSG_RESULT([no])])
  done
  CFLAGS=$cddp_save_CFLAGS
  AC_SUBST([VECTOR_CFLAGS])
  AC_SUBST([ALIGN_CFLAGS])
])
