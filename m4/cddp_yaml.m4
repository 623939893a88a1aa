# SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([CDDP_YAML], [
  CDDP_NEED([YAML], [libyaml], [yaml-0.1], [yaml.h], [yaml], [libyaml],
    [libyaml-dev], [libyaml])
])
