# SPDX-License-Identifier: BSD-3-Clause
# CDDP_REPORT: the plots of cddp-report. dygraphs is a script that becomes a part
# of every report; gnuplot is a program that is looked for when it is needed.
AC_DEFUN([CDDP_REPORT], [
  AC_ARG_WITH([dygraphs],
    [AS_HELP_STRING([--with-dygraphs@<:@=DIR@:>@],
      [plots in reports, by dygraph.min.js (in DIR)])], [], [with_dygraphs=auto])
  AC_MSG_CHECKING([for dygraphs])
  AS_CASE([$with_dygraphs],
    [auto|yes], [cddp_dir=/usr/share/javascript/dygraphs],
    [cddp_dir=$with_dygraphs])
  DYGRAPHS_JS= DYGRAPHS_CSS=
  summary_dygraphs=no
  AS_IF([test "x$with_dygraphs" != xno && test -r "$cddp_dir/dygraph.min.js"],
    [for cddp_css in dygraph.css dygraph.min.css; do
       AS_IF([test -r "$cddp_dir/$cddp_css"],
         [DYGRAPHS_JS=$cddp_dir/dygraph.min.js
          DYGRAPHS_CSS=$cddp_dir/$cddp_css
          summary_dygraphs="yes ($cddp_dir)"])
     done])
  AC_MSG_RESULT([$summary_dygraphs])
  AS_IF([test -z "$DYGRAPHS_JS"],
    [AS_CASE([$with_dygraphs], [auto|no], [],
      [AC_MSG_ERROR([dygraphs was not found: no dygraph.min.js with its style in dnl
$cddp_dir; install libjs-dygraphs (Debian, Ubuntu), or leave out --with-dygraphs])])])
  AC_SUBST([DYGRAPHS_JS])
  AC_SUBST([DYGRAPHS_CSS])
  AC_CHECK_PROG([GNUPLOT], [gnuplot], [gnuplot])
  AS_IF([test -n "$GNUPLOT"], [summary_gnuplot=yes],
    [summary_gnuplot="no (a table instead, until it is in the PATH)"])
  AC_DEFINE_UNQUOTED([DYGRAPHS_SUMMARY], ["$summary_dygraphs"],
    [Where dygraphs was found, or no.])
  AC_DEFINE_UNQUOTED([GNUPLOT_SUMMARY], ["$summary_gnuplot"],
    [Was gnuplot there at the build?])
])
