# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
# usage: awk -v form=lua|tcl -f write.awk FILE
#
# Write an environment module: Lua for Lmod, Tcl for Environment Modules. FILE has
# one statement a line:
#   help TEXT            a line of `module help`
#   whatis TEXT          the line of `module whatis` and `module avail`
#   one NAME             only one version of NAME is loaded at a time
#   require MODULE...    these are loaded first; none is allowed
#   setenv NAME VALUE    of one word
#   prepend NAME DIR     of one word
#   append NAME          an empty name at the end of a list
#   # TEXT               is copied
function rest(line) {
    sub(/^[^ ]+ ?/, "", line)
    return line
}
function lua_text(text) {
    gsub(/[\\"]/, "\\\\&", text)
    return "\"" text "\""
}
function tcl_text(text) {
    gsub(/[][\\"$]/, "\\\\&", text)
    return "\"" text "\""
}
function write(lua, tcl) {
    print form == "lua" ? lua : tcl
}
function help_end(    i) {
    if (!helps)
        return
    write("help([==[", "proc ModulesHelp {} {")
    for (i = 1; i <= helps; i++)
        write(help[i], "    puts stderr " tcl_text(help[i]))
    write("]==])", "}")
    helps = 0
}
BEGIN {
    if (form == "tcl")
        print "#%Module1.0"
}
$1 == "help" {
    help[++helps] = rest($0)
    next
}
{
    help_end()
}
$1 == "#" {
    write("--" substr($0, 2), $0)
    next
}
$1 == "whatis" {
    write("whatis(" lua_text(rest($0)) ")", "module-whatis " tcl_text(rest($0)))
    next
}
$1 == "one" {
    # Lmod replaces the loaded version by itself.
    write("family(\"" $2 "\")", "conflict " $2)
    next
}
$1 == "require" {
    for (i = 2; i <= NF; i++)
        write("depends_on(" lua_text($i) ")", "module load " $i)
    next
}
$1 == "setenv" && NF == 3 {
    write("setenv(" lua_text($2) ", " lua_text($3) ")", $0)
    next
}
$1 == "prepend" && NF == 3 {
    write("prepend_path(" lua_text($2) ", " lua_text($3) ")",
          "prepend-path " $2 " " $3)
    next
}
$1 == "append" && NF == 2 {
    write("append_path(\"" $2 "\", \"\")", "append-path " $2 " {}")
    next
}
{
    print FILENAME ":" FNR ": what is this: " $0 >"/dev/stderr"
    exit 1
}
