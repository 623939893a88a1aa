# SPDX-License-Identifier: BSD-3-Clause
# CDDP_MODULE: where the environment modules go, and what they load first.
AC_DEFUN([CDDP_MODULE], [
  AC_ARG_WITH([modulesdir], [AS_HELP_STRING([--with-modulesdir=DIR],
    [install environment modules in DIR/cddp @<:@DATADIR/modulefiles@:>@])],
    [], [with_modulesdir=yes])
  AS_CASE([$with_modulesdir],
    [yes], [MODULESDIR='${datadir}/modulefiles'],
    [/*], [MODULESDIR=$with_modulesdir],
    [AC_MSG_ERROR([--with-modulesdir=$with_modulesdir: expected a path that dnl
begins with /])])
  AC_SUBST([MODULESDIR])
  AC_ARG_WITH([module-requires], [AS_HELP_STRING([--with-module-requires="A/1 B/2"],
    [other modules that the module of cddp loads first])],
    [], [with_module_requires=])
  AS_CASE([$with_module_requires],
    [yes|no], [MODULE_REQUIRES=],
    [*@<:@!0-9A-Za-z./+_\ -@:>@*],
      [AC_MSG_ERROR([--with-module-requires="$with_module_requires": expected dnl
names of modules, such as hdf5/1.14])],
    [MODULE_REQUIRES=$with_module_requires])
  AC_SUBST([MODULE_REQUIRES])
])
