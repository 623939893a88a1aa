# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_UCX], [CDDP_PKG([UCX], [ucx], [libucx-dev], [ucx])])
AC_DEFUN([CDDP_PMIX], [CDDP_PKG([PMIX], [pmix], [libpmix-dev], [pmix])
  AC_DEFINE([HAVE_PMIX], [1], [PMIx is built in])])
AC_DEFUN([CDDP_YAML], [CDDP_PKG([YAML], [yaml-0.1], [libyaml-dev], [libyaml])])
AC_DEFUN([CDDP_JANSSON], [CDDP_PKG([JANSSON], [jansson], [libjansson-dev], [jansson])])
AC_DEFUN([CDDP_XXHASH], [CDDP_PKG([XXHASH], [libxxhash], [libxxhash-dev], [xxhash])])
AC_DEFUN([CDDP_CRITERION], [CDDP_PKG([CRITERION], [criterion], [libcriterion-dev], [criterion])])
AC_DEFUN([CDDP_ONEDNN], [
  AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [],
    [AC_MSG_ERROR([oneDNN was not found: install libdnnl-dev (Debian) or spack package onednn])])
  AC_SUBST([ONEDNN_CFLAGS], [])
  AC_SUBST([ONEDNN_LIBS], [-ldnnl])
])
