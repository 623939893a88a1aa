# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_UCX], [
  CDDP_NEED([UCX], [ucx], [ucx], [ucp/api/ucp.h], [ucp], [UCX],
    [libucx-dev], [ucx])
  AS_IF([test "x$UCX_LIBS" = x-lucp], [],
    [AS_CASE([$with_ucx], [auto|yes], [], [UCX_LIBS="$UCX_LIBS -luct -lucs"])])
])
