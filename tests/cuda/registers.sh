#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# No kernel of the plugin keeps variables in memory (spills, a stack frame), and
# none uses more registers than tests/cuda/registers allows, on any arch that was
# built. Read from what ptxas has said when the kernels were compiled
# (FILE.cu.o.log).
set -u
limits=${srcdir:-.}/tests/cuda/registers
mapfile -t logs < <(find src -name '*.cu.o.log' | LC_ALL=C sort)
[ ${#logs[@]} -gt 0 ] || {
    echo "SKIP: no kernels were compiled ($(./cddp-info --version |
        sed -n 's/^cuda *//p'))"
    exit 77
}
for log in "${logs[@]}"; do
    # An object of a source that is no more there is not part of the plugin.
    source=${log#./}
    [ ! -f "${srcdir:-.}/${source%.o.log}" ] || sed "s|^|$source: |" "$log"
done | awk -v limits="$limits" '
BEGIN {
    while ((getline line <limits) > 0)
        if (line !~ /^(#|$)/) {
            split(line, field, "\t")
            kernel[++rows] = field[1]
            arch[rows] = field[2]
            most[rows] = field[3]
        }
}
# The row for this kernel.
function row_of(name, on,    i) {
    for (i = 1; i <= rows; i++)
        if ((kernel[i] == "*" || name ~ kernel[i]) &&
            (arch[i] == "*" || arch[i] == on))
            return i
    return 0
}
function fail(text) {
    print "FAIL: " $1 " " name " for " on ": " text
    bad = 1
}
/Compiling entry function/ {
    match($0, /function \047[^\047]*/)
    name = substr($0, RSTART + 10, RLENGTH - 10)
    match($0, /sm_[0-9a-z]*/)
    on = substr($0, RSTART, RLENGTH)
    kernels++
}
/ [1-9][0-9]* bytes (stack frame|spill)/ {
    match($0, /[0-9]+ bytes stack frame/)
    fail(substr($0, RSTART))
}
/Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    used = substr($0, RSTART + 5, RLENGTH - 5) + 0
    if (used > most[row_of(name, on)])
        fail(used " registers, at most " most[row_of(name, on)] " are allowed")
    counted++
}
END {
    print kernels " kernels"
    exit bad || kernels == 0 || counted < kernels
}'
