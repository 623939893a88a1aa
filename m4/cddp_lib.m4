# SPDX-License-Identifier: BSD-3-Clause
# What every library's macro is made of. CDDP_x stands in m4/cddp_x.m4, defines
# X_CFLAGS and X_LIBS and leaves a line for the summary in summary_x.

# CDDP_WITH(OPTION, TITLE): --with-OPTION[=DIR] and --without-OPTION, read into
# with_OPTION: auto, yes, no or a directory.
AC_DEFUN([CDDP_WITH], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1@<:@=DIR@:>@], [$2 (below DIR)])],
    [], [with_$1=auto])
])

# CDDP_FIND(NAME, OPTION, MODULE, HEADER, LIBRARY): set have_OPTION to yes or no,
# NAME_CFLAGS and NAME_LIBS. Without a directory pkg-config is asked first.
AC_DEFUN([CDDP_FIND], [
  have_$2=no
  summary_$2=no
  AS_CASE([$with_$2],
    [no], [],
    [auto|yes], [PKG_CHECK_MODULES([$1], [$3],
      [have_$2=yes
       summary_$2="yes (`$PKG_CONFIG --modversion $3 2>/dev/null`)"],
      [AC_CHECK_HEADER([$4], [AC_CHECK_LIB([$5], [main],
        [have_$2=yes
         summary_$2=yes
         $1_LIBS=-l$5])])])],
    [CDDP_FIND_BELOW([$1], [$2], [$4], [$5])])
  AC_SUBST([$1_CFLAGS])
  AC_SUBST([$1_LIBS])
])

# CDDP_FIND_BELOW(NAME, OPTION, HEADER, LIBRARY): in the directory with_OPTION.
AC_DEFUN([CDDP_FIND_BELOW], [
  AS_IF([test ! -r "$with_$2/include/$3"],
    [AC_MSG_ERROR([--with-$2=$with_$2: there is no file include/$3 in it])])
  cddp_dir=$with_$2/lib
  AS_IF([test -e "$with_$2/lib64/lib$4.so"], [cddp_dir=$with_$2/lib64])
  $1_CFLAGS="-I$with_$2/include"
  $1_LIBS="-L$cddp_dir -Wl,-rpath,$cddp_dir -l$4"
  cddp_save_LIBS=$LIBS
  LIBS="$$1_LIBS $LIBS"
  AC_MSG_CHECKING([for $4 in $with_$2])
  AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [have_$2=yes], [])
  AC_MSG_RESULT([$have_$2])
  LIBS=$cddp_save_LIBS
  dnl libtool drops run paths of convenience libraries, but not those of LDFLAGS
  $1_LIBS="-L$cddp_dir -l$4"
  LDFLAGS="$LDFLAGS -Wl,-rpath,$cddp_dir"
  AS_IF([test $have_$2 = no],
    [AC_MSG_ERROR([--with-$2=$with_$2: lib$4 cannot be linked from $cddp_dir])])
  summary_$2="yes ($with_$2)"
])

# CDDP_NEED(NAME, OPTION, MODULE, HEADER, LIBRARY, TITLE, DEBIAN, SPACK): a
# mandatory library, or the one sentence that mends its absence.
AC_DEFUN([CDDP_NEED], [
  CDDP_WITH([$2], [$6])
  AS_IF([test "x$with_$2" = xno],
    [AC_MSG_ERROR([cddp cannot be built without $6: leave out --without-$2])])
  CDDP_FIND([$1], [$2], [$3], [$4], [$5])
  AS_IF([test $have_$2 = no],
    [AC_MSG_ERROR([$6 was not found: install $7 (Debian, Ubuntu) dnl
or $8 (Spack), or name its directory by --with-$2=DIR])])
])

# CDDP_UNUSED(OPTION, TITLE, HEADER, DIRS): look for something that a later
# version will use; nothing is built with it. A wish that fails is an error.
AC_DEFUN([CDDP_UNUSED], [
  CDDP_WITH([$1], [$2; found and reported, not used by this version])
  AS_CASE([$with_$1], [auto|yes], [cddp_dirs="$4 /usr"], [cddp_dirs=$with_$1])
  summary_$1=no
  AS_IF([test "x$with_$1" != xno],
    [for cddp_dir in $cddp_dirs; do
       AS_IF([test -r "$cddp_dir/include/$3"],
         [summary_$1="found in $cddp_dir, not used by this version"
          break])
     done])
  AS_IF([test "$summary_$1" = no],
    [AS_CASE([$with_$1], [auto|no], [],
      [AC_MSG_ERROR([$2 was not found: no include/$3 in $cddp_dirs])])])
])

# Threads and libm, which every program needs.
AC_DEFUN([CDDP_LIB_MATH_THREADS], [
  AC_SEARCH_LIBS([pthread_create], [pthread])
  AC_SEARCH_LIBS([exp], [m])
  AC_SEARCH_LIBS([dlopen], [dl])
])
