# SPDX-License-Identifier: BSD-3-Clause
# Debian 12 has oneDNN 2.6 without a pkg-config file; 3.x is fine, too.
AC_DEFUN([CDDP_ONEDNN], [
  CDDP_NEED([ONEDNN], [onednn], [dnnl], [oneapi/dnnl/dnnl.h], [dnnl], [oneDNN],
    [libdnnl-dev], [onednn])
])
