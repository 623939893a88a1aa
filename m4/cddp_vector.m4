# SPDX-License-Identifier: BSD-3-Clause
# CDDP_VECTOR: VECTOR_CFLAGS for folders of numerical loops: make vectors of
# them at -O2, too, and no fused multiply-add that the source does not ask for,
# so that all vector units give the same bits.
AC_DEFUN([CDDP_VECTOR], [
  VECTOR_CFLAGS=""
  cddp_save_CFLAGS=$CFLAGS
  for flag in -ftree-vectorize -fvect-cost-model=dynamic -ffp-contract=off; do
    AC_MSG_CHECKING([whether $CC takes $flag])
    CFLAGS="$cddp_save_CFLAGS -Werror $flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [AC_MSG_RESULT([yes]); VECTOR_CFLAGS="$VECTOR_CFLAGS $flag"],
      [AC_MSG_RESULT([no])])
  done
  CFLAGS=$cddp_save_CFLAGS
  AC_SUBST([VECTOR_CFLAGS])
])
